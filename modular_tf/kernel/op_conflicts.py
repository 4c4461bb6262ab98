"""What two definitions of one operation say differently."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition

__all__ = ["compare"]

_FLAGS = {
    "is_stateful": "stateful",
    "is_commutative": "commutative",
    "is_aggregate": "an aggregate",
    "allows_uninitialized_input": "allowed uninitialized inputs",
}


def compare(definition: OpDefinition, other: OpDefinition) -> list[str]:
    """Return the differences of two definitions in words, none if they are identical.

    The order of attributes and of allowed values means nothing, nor does deprecation, which
    releases add. The words are about `definition`; of `other` the source is named.
    """
    if definition == other:
        return []
    return [
        *_arg_differences("input", definition.inputs, other.inputs, other.source),
        *_arg_differences("output", definition.outputs, other.outputs, other.source),
        *_attr_differences(definition, other),
        *_flag_differences(definition, other),
    ]


def _arg_differences(
    kind: str, args: tuple[ArgDefinition, ...], others: tuple[ArgDefinition, ...], source: str
) -> Iterator[str]:
    for index, (arg, other) in enumerate(zip_longest(args, others)):
        if arg != other:
            yield _difference(f"{kind} {index}", _text(arg), _text(other), source)


def _attr_differences(definition: OpDefinition, other: OpDefinition) -> Iterator[str]:
    mine, theirs = definition.attrs_by_name, other.attrs_by_name
    for name in dict.fromkeys((*mine, *theirs)):
        attr, reference = mine.get(name), theirs.get(name)
        if _unordered(attr) != _unordered(reference):
            yield _difference(
                f"attribute {name}", _attr_text(attr), _attr_text(reference), other.source
            )


def _flag_differences(definition: OpDefinition, other: OpDefinition) -> Iterator[str]:
    for name, text in _FLAGS.items():
        if getattr(definition, name) != getattr(other, name):
            first, second = text, f"not {text}"
            if not getattr(definition, name):
                first, second = second, first
            yield _difference("the operation", first, second, other.source)


def _difference(subject: str, mine: str, theirs: str, source: str) -> str:
    return f"{subject} is {mine}; for {source or 'the other definition'} it is {theirs}"


def _text(arg: ArgDefinition | None) -> str:
    return "absent" if arg is None else repr(arg)


def _attr_text(attr: AttrDefinition | None) -> str:
    return "absent" if attr is None else repr(attr).partition(": ")[2]


def _unordered(attr: AttrDefinition | None) -> AttrDefinition | None:
    """Return the attribute with its allowed values in a fixed order."""
    if attr is None or attr.allowed is None:
        return attr
    return replace(attr, allowed=tuple(sorted(attr.allowed, key=str)))
