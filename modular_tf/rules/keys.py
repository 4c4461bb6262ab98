"""The keys of a table of settings: what each may hold, and which variables replace it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

_SHORT_NUMBER = "[0-9]{1,9}"


class Key(NamedTuple):
    """One key of a table of settings."""

    expected: str  # what a value must be, in the words of messages
    is_right: Callable[[Any], bool]  # whether a value is that
    variables: tuple[str, ...] = ()  # of the environment; they replace the file's value
    read: Callable[[str], Any] = str  # makes the value of a variable's text
    written: str | None = None  # what a variable may hold, where that is not written as in the file

    def why_wrong(self, value: Any) -> str | None:
        """Return what the value should be, None if it is that."""
        return None if self.is_right(value) else self.expected


def setting(default: Any, key: Key) -> Any:
    """Return the field of a dataclass that has the value of a key; a function makes the default."""
    metadata = {"key": key}
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


def keys_of(settings: Any) -> dict[str, Key]:
    """Return the keys of a dataclass of settings, by name."""
    return {
        found.name: found.metadata["key"] for found in fields(settings) if "key" in found.metadata
    }


def flag(*variables: str) -> Key:
    """Return a key that holds true or false."""
    return Key(
        "true or false",
        lambda value: isinstance(value, bool),
        variables,
        lambda text: {"0": False, "1": True}.get(text, text),
        "0 or 1",
    )


def whole(least: int, most: int, *variables: str) -> Key:
    """Return a key that holds a whole number."""
    return Key(
        f"a number from {least} to {most}",
        lambda value: type(value) is int and least <= value <= most,
        variables,
        lambda text: int(text) if re.fullmatch(_SHORT_NUMBER, text) else text,
    )


def choice(words: tuple[str, ...], *variables: str) -> Key:
    """Return a key that holds one of some words."""
    return Key(f"one of {words}", lambda value: value in words, variables)


def list_of(expected: str, is_right: Callable[[Any], bool]) -> Key:
    """Return a key that holds a list, each entry of which is right."""
    return Key(
        expected, lambda value: isinstance(value, list | tuple) and all(map(is_right, value))
    )


def table_of(kind: type[object]) -> Key:
    """Return a key that holds a table whose values are all of one type."""

    def is_right(value: Any) -> bool:
        return isinstance(value, Mapping) and all(type(entry) is kind for entry in value.values())

    return Key(f"a table of {kind.__name__} values", is_right)


def is_number(value: Any) -> bool:
    """Return whether a value is a number: for Python, true and false are numbers too."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def unknown_keys(found: Iterable[str], known: Collection[str]) -> str | None:
    """Return what is wrong with the keys of a table, and what was perhaps meant; or None."""
    unknown = sorted(set(found).difference(known))
    if not unknown:
        return None
    from difflib import get_close_matches  # noqa: PLC0415  (for mistakes only)

    close = [match for key in unknown for match in get_close_matches(key, known, n=1)]
    hint = f"did you mean {' and '.join(close)}? " if close else ""
    return f"unknown keys {unknown}; {hint}known: {sorted(known)}"


def checked_table(keys: Mapping[str, Key], values: Any, where: str) -> dict[str, Any]:
    """Return a table of a file, with tuples for its lists.

    Raises ValueError, which names the key below `where` ("" for a whole file), what was expected
    and what was found.
    """
    if not isinstance(values, Mapping):
        message = f"expected a table, found {values!r:.200}"
        raise ValueError(f"{where}: {message}" if where else message)  # noqa: TRY004  (a value's)
    if (wrong := unknown_keys(values, keys)) is not None:
        raise ValueError(f"{where}: {wrong}" if where else wrong)
    for name, value in values.items():
        if (expected := keys[name].why_wrong(value)) is not None:
            key = f"{where}.{name}" if where else name
            raise ValueError(f"{key}: expected {expected}, found {value!r:.200}")
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}


def values_of(settings: type[Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return what variables say as arguments for a dataclass; ValueError if one is wrong."""
    values: dict[str, Any] = {}
    for name, key in keys_of(settings).items():
        for variable in key.variables:
            if text := environment.get(variable):
                values[name] = key.read(text)
                if (expected := key.why_wrong(values[name])) is not None:
                    expected = key.written or expected
                    raise ValueError(f"{variable}: expected {expected}, found {text!r}")
    return values
