"""Target: definitions of ops, against the canonical line that each was written from.

A right definition is made as its canonical line, and as specifications that say the same in other
words. A damaged one has some other text in it: it is refused with a place, or it is kept whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.fixtures.op_definitions import register

_OK, _INVALID_ARGUMENT, _RESOURCE_EXHAUSTED = 0, 3, 8
_TYPES = ("float", "double", "int32", "half", "bfloat16", "qint8", "complex64", "resource", "int4")
_WORDS = ("SAME", "VALID", "", "NHWC", "a,b", "{", "(x)", "=")
_BLANKS = ("", "", "", " ", "  ", "\t", "\n")
_DAMAGE = (
    *(b"", b" ", b":", b"*", b">=", b"=", b"{", b"}", b"(", b")", b"[", b"]", b"<", b">", b","),
    *(b";", b"'", b'"', b"\\", b"\\x", b"\\777", b"-", b"0x", b"08", b"1e999", b"inf", b"9" * 30),
    *(b"list(", b"Ref(", b"type", b"float", b"N", b"T", b"dim", b"{dim{size:2}}", b"unknown_rank"),
    *(b"numbertype", b"DT_", b"DT_FLOAT", b"true", b"\xff", b"|", b"[" * 99, b"{a" * 99),
)  # fmt: skip


class Given(NamedTuple):
    """The texts of a definition, and its canonical line where they are right."""

    name: bytes
    attrs: tuple[bytes, ...]
    inputs: tuple[bytes, ...]
    outputs: tuple[bytes, ...]
    line: str | None


def make(dice):
    name = f"Fuzz{dice.getrandbits(64)}"
    attrs = [_attr(dice, f"a{at}") for at in range(dice.randint(0, 4))]
    attrs += [("T : type", "T:type"), ("N: int>= 0", "N:int>=0")]
    inputs = [_arg(dice, f"in{at}") for at in range(dice.randint(0, 3))]
    outputs = [_arg(dice, f"out{at}") for at in range(dice.randint(0, 2))]
    groups = (attrs, inputs, outputs)
    line = "|".join([name, "", *(";".join(told for _, told in group) for group in groups)])
    texts = [[spec.encode() for spec, _ in group] for group in groups]
    is_damaged = dice.random() < 0.6
    if is_damaged:
        for _ in range(dice.randint(1, 3)):
            _damage(dice, texts)
    given = [tuple(group) for group in texts]
    return Given(name.encode(), *given, None if is_damaged else line)


def check(given):
    """Register it twice, once with more blanks, and look at the answers."""
    found = register(given.name, given.attrs, given.inputs, given.outputs)
    if found.code == _RESOURCE_EXHAUSTED:
        assert found.message == "too many ops are defined"
        return "no room"
    if given.line is not None:
        assert (found.code, found.message, found.line) == (_OK, "", given.line)
    if found.code == _OK:
        _check_accepted(given, found)
        return "accepted"
    assert found.code == _INVALID_ARGUMENT
    assert re.search(r", character \d+: expected .*, found ", found.message, re.DOTALL)
    assert found.line is None
    return "refused"


def _check_accepted(given, found):
    """The line has all parts, and more blanks change nothing."""
    assert found.line is not None
    name, flags, *parts = found.line.split("|")
    assert (name.encode(), flags) == (given.name, "")
    groups = (given.attrs, given.inputs, given.outputs)
    assert [len(part.split(";")) if part else 0 for part in parts] == [len(g) for g in groups]
    blanks = [[b" " + spec + b"\n" for spec in group] for group in groups]
    assert register(given.name, *blanks) == found


def _damage(dice, texts):
    specs = dice.choice([group for group in texts if group])
    at = dice.randrange(len(specs))
    start, end = sorted(dice.choices(range(len(specs[at]) + 1), k=2))
    end = min(end, start + dice.randint(0, 5))
    specs[at] = specs[at][:start] + dice.choice(_DAMAGE) + specs[at][end:]


def _attr(dice, name):
    """Return the specification of an attribute, and its canonical text."""
    kind, told_kind, value = dice.choice((_number, _text, _type, _flag, _shape, _choice))(dice)
    spec, told = [name, ":", kind], f"{name}:{told_kind}"
    is_list = dice.random() < 0.4
    values = [value]
    if is_list:
        spec[2:] = ["list", "(", kind, ")"]
        told = f"{name}:list({told_kind})"
        values *= dice.randint(1, 3)
    if is_list and dice.random() < 0.5:
        spec += [">=", "1"]
        told += ">=1"
    if dice.random() < 0.6:
        written, said = (",".join(texts) for texts in zip(*values, strict=True))
        spec += ["=", f"[{written}]" if is_list else written]
        told += f"=[{said}]" if is_list else f"={said}"
    return _with_blanks(dice, spec), told


_Kind = tuple[str, str, tuple[str, str]]
"""A kind as it is written and told, and a value of it likewise."""


def _number(dice):
    number = dice.randint(-(1 << 63), (1 << 63) - 1) >> dice.randint(0, 63)
    written = hex(number) if dice.random() < 0.5 else str(number)
    return "int", "int", (written, str(number))


def _text(dice):
    return "string", "string", _quoted(dice, dice.choice(_WORDS))


def _type(dice):
    chosen = dice.choice(_TYPES)
    types = dict.fromkeys((*dice.sample(_TYPES, 3), chosen))
    kind = ",".join(types)
    return f"{{{kind}}}", f"type{{{kind}}}", (_type_name(dice, chosen), chosen)


def _type_name(dice, name):
    return f"DT_{name.upper()}" if dice.random() < 0.5 else name


def _flag(dice):
    told = dice.choice(("true", "false"))
    return "bool", "bool", (dice.choice((told, told.capitalize(), told[0])), told)


def _shape(dice):
    if dice.random() < 0.2:
        return "shape", "shape", ("{unknown_rank: true}", "?")
    sizes = [dice.randint(-1, 9) for _ in range(dice.randint(0, 4))]
    written = " ".join(f"dim {{size: {size}}}" for size in sizes)
    return "shape", "shape", (f"{{{written}}}", f"[{','.join(map(str, sizes))}]")


def _choice(dice):
    words = dice.sample(_WORDS, 3)
    kind = ", ".join(_quoted(dice, word)[0] for word in words)
    told = ",".join(f'"{word}"' for word in words)
    return f"{{{kind}}}", f"string{{{told}}}", _quoted(dice, dice.choice(words))


def _quoted(dice, word):
    quote = dice.choice("'\"")
    written = "".join(f"\\{ord(c):03o}" if dice.random() < 0.2 else c for c in word)
    return f"{quote}{written}{quote}", f'"{word}"'


def _arg(dice, name):
    parts = dice.choice(
        (["T"], ["N", "*", "T"], ["float"], ["N", "*", "half"], ["Ref", "(", "T", ")"])
    )
    return _with_blanks(dice, [name, ":", *parts]), f"{name}:{''.join(parts)}"


def _with_blanks(dice, words):
    return "".join(dice.choice(_BLANKS) + word for word in words) + dice.choice(_BLANKS)
