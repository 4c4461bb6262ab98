"""Checks of values that another process wrote.

A plugin ran in that process, and a file may have been written by anybody. So everything has a type
and a bound, and a text has no character that a terminal obeys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.rules import loader_rules

if TYPE_CHECKING:
    from modular_tf.rules import Rule

_T = TypeVar("_T")


def shown(value: Any) -> str:
    """Return the beginning of a value for a message, whatever it holds."""
    try:
        return f"{value!r:.200}"
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"


def fields_of(value: Any, names: frozenset[str]) -> dict[str, Any]:
    """Return an object with these fields and no others.

    Raises:
        ValueError: It is none; so do the other functions.
    """
    if not isinstance(value, dict) or value.keys() != names:
        raise ValueError(f"expected an object with {sorted(names)}, found {shown(value)}")
    return value


def typed(value: Any, kind: type[_T]) -> _T:
    """Return a value of this type, not of one that is derived from it: True is no number here."""
    if type(value) is not kind:
        raise ValueError(f"expected {kind.__name__}, found {shown(value)}")
    return value


def number_in(value: Any, least: int, most: int) -> int:
    """Return a whole number within bounds."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"expected a number from {least} to {most}, found another value")
    return value


def listed(value: Any, most: int) -> list[Any]:
    """Return a list that has no more than `most` values, of any type."""
    if type(value) is not list or len(value) > most:
        raise ValueError(f"expected a list of at most {most} values, found {shown(value)}")
    return value


def list_of(value: Any, kind: type[_T], most: int) -> list[_T]:
    """Return a list of values of one type that has no more than `most`."""
    return [typed(entry, kind) for entry in listed(value, most)]


def known_rule(value: Any) -> Rule:
    """Return the rule that the loader judges by, given its id."""
    found = loader_rules().get(typed(value, str))
    if found is None:
        raise ValueError(f"expected the id of a rule, found {shown(value)}")
    return found
