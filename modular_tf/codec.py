"""Records as values of JSON, and back with each type and bound checked.

A plugin ran in the process that wrote them, and a file may have been written by anybody. So a type
says all that is allowed: `Annotated[int, between(0, 9)]`. Checks are functions that return the
value to use, or raise `ValueError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from operator import itemgetter
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from modular_tf.rules import Rule, Violation, loader_rules

__all__ = ["at_most", "between", "decode", "digest", "encode", "like", "row", "shown"]

_T = TypeVar("_T")
_Sized = TypeVar("_Sized", bound=Sized)
_Check = Callable[[Any], Any]

_PLAIN = (str, int, bool, NoneType)
_DIGITS = 64
_rows: set[type] = set()


def row(kind: type[_T]) -> type[_T]:
    """Have a record written as a list, without the names of its fields."""
    _rows.add(kind)
    return kind


def encode(value: Any) -> Any:
    """Return a record, or what one can hold, as values of JSON."""
    kind: Any = type(value)
    if kind in _PLAIN or kind is float:
        return value
    if issubclass(kind, Enum):
        return value.value
    if kind is Rule:
        return value.id
    if names := _field_names(kind):
        values = [encode(getattr(value, name)) for name in names]
        if kind is Violation and value.rule is not None and value.remedy == value.rule.remedy:
            values[names.index("remedy")] = None  # the rule gives it again
        return values if kind in _rows else dict(zip(names, values, strict=True))
    if issubclass(kind, Mapping):
        return {name: encode(each) for name, each in value.items()}
    if issubclass(kind, frozenset):
        return sorted(map(encode, value))
    return [encode(each) for each in value]


def decode(kind: type[_T], value: Any) -> _T:
    """Return the record that `encode` made values of JSON of.

    `kind` is its type: a named tuple, a dataclass, or what a field of one may be. The values may
    come from anywhere. Raises `ValueError` if they have another shape or exceed a bound; the
    message names the field.
    """
    target: Any = kind
    decoded: _T = _decoder(target)(value)
    return decoded


def at_most(most: int) -> Callable[[_Sized], _Sized]:
    """Return a check of a length."""

    def check(value: _Sized) -> _Sized:
        if len(value) > most:
            raise ValueError(f"expected a length of at most {most}, found {len(value)}")
        return value

    return check


def between(least: float, most: float) -> Callable[[Any], Any]:
    """Return a check of a number, whose bounds are allowed."""

    def check(value: Any) -> Any:
        if not least <= value <= most:  # also not for NaN
            raise ValueError(f"expected a number from {least} to {most}, found another")
        return value

    return check


def like(pattern: str | re.Pattern[str]) -> Callable[[str], str]:
    """Return a check of a whole text."""
    matches = re.compile(pattern).fullmatch

    def check(value: str) -> str:
        if not matches(value):
            text = getattr(pattern, "pattern", pattern)
            raise ValueError(f"expected a text like {text}, found {shown(value)}")
        return value

    return check


def digest(value: str) -> str:
    """Return a text if it is a SHA-256 in hexadecimal digits."""
    if len(value) != _DIGITS or value.strip("0123456789abcdef"):
        raise ValueError(f"expected 64 hexadecimal digits, found {shown(value)}")
    return value


def shown(value: Any) -> str:
    """Return the beginning of a value for a message, whatever it holds."""
    try:
        return f"{value!r:.200}"
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"


@cache
def _decoder(kind: Any) -> _Check:
    """Return the function that decodes a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _checked(_decoder(arguments[0]), kind.__metadata__)
    if origin in (Union, UnionType):
        (other,) = set(arguments) - {NoneType}
        return _optional(_decoder(other))
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(*map(_decoder, arguments))
    if origin is not None and issubclass(origin, Sequence | frozenset):
        of_each = [_decoder(each) for each in arguments if each is not Ellipsis]
        is_fixed = origin is tuple and Ellipsis not in arguments
        return _fixed(of_each) if is_fixed else _sequence(origin, *of_each)
    if kind is float:
        return _number
    if kind is Any:
        return lambda value: value
    if kind is Rule:
        return _known_rule
    if issubclass(kind, Enum):
        return _member(kind)
    return _record(kind) if _field_names(kind) else _plain(kind)


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    """Return the fields of a record, in the order of its constructor; none for other types."""
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    return getattr(kind, "_fields", ())


def _known_rule(value: Any) -> Rule:
    found = loader_rules().get(value) if type(value) is str else None
    if found is None:
        raise ValueError(f"expected the id of a rule, found {shown(value)}")
    return found


def _plain(kind: type) -> _Check:
    def decoder(value: Any) -> Any:
        if type(value) is not kind:  # True is no number here
            raise ValueError(f"expected {kind.__name__}, found {shown(value)}")
        return value

    return decoder


def _number(value: Any) -> Any:
    if type(value) is not float and type(value) is not int:
        raise ValueError(f"expected a number, found {shown(value)}")
    return value


def _checked(decoder: _Check, checks: Sequence[_Check]) -> _Check:
    first, *others = checks
    if others:
        inner = _checked(decoder, checks[:-1])
        return lambda value: checks[-1](inner(value))
    return lambda value: first(decoder(value))


def _optional(decoder: _Check) -> _Check:
    return lambda value: None if value is None else decoder(value)


def _member(kind: type[Enum]) -> _Check:
    members = {member.value: member for member in kind}

    def decoder(value: Any) -> Enum:
        if type(value) not in (str, int) or value not in members:
            raise ValueError(f"expected one of {sorted(members)}, found {shown(value)}")
        return members[value]

    return decoder


def _sequence(origin: type, decoder: _Check) -> _Check:
    empty = origin()

    def sequence(value: Any) -> Any:
        if type(value) is not list:
            raise ValueError(f"expected a list, found {shown(value)}")
        return origin([decoder(each) for each in value]) if value else empty

    return sequence


def _fixed(decoders: Sequence[_Check]) -> _Check:
    def fixed(value: Any) -> Any:
        if type(value) is not list or len(value) != len(decoders):
            raise ValueError(f"expected a list of {len(decoders)}, found {shown(value)}")
        return tuple([decoder(each) for decoder, each in zip(decoders, value, strict=True)])

    return fixed


def _mapping(of_key: _Check, of_value: _Check) -> _Check:
    def mapping(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"expected an object, found {shown(value)}")
        return {of_key(name): of_value(each) for name, each in value.items()}

    return mapping


def _record(kind: Any) -> _Check:
    hints = get_type_hints(kind, include_extras=True)
    names = _field_names(kind)
    decoders = [_decoder(hints[name]) for name in names]
    count, is_row = len(names), kind in _rows
    pick = itemgetter(*names) if count > 1 else lambda value: (value[names[0]],)
    make = getattr(kind, "_make", lambda made: kind(*made))

    def record(value: Any) -> Any:
        values: Any = None
        if is_row and type(value) is list and len(value) == count:
            values = value
        elif not is_row and type(value) is dict and len(value) == count:
            try:
                values = pick(value)
            except KeyError:
                values = None
        if values is None:
            form = "a list of" if is_row else "an object with"
            raise ValueError(f"expected {form} {', '.join(names)}, found {shown(value)}")
        try:
            return make([decoder(each) for decoder, each in zip(decoders, values)])  # noqa: B905
        except ValueError:
            _raise_first(names, decoders, values)
            raise

    return record


def _raise_first(names: Sequence[str], decoders: Sequence[_Check], values: Sequence[Any]) -> None:
    """Raise the error of the first field that cannot be decoded, with its name."""
    for name, decoder, value in zip(names, decoders, values, strict=True):
        try:
            decoder(value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
