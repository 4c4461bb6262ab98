r"""The grammar in which definitions of operations are written, by plugins and by TensorFlow.

A record is one definition as its author gave it: the name, the flags, and each specification after
the letter `a` (attribute), `i` (input) or `o` (output), joined by NUL. The flags are of the letters
S (stateful), C (commutative), A (aggregate), U (allows uninitialized input) and D (deprecated). The
native code hands the definitions of plugins over in this form, and the table of TensorFlow's own
operations stores them in it.

An attribute is `name: type >= minimum = default`. The type is `string`, `int`, `float`, `bool`,
`type`, `shape`, `tensor`, `func`, a set of types or strings such as `{float, int32}` or
`{'SAME', 'VALID'}`, a named set (`numbertype`, `realnumbertype`, `quantizedtype`), or a list of
one of these, `list(int)`. Minimum and default may be missing. Shapes, tensors and functions are
messages in protobuf's text format: `{dim {size: 2}}`, `{name: 'f'}`. Strings have the escapes of C.

An input or output is `name: ` and a data type, or the name of an attribute of type `type` or
`list(type)`; `N * ` before it means as many tensors as the attribute N says; `Ref(…)` around all of
it means references. Attributes that count or list tensors are at least 1 unless they say otherwise.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.abi.data_types import DATA_TYPES, DataType
from modular_tf.errors import InvalidArgumentError
from modular_tf.kernel.op_definition import (
    ArgDefinition,
    AttrDefinition,
    FunctionName,
    OpDefinition,
    TensorText,
    parameter_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.kernel.op_definition import Scalar

__all__ = ["FLAGS", "read_op_definition", "shortest_float"]

_Read = TypeVar("_Read")

FLAGS = {
    "S": "is_stateful",
    "C": "is_commutative",
    "A": "is_aggregate",
    "U": "allows_uninitialized_input",
    "D": "is_deprecated",
}
"""The attribute of `OpDefinition` that each flag sets."""

_TYPES = {each.name: each for each in DATA_TYPES}
_TYPES |= {"float32": _TYPES["float"], "float64": _TYPES["double"], "float16": _TYPES["half"]}


def _types(names: str) -> tuple[DataType, ...]:
    return tuple(_TYPES[name] for name in names.split())


_NUMBERS = _types(
    "float double int32 uint8 int16 int8 complex64 int64 qint8 quint8 qint32 bfloat16 qint16"
    " quint16 uint16 complex128 half uint32 uint64"
)
_REAL_NUMBERS = _types(
    "float double int32 uint8 int16 int8 int64 bfloat16 uint16 half uint32 uint64"
)
_TYPE_SETS = {
    "numbertype": _NUMBERS,
    "numerictype": _NUMBERS,
    "realnumbertype": _REAL_NUMBERS,
    "realnumerictype": _REAL_NUMBERS,
    "quantizedtype": _types("qint8 quint8 qint32 qint16 quint16"),
}

_MOST_LEVELS = 32  # of messages in messages; specifications have three
_MOST_FOUND = 40  # characters of what was found instead, in a message
_MOST_QUOTED = 200  # characters of a specification, in a message

_BLANKS = re.compile(r"[ \t\n\v\f\r]*")
_WORD = re.compile(r"[A-Za-z0-9_]*")
_TOKEN = re.compile(r"[A-Za-z0-9_.+-]*")
_PLAIN = re.compile(r"[^\"'\\\n]*")
_ESCAPE = re.compile(r"""([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|([abfnrtv\\'"?])""")
_MEANINGS = dict(zip("abfnrtv\\'\"?", b"\a\b\f\n\r\t\v\\'\"?", strict=True))
_INT = re.compile(r"0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]{0,18}")  # int() refuses long ones
_FLOAT = re.compile(r"[-+]?(?:inf|infinity|nan|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)")
_OP_NAME = re.compile(r"_*(?:[A-Z][A-Za-z0-9_]*>)*[A-Z][A-Za-z0-9_]*")
_START_OF_OP_NAME = re.compile(r"_*(?:[A-Z][A-Za-z0-9_]*>)*(?:[A-Z][A-Za-z0-9_]*)?")


def read_op_definition(record: str, source: str = "") -> OpDefinition:
    """Return the definition in a record, whose bytes that are not UTF-8 are surrogates.

    `source` is who defines the operation: a plugin, or a release of TensorFlow. Raises
    InvalidArgumentError, which quotes the faulty specification and names the position in it.
    """
    name, flags, *specs = record.split("\0")
    if not _OP_NAME.fullmatch(name):
        at = _START_OF_OP_NAME.match(name).end()  # type: ignore[union-attr]  # matches anything
        raise InvalidArgumentError(
            f"op {_shown(name)}, character {at + 1}: expected a name in CamelCase, such as MatMul"
            " or _FusedMatMul"
        )
    return _Reader(name, specs).definition({FLAGS[flag]: True for flag in flags}, source)


class _Fault(Exception):  # noqa: N818  (of a text, reported as an error of its definition)
    """What is wrong with a specification, and at which of its characters."""

    def __init__(self, position: int, text: str) -> None:
        self.position = position
        self.text = text


class _Scanner:
    """Reads a text from left to right; blanks before what is read are skipped."""

    __slots__ = ("at", "text")

    def __init__(self, text: str, at: int = 0) -> None:
        self.text = text
        self.at = at

    def position(self) -> int:
        """Return the position of the next character that is no blank."""
        self.at = _BLANKS.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.at

    def is_at(self, *literals: str) -> bool:
        return self.text.startswith(literals, self.position())

    def take(self, literal: str) -> bool:
        found = self.is_at(literal)
        if found:
            self.at += len(literal)
        return found

    def take_call(self, word: str) -> bool:
        """Take `word(`, or nothing."""
        ahead = _Scanner(self.text, self.at)
        found = ahead.word() == word and ahead.take("(")
        if found:
            self.at = ahead.at
        return found

    def expect(self, literal: str) -> None:
        if not self.take(literal):
            raise self.fault(f"'{literal}'")

    def expect_end(self) -> None:
        if self.position() < len(self.text):
            raise self.fault("the end")

    def match(self, pattern: re.Pattern[str]) -> str:
        """Take what matches a pattern, perhaps nothing."""
        found = pattern.match(self.text, self.position())
        self.at = found.end()  # type: ignore[union-attr]  # it matches the empty string too
        return found.group()  # type: ignore[union-attr]

    def word(self) -> str:
        return self.match(_WORD)

    def fault(self, expected: str, at: int | None = None) -> _Fault:
        at = self.position() if at is None else at
        rest = self.text[at : at + _MOST_FOUND]
        found = f"'{rest}'" if rest else "the end"
        return _Fault(at, f"expected {expected}, found {found}")

    def quoted(self) -> bytes:
        """Take a string in quotes; return its bytes, escapes decoded."""
        start = self.position()
        quote = self.text[start : start + 1]
        if quote not in {'"', "'"}:
            raise self.fault("a string in quotes")
        self.at += 1
        content = bytearray()
        while True:
            plain = _PLAIN.match(self.text, self.at)
            content += plain.group().encode("utf-8", "surrogateescape")  # type: ignore[union-attr]
            end = plain.end()  # type: ignore[union-attr]
            mark = self.text[end : end + 1]
            self.at = end + 1
            if mark == quote:
                return bytes(content)
            if mark in {"", "\n"}:
                raise self.fault("a string that ends", start)
            content.append(self._escaped() if mark == "\\" else ord(mark))

    def _escaped(self) -> int:
        start = self.at
        found = _ESCAPE.match(self.text, start)
        if found is None and self.text.startswith(("x", "X"), start):
            raise self.fault("a byte's number", start + 1)
        if found is None:
            raise self.fault("an escape of C", start - 1)
        self.at = found.end()
        if found[3]:
            return _MEANINGS[found[3]]
        value = int(found[1], 8) if found[1] else int(found[2], 16)
        if value > 0xFF:  # noqa: PLR2004  (a byte)
            raise self.fault("a byte's number", start)
        return value


# -- values ----------------------------------------------------------------------------------------


def _read_string(scanner: _Scanner) -> str:
    content = scanner.quoted()
    while scanner.is_at('"', "'"):  # adjacent strings are one
        content += scanner.quoted()
    return content.decode("utf-8", "surrogateescape")


def _read_int(scanner: _Scanner) -> int:
    start = scanner.position()
    sign = -1 if scanner.take("-") else 1
    digits = scanner.word()
    base = 16 if digits[1:2] in {"x", "X"} else 8 if digits[:1] == "0" else 10
    value = sign * int(digits, base) if _INT.fullmatch(digits) else 1 << 63
    if not -(1 << 63) <= value < 1 << 63:
        raise scanner.fault("a whole number of 64 bits", start)
    return value


def _read_float(scanner: _Scanner) -> float:
    start = scanner.position()
    token = scanner.match(_TOKEN).lower()
    if "inf" not in token:
        token = token.removesuffix("f")
    if not _FLOAT.fullmatch(token):
        raise scanner.fault("a number", start)
    return shortest_float(float(token))


def _read_bool(scanner: _Scanner) -> bool:
    start = scanner.position()
    word = scanner.word()
    if word in {"true", "True", "t", "1"}:
        return True
    if word in {"false", "False", "f", "0"}:
        return False
    raise scanner.fault("true or false", start)


def _read_type(scanner: _Scanner) -> DataType:
    start = scanner.position()
    word = scanner.word()
    found = _TYPES.get(word[3:].lower() if word.startswith("DT_") else word)
    if found is None:
        raise scanner.fault("the name of a type, such as float or DT_FLOAT", start)
    return found


def _read_message(scanner: _Scanner, read_field: Callable[[str], object]) -> None:
    """Read `{name: value ...}` of protobuf's text format; `read_field` reads each value."""
    end = ">" if scanner.take("<") else "}"
    if end == "}":
        scanner.expect("{")
    while not scanner.take(end):
        name = scanner.word()
        if not name:
            raise scanner.fault(f"a field or '{end}'")
        if not scanner.take(":") and not scanner.is_at("{", "<"):
            raise scanner.fault("':'")
        read_field(name)
        if not scanner.take(","):
            scanner.take(";")


def _skip_value(scanner: _Scanner, level: int) -> None:
    """Read the value of any field, which may be a message or a list."""
    if level > _MOST_LEVELS:
        raise scanner.fault("fewer levels of braces")
    if scanner.is_at("{", "<"):
        _read_message(scanner, lambda _: _skip_value(scanner, level + 1))
    elif scanner.take("["):
        if scanner.take("]"):
            return
        _skip_value(scanner, level + 1)
        while scanner.take(","):
            _skip_value(scanner, level + 1)
        scanner.expect("]")
    elif scanner.is_at('"', "'"):
        _read_string(scanner)
    elif not scanner.match(_TOKEN):
        raise scanner.fault("a value")


def _read_dimension(scanner: _Scanner) -> int:
    size = 0  # of a field that is not written

    def read_field(name: str) -> None:
        nonlocal size
        if name == "name":
            _read_string(scanner)
            return
        if name != "size":
            raise scanner.fault("the value of size or name")
        start = scanner.position()
        size = _read_int(scanner)
        if size < -1:
            raise scanner.fault("a size of at least -1", start)

    _read_message(scanner, read_field)
    return size


def _read_shape(scanner: _Scanner) -> tuple[int, ...] | None:
    start = scanner.position()
    if not scanner.is_at("{", "<"):
        raise scanner.fault("a shape such as {dim {size: 2}} or {unknown_rank: true}")
    sizes: list[int] = []
    is_unknown = False

    def read_field(name: str) -> None:
        nonlocal is_unknown
        if name == "unknown_rank":
            is_unknown = _read_bool(scanner)
        elif name != "dim":
            raise scanner.fault("the value of dim or unknown_rank")
        elif scanner.is_at("["):
            sizes.extend(_read_list(scanner, _read_dimension))
        else:
            sizes.append(_read_dimension(scanner))

    _read_message(scanner, read_field)
    if is_unknown and sizes:
        raise scanner.fault("dimensions or no rank", start)
    return None if is_unknown else tuple(sizes)


def _read_tensor(scanner: _Scanner) -> TensorText:
    start = scanner.position()
    _read_message(scanner, lambda _: _skip_value(scanner, 1))
    return TensorText(scanner.text[start : scanner.at])


def _read_function(scanner: _Scanner) -> FunctionName:
    called = ""

    def read_field(name: str) -> None:
        nonlocal called
        if name == "name":
            called = _read_string(scanner)
        else:
            _skip_value(scanner, 1)

    _read_message(scanner, read_field)
    return FunctionName(called)


def _read_list(scanner: _Scanner, read: Callable[[_Scanner], Any]) -> tuple[Any, ...]:
    scanner.expect("[")
    if scanner.take("]"):
        return ()
    values = [read(scanner)]
    while scanner.take(","):
        values.append(read(scanner))
    scanner.expect("]")
    return tuple(values)


def _read_default_type(scanner: _Scanner) -> DataType:
    """Read a type, which a default may have in quotes."""
    if not scanner.is_at('"', "'"):
        return _read_type(scanner)
    start = scanner.position()
    inner = _Scanner(scanner.quoted().decode("utf-8", "surrogateescape"))
    try:
        found = _read_type(inner)
        inner.expect_end()
    except _Fault:
        raise scanner.fault("the name of a type, such as float or DT_FLOAT", start) from None
    return found


_READERS: dict[str, Callable[[_Scanner], Scalar]] = {
    "string": _read_string,
    "int": _read_int,
    "float": _read_float,
    "bool": _read_bool,
    "type": _read_default_type,
    "shape": _read_shape,
    "tensor": _read_tensor,
    "func": _read_function,
}


# -- specifications --------------------------------------------------------------------------------


def _read_attr(scanner: _Scanner) -> tuple[AttrDefinition, int]:
    """Return an attribute, and where its default begins."""
    start = scanner.position()
    name = scanner.word()
    if not name[:1].isalpha():
        raise scanner.fault("the name of an attribute, which begins with a letter", start)
    if name in _TYPES:
        raise scanner.fault("a name that no type has", start)
    scanner.expect(":")
    is_list = scanner.take_call("list")
    kind, allowed = _read_kind(scanner)
    if is_list:
        scanner.expect(")")
    minimum = _read_minimum(scanner, kind, is_list=is_list)
    if not scanner.take("="):
        scanner.expect_end()
        return AttrDefinition(name, kind, is_list, allowed, minimum), 0
    start = scanner.position()
    read = _READERS[kind]
    default = _read_list(scanner, read) if is_list else read(scanner)
    scanner.expect_end()
    return AttrDefinition(name, kind, is_list, allowed, minimum, default, has_default=True), start


def _read_kind(scanner: _Scanner) -> tuple[str, tuple[str | DataType, ...] | None]:
    """Return the kind of an attribute, and the values that it may have."""
    if scanner.take("{"):
        return _read_allowed(scanner)
    start = scanner.position()
    word = scanner.word()
    if word in _TYPE_SETS:
        return "type", _TYPE_SETS[word]
    if word not in _READERS:
        raise scanner.fault("the type of an attribute, such as int, type or {float, int32}", start)
    return word, None


def _read_allowed(scanner: _Scanner) -> tuple[str, tuple[str | DataType, ...]]:
    """Read a set from behind its brace; a comma may come last."""
    kind = "string" if scanner.is_at('"', "'") else "type"
    allowed: list[str | DataType] = []
    while not (allowed and scanner.is_at("}")):
        ahead = _Scanner(scanner.text, scanner.at)
        types = _TYPE_SETS.get(ahead.word(), ()) if kind == "type" else ()
        if types:
            scanner.at = ahead.at
            allowed += types
        else:
            allowed.append(_read_string(scanner) if kind == "string" else _read_type(scanner))
        if not scanner.take(","):
            break
    scanner.expect("}")
    return kind, tuple(allowed)


def _read_minimum(scanner: _Scanner, kind: str, *, is_list: bool) -> int | None:
    start = scanner.position()
    if not scanner.take(">="):
        return None
    if not is_list and kind != "int":
        raise scanner.fault("no minimum, which only an int and a list have", start)
    start = scanner.position()
    minimum = _read_int(scanner)
    if is_list and minimum < 0:
        raise scanner.fault("a length of at least 0", start)
    return minimum


_WHAT = {"a": "attribute", "i": "input", "o": "output"}


class _Reader:
    """Reads the specifications of one operation, which refer to each other."""

    def __init__(self, name: str, specs: list[str]) -> None:
        self._name = name
        self._specs = specs
        self._names: set[str] = set()
        self._attrs: dict[str, AttrDefinition] = {}
        self._defaults: list[tuple[str, int]] = []  # of each attribute: name, where it begins

    def definition(self, flags: dict[str, bool], source: str) -> OpDefinition:
        self._each("a", self._take_attr)
        inputs, outputs = (tuple(self._each(kind, self._read_arg)) for kind in "io")
        defaults = iter(self._defaults)
        self._each("a", lambda scanner: self._check_default(scanner, *next(defaults)))
        given: dict[str, Any] = {**flags, "source": source}
        found = OpDefinition(self._name, inputs, outputs, tuple(self._attrs.values()), **given)
        _check_parameters(found)
        return found

    def _each(self, kind: str, read: Callable[[_Scanner], _Read]) -> list[_Read]:
        """Return what is read of each specification of a kind, whose faults it reports."""
        found = []
        for spec in [each[1:] for each in self._specs if each[0] == kind]:
            try:
                found.append(read(_Scanner(spec)))
            except _Fault as fault:
                raise InvalidArgumentError(
                    f"op {self._name}, {_WHAT[kind]} {_shown(spec)}, character"
                    f" {fault.position + 1}: {fault.text}"
                ) from None
        return found

    def _take_attr(self, scanner: _Scanner) -> None:
        attr, default_at = _read_attr(scanner)
        self._take_name(scanner, attr.name)
        self._attrs[attr.name] = attr
        self._defaults.append((attr.name, default_at))

    def _take_name(self, scanner: _Scanner, name: str) -> None:
        if name in self._names:
            raise scanner.fault("a name that is not taken in this op", scanner.text.find(name))
        self._names.add(name)

    def _read_arg(self, scanner: _Scanner) -> ArgDefinition:
        start = scanner.position()
        name = scanner.word()
        if not name[:1].isalpha() or name != name.lower():
            raise scanner.fault("the name of an argument, which is in lower case", start)
        scanner.expect(":")
        is_ref = scanner.take_call("Ref")
        counting_at, counting = None, None
        element_at, element = _read_type_word(scanner)
        if scanner.take("*"):
            counting_at, counting = element_at, element
            element_at, element = _read_type_word(scanner)
        if is_ref:
            scanner.expect(")")
        scanner.expect_end()
        self._take_name(scanner, name)
        if counting is not None:
            attr = self._attrs.get(counting)
            if attr is None:
                raise scanner.fault("an attribute of this op", counting_at)
            if attr.kind != "int" or attr.is_list:
                raise scanner.fault("an attribute that is an int", counting_at)
            self._give_minimum(attr)
        made = ArgDefinition(name, number_attr=counting, is_ref=is_ref)
        if element in _TYPES:
            return replace(made, type=_TYPES[element])
        attr = self._attrs.get(element)
        if attr is None:
            raise scanner.fault("a type or an attribute of this op", element_at)
        if attr.kind != "type":
            raise scanner.fault("an attribute that is a type or a list of types", element_at)
        if not attr.is_list:
            return replace(made, type_attr=element)
        if counting is not None:
            raise scanner.fault("one type behind a count", element_at)
        self._give_minimum(attr)
        return replace(made, type_list_attr=element)

    def _give_minimum(self, attr: AttrDefinition) -> None:
        """Attributes that count tensors, or list their types, are at least 1 unless they say."""
        if attr.minimum is None:
            self._attrs[attr.name] = replace(attr, minimum=1)

    def _check_default(self, scanner: _Scanner, name: str, at: int) -> None:
        attr = self._attrs[name]
        if not attr.has_default:
            return
        default: Any = attr.default
        found = len(default) if attr.is_list else default
        if attr.minimum is not None and found < attr.minimum:
            what = "a default of a length" if attr.is_list else "a default"
            raise scanner.fault(f"{what} of at least {attr.minimum}", at)
        values = default if attr.is_list else (default,)
        if attr.allowed is not None and any(value not in attr.allowed for value in values):
            raise scanner.fault("a default that is allowed", at)


def _read_type_word(scanner: _Scanner) -> tuple[int, str]:
    """Return a word, and where it begins."""
    start = scanner.position()
    word = scanner.word()
    if not word:
        raise scanner.fault("a type or the name of an attribute")
    return start, word


def _check_parameters(definition: OpDefinition) -> None:
    """Check that every input and attribute can be a parameter of one signature in Python."""
    names = [arg.name for arg in definition.inputs] + [attr.name for attr in definition.attrs]
    for name in names:
        parameter = parameter_name(name)
        if parameter != name and parameter in names:
            raise InvalidArgumentError(
                f"op {definition.name}: expected names that differ by more than an underscore,"
                f" which is added to keywords of Python; found {name} and {parameter}"
            )


def _shown(text: str) -> str:
    """Return the start of a text in quotes, with escapes for what is not printable."""
    shown = text[:_MOST_QUOTED].encode("utf-8", "surrogateescape")
    quoted = "".join(
        f"\\{chr(byte)}" if byte in b'"\\'
        else chr(byte) if 0x20 <= byte < 0x7F and byte not in b"|;"  # noqa: PLR2004  (printable)
        else f"\\x{byte:02x}"
        for byte in shown
    )  # fmt: skip
    return f'"{quoted}"' + ("..." if len(text) > _MOST_QUOTED else "")


def shortest_float(value: float) -> float:
    """Return the number of the fewest digits that stands for the same 32-bit number.

    All NaNs are one object, so that definitions with them can be equal.
    """
    if math.isnan(value):
        return math.nan
    try:
        (single,) = struct.unpack("f", struct.pack("f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    texts = (f"{single:.{digits}g}" for digits in range(6, 10))
    return next((float(each) for each in texts if _is_single(each, single)), single)


def _is_single(text: str, single: float) -> bool:
    """Return whether a text stands for a 32-bit number."""
    try:
        return bool(struct.unpack("f", struct.pack("f", float(text)))[0] == single)
    except OverflowError:
        return False
