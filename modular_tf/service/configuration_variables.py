"""Keys of the configuration that variables of the environment give."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from modular_tf.errors import ConfigError
from modular_tf.service.configuration_keys import KEYS, NONE, PROCESS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SHORT_NUMBER = "[0-9]{1,9}"


def said_by(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of single keys that variables of the environment give."""
    values: dict[str, Any] = {}
    for key, read in _READERS.items():
        (variable,) = KEYS[key].variables
        if not (text := variables.get(variable)):
            continue
        values[key] = read(text)
        if (expected := KEYS[key].why_wrong(values[key])) is not None:
            expected = _WRITTEN.get(read, expected)
            raise ConfigError(f"{variable}: expected {expected}, found {text!r}")
    return values


def _flag(text: str) -> bool | str:
    return {"0": False, "1": True}.get(text, text)


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(_SHORT_NUMBER, text) else text


def _seconds(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _isolation(text: str) -> str | dict[str, str]:
    """Read `process`, `none`, or `GLOB=process,GLOB=none`."""
    if "=" not in text:
        return text
    pairs = (entry.rpartition("=") for entry in text.split(","))
    return {glob.strip(): place.strip() for glob, _, place in pairs}


_READERS: Mapping[str, Callable[[str], object]] = {
    "first_contact": str,
    "load": str,
    "isolation": _isolation,
    "call_timeout_s": _seconds,
    "calls_at_once": _number,
    "tell_ended_calls": _flag,
    "statistics": _flag,
    "fsspec_fallback": _flag,
}
"""How the keys are read that a variable of the environment may give."""
_WRITTEN: Mapping[object, str] = {
    _flag: "0 or 1",
    _isolation: f"{NONE}, {PROCESS}, or GLOB={PROCESS},GLOB={NONE}",
}
"""What a variable may hold, where that is not written as in the file."""
