"""Target: the configuration file and the environment over it, against a plain statement of it.

A key that `_RIGHT` does not know is held to its field's type, and to being named when refused.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from modular_tf import configuration
from modular_tf.configuration import Config, load_config
from modular_tf.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

_KEYS = tuple(entry.name for entry in fields(Config) if entry.name != "path")
_WORDS = (
    *("", "a", "*", "NPU", "GPU:CUDA", "s3", "file", "CUDA", "~", "~nobody/x", "/p", "a b", "é"),
    *(
        "always",
        "never",
        "new",
        "lazy",
        "eager",
        "auto",
        "1",
        "true",
        "\\u0000",
        "~\\u0000",
        "LD-064",
    ),
    *("0.5", "growth", "limit_bytes", "fraction", "a/../b", "\\uFFFD", "$HOME", "[", "**"),
)
_NUMBERS = (
    *(
        "0",
        "1",
        "2",
        "4",
        "5",
        "-1",
        "30",
        "220",
        "1024",
        "9223372036854775807",
        "1e3",
        "0.5",
        "1e300",
        "1e-300",
        "1000000",
    ),
    *("-0.0", "1.0", "1.5", "1e400", "inf", "-inf", "nan", "0x10", "0b1", "1_000", "true", "false"),
    *("1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "1" * 5000, "1" + "0" * 60),
    *("0x" + "f" * 5000, "0o17"),
)
_VARIABLES: dict[str, tuple[str, ...]] = {
    "MODULAR_TF_FIRST_CONTACT": ("", "always", "never", "new", "Always", "sometimes", "\udcff"),
    "MODULAR_TF_FROZEN": ("", "0", "1", "yes", "2"),
    "MODULAR_TF_LOAD": ("", "lazy", "eager", "EAGER"),
    "TF_FORCE_GPU_ALLOW_GROWTH": ("", "true", "false", "1", "TRUE", "yes"),
    "TF_ENABLE_GPU_GARBAGE_COLLECTION": ("", "true", "0", "False", "no"),
    "TF_GPU_HOST_MEM_LIMIT_IN_MB": ("", "0", "1", "64", "-1", "9" * 30, "\u0661", "1.5"),
}
_PIECES = (
    '"',
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    "\n",
    "#",
    ".",
    "\\",
    " ",
    "[[",
    '"""',
    "\t",
    "é",
)

_MEMORY: dict[str, Callable[[Any], bool]] = {
    "limit_bytes": lambda value: type(value) is int and 0 <= value < 1 << 62,
    "host_limit_bytes": lambda value: type(value) is int and 0 <= value < 1 << 62,
    "fraction": lambda value: type(value) in (int, float) and 0 < value <= 1,
    "growth": lambda value: type(value) is bool,
    "garbage_collection": lambda value: type(value) is bool,
}


def _are_strings(value: Any) -> bool:
    return type(value) is list and all(type(entry) is str for entry in value)


def _are_named(kind: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is dict and all(type(v) is kind for v in value.values())


def _is_memory(value: Any, *, inner: bool = False) -> bool:
    if type(value) is not dict or {"limit_bytes", "fraction"} <= value.keys():
        return False
    return all(
        not inner and bool(re.fullmatch("[A-Z][A-Z_]*", key)) and _is_memory(entry, inner=True)
        if type(entry) is dict
        else key in _MEMORY and _MEMORY[key](entry)
        for key, entry in value.items()
    )


def _are_paths(value: Any) -> bool:
    return _are_strings(value) and not any("\0" in entry for entry in value)


def _is_duration(value: Any) -> bool:
    return type(value) in (int, float) and 0.001 <= value <= 1_000_000


_RIGHT: dict[str, Callable[[Any], bool]] = {
    "plugin_dirs": _are_paths,
    "enable": _are_strings,
    "disable": _are_strings,
    "visible_devices": _are_strings,
    "priorities": _are_named(int),
    "scheme_pins": _are_named(str),
    "dlpack_types": _are_named(str),
    "memory": _is_memory,
    "copy_streams": lambda value: type(value) is int and 1 <= value <= 4,
    "first_contact": lambda value: value in ("always", "new", "never"),
    "first_contact_timeout_s": _is_duration,
    "first_contact_memory_mib": lambda value: type(value) is int and 0 < value <= 1 << 30,
    "watch_poll_interval_s": _is_duration,
    "watch_polling": lambda value: type(value) is bool or value == "auto",
    "load": lambda value: value in ("lazy", "eager"),
}


def make(dice: random.Random) -> tuple[bytes, dict[str, str]]:
    """Return the bytes of a file, and variables."""
    keys = dice.sample((*_KEYS, "path", "unknown", "a.b"), dice.choice((0, 1, 1, 2, 3, 5, 8)))
    lines = [f"{key} = {_value(dice, key)}" for key in keys]
    text = "\n".join(lines)
    if dice.random() < 0.3:
        text = _spoilt(text, dice)
    if dice.random() < 0.01:
        text += f"\nenable = {'[' * dice.choice((50, 20_000))}"
    content = text.encode("utf-8", "surrogatepass")
    if dice.random() < 0.03:
        at = dice.randrange(len(content) + 1)
        content = content[:at] + dice.randbytes(3) + content[at:]
    chosen = dice.sample(sorted(_VARIABLES), dice.choice((0, 0, 0, 1, 2)))
    return content, {name: dice.choice(_VARIABLES[name]) for name in chosen}


def check(given: tuple[bytes, dict[str, str]]) -> str:
    """Read it; a configuration is as the file says, and a refusal names what is wrong."""
    content, variables = given
    path = _file(content)
    values = _plainly_parsed(content)
    try:
        config = load_config({configuration.CONFIG_VARIABLE: path, **variables})
    except ConfigError as error:
        return _check_refusal(str(error), path, values, variables)
    assert values is not None, "no TOML, and accepted"
    assert values.keys() <= set(_KEYS)
    wrong = [key for key, value in values.items() if not _RIGHT.get(key, _anything)(value)]
    assert not wrong, f"accepted with wrong values of {wrong}"
    _check_config(config, values, variables)
    return "accepted"


def _check_refusal(
    said: str, path: str, values: dict[str, Any] | None, variables: dict[str, str]
) -> str:
    if values is None:
        assert path in said
        assert "not valid TOML" in said or "cannot be read" in said
        return "no TOML"
    unknown = values.keys() - set(_KEYS)
    if unknown:
        assert f"unknown keys {sorted(unknown)}" in said
        return "unknown key"
    wrong = {key for key, value in values.items() if not _RIGHT.get(key, _nothing)(value)}
    if path not in said:
        assert any(name in said for name in variables), said
        return "variable"
    assert any(re.search(rf"\b{key}\b", said) for key in wrong), f"no key is wrong: {said}"
    return "wrong value"


def _check_config(config: Config, values: dict[str, Any], variables: dict[str, str]) -> None:
    hints = get_type_hints(Config, vars(configuration) | {"Mapping": dict})
    for key in _KEYS:
        assert _fits(getattr(config, key), hints[key]), f"{key}: {getattr(config, key)!r}"
    for key in {"enable", "disable", "visible_devices"} & values.keys():
        assert getattr(config, key) == tuple(values[key])
    for key in {"priorities", "scheme_pins", "dlpack_types"} & values.keys():
        assert getattr(config, key) == values[key]
    if not variables:
        defaults = Config()
        for key in set(_KEYS) - values.keys():
            assert getattr(config, key) == getattr(defaults, key), key
    assert all(map(os.path.isabs, config.plugin_dirs))
    assert pickle.loads(pickle.dumps(config)) == config
    config.why_disabled("any")
    config.memory_of("GPU", variables)


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return type(value) is tuple and all(_fits(entry, arguments[0]) for entry in value)
    if origin is dict:
        return all(_fits(k, arguments[0]) and _fits(v, arguments[1]) for k, v in value.items())
    if arguments:  # a union
        return any(_fits(value, argument) for argument in arguments)
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint if hint in (int, bool, str) else isinstance(value, hint)


def _plainly_parsed(content: bytes) -> dict[str, Any] | None:
    try:
        values = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):  # numbers too long for Python are no TOMLDecodeError
        return None
    return values if _fit_64_bits(values) else None


def _fit_64_bits(value: Any) -> bool:
    if type(value) in (dict, list):
        return all(map(_fit_64_bits, value.values() if type(value) is dict else value))
    return type(value) is not int or -(1 << 63) <= value < 1 << 63


def _anything(_value: Any) -> bool:
    return True


def _nothing(_value: Any) -> bool:
    return False


def _value(dice: random.Random, key: str) -> str:
    form = dice.choice(("fitting", "fitting", "word", "number", "list", "table", "words"))
    if form == "fitting":
        form = _FITTING.get(key, dice.choice(("word", "number", "words", "table")))
    if form == "word":
        return f'"{dice.choice(_WORDS)}"'
    if form == "number":
        return dice.choice(_NUMBERS)
    if form == "memory":
        return _memory(dice)
    if form == "trust":
        chosen = dice.sample(sorted(_TRUST), dice.randrange(4))
        return "{" + ", ".join(f"{name} = {dice.choice(_TRUST[name])}" for name in chosen) + "}"
    if form == "table":
        entries = (
            f'"{dice.choice(_WORDS)}{at}" = {_value(dice, "")}' for at in range(dice.randrange(3))
        )
        return "{" + ", ".join(entries) + "}"
    if form in ("int table", "str table"):
        kind = _NUMBERS[:10] if form == "int table" else tuple(f'"{word}"' for word in _WORDS)
        entries = (f'"{word}" = {dice.choice(kind)}' for word in dice.sample(("A", "B:C", "s3"), 2))
        return "{" + ", ".join(entries) + "}"
    kinds = ("word",) if form == "words" else ("word", "number")
    return "[" + ", ".join(_entry(dice, dice.choice(kinds)) for _ in range(dice.randrange(4))) + "]"


_TRUST = {
    "owners": (
        "[]",
        '["root"]',
        "[0, 1000]",
        '["nobody-of-that-name"]',
        "[-1]",
        "[true]",
        '"root"',
    ),
    "groups": ("[]", '["root"]', "[0]", '[""]', '["\\u0000"]', "[[]]"),
    "allow_writable": ("[]", '["/tmp/**"]', '["\\u0000"]', '["["]', "[1]", '"/tmp"'),
    "require_record": ("true", "false", "1"),
    "frozen": ("true", "false", '"true"'),
    "lock": ('"x.lock"', '"/a/x.lock"', '"~\\u0000"', '""', "5"),
    "unknown": ("1",),
}
_FITTING = {
    "trust": "trust",
    "plugin_dirs": "words",
    "enable": "words",
    "disable": "words",
    "visible_devices": "words",
    "priorities": "int table",
    "scheme_pins": "str table",
    "dlpack_types": "str table",
    "memory": "memory",
    "copy_streams": "number",
    "first_contact": "word",
    "first_contact_timeout_s": "number",
    "first_contact_memory_mib": "number",
    "first_contact_accept": "words",
    "watch_poll_interval_s": "number",
    "watch_polling": "number",
    "load": "word",
}


def _entry(dice: random.Random, kind: str) -> str:
    return f'"{dice.choice(_WORDS)}"' if kind == "word" else dice.choice(_NUMBERS)


def _memory(dice: random.Random, depth: int = 0) -> str:
    entries = [
        f"{key} = {dice.choice(_NUMBERS)}"
        for key in dice.sample(sorted(_MEMORY), dice.randrange(3))
    ]
    if depth < 2 and dice.random() < 0.4:
        entries.append(f"{dice.choice(('GPU', 'NPU', 'gpu', '_X'))} = {_memory(dice, depth + 1)}")
    return "{" + ", ".join(entries) + "}"


def _spoilt(text: str, dice: random.Random) -> str:
    for _ in range(dice.randrange(1, 4)):
        at = dice.randrange(len(text) + 1)
        cut = at + dice.choice((0, 0, 1, 1, 5, 40))
        text = text[:at] + dice.choice((*_PIECES, "", chr(dice.randrange(0xD800)))) + text[cut:]
    return text


def _file(content: bytes) -> str:
    fd = _descriptor()
    os.ftruncate(fd, 0)
    os.pwrite(fd, content, 0)
    return f"/proc/self/fd/{fd}"


@cache
def _descriptor() -> int:
    return os.memfd_create("fuzzed.toml")
