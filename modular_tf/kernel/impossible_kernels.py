"""Faults of a plugin's kernels and definitions: duplicates, conflicts, kernels nothing selects."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from modular_tf.kernel.registration import dt_name
from modular_tf.rules import Violation
from modular_tf.rules.kernel import (
    CONSTRAINED_ATTRIBUTE_EXISTS,
    CONSTRAINT_TYPE_ALLOWED,
    CONSTRAINTS_AGREE,
    DEFINITION_UNIQUE,
    HOST_ARGUMENT_EXISTS,
    KERNEL_UNIQUE,
    OPERATION_DEFINED,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping

    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition
    from modular_tf.kernel.registration import KernelRegistration

    Lookup = Callable[[str], OpDefinition | None]

__all__ = ["compare", "definition_conflicts", "impossible_kernels"]

_MOST_NAMED = 8  # operations in one message
_FLAGS = {
    "is_stateful": "stateful",
    "is_commutative": "commutative",
    "is_aggregate": "an aggregate",
    "allows_uninitialized_input": "allowed uninitialized inputs",
}


def definition_conflicts(
    definitions: Iterable[OpDefinition], definition_of: Lookup
) -> list[Violation]:
    """Return which definitions differ from those that count for their names (rule KN-023)."""
    found = []
    for each in definitions:
        known = definition_of(each.name)
        if known is not None and (differences := compare(each, known)):
            source = known.source or "another plugin"
            text = f"definition of {each.name}: expected that of {source}, found that "
            found.append(Violation(DEFINITION_UNIQUE, text + "; ".join(differences)))
    return found


def impossible_kernels(
    kernels: Iterable[KernelRegistration],
    definition_of: Lookup,
    others: Iterable[KernelRegistration] = (),
) -> list[Violation]:
    """Return what is wrong with a plugin's kernels: of each rule that they break, one finding.

    `others` are kernels of other plugins for the same operations.
    """
    kernels = tuple(kernels)
    by_rule: dict[str, dict[str, list[Violation]]] = {}
    for kernel, fault in chain(
        _faults_of_all(kernels, definition_of), _duplicates(kernels, others)
    ):
        by_rule.setdefault(fault.rule_id, {}).setdefault(kernel.op, []).append(fault)
    return [_summary(of_ops) for of_ops in by_rule.values()]


def _summary(of_ops: Mapping[str, list[Violation]]) -> Violation:
    """Return the first fault of a rule, with the other operations whose kernels have it too."""
    (op, (first, *_)), *_ = of_ops.items()
    others = [name for name in of_ops if name != op]
    if not others:
        return first
    named = ", ".join(others[:_MOST_NAMED]) + (", ..." if len(others) > _MOST_NAMED else "")
    more = f"{len(others)} more operation{'s' * (len(others) > 1)} ({named})"
    return replace(first, message=f"{first.message}; likewise kernels of {more}")


def _faults_of_all(
    kernels: Iterable[KernelRegistration], definition_of: Lookup
) -> Iterator[tuple[KernelRegistration, Violation]]:
    for kernel in kernels:
        for fault in _faults(kernel, definition_of(kernel.op)):
            yield kernel, fault


def _faults(kernel: KernelRegistration, definition: OpDefinition | None) -> Iterator[Violation]:
    yield from _contradictions(kernel)
    if definition is None:
        text = f"kernel for unknown op {kernel.op}: expected a definition, found none"
        yield Violation(OPERATION_DEFINED, text)
        return
    for name, kind in kernel.constraint_pairs:
        attr = definition.attrs_by_name.get(name)
        if attr is None or attr.kind != "type":
            kinds = "no such attribute" if attr is None else f"one of kind {attr.type_text}"
            text = f"{_title(kernel)}: expected a type attribute {name!r} to constrain, found"
            yield Violation(CONSTRAINED_ATTRIBUTE_EXISTS, f"{text} {kinds}")
        elif attr.allowed is not None and kind not in attr.allowed:
            text = f"expected {name} to be constrained to {attr.type_text}, found {dt_name(kind)}"
            yield Violation(CONSTRAINT_TYPE_ALLOWED, f"{_title(kernel)}: {text}")
    args = [each.name for each in (*definition.inputs, *definition.outputs)]
    for name in kernel.host_args:
        if name not in args:
            text = f"expected host argument {name!r} to be one of {', '.join(args)}"
            yield Violation(HOST_ARGUMENT_EXISTS, f"{_title(kernel)}: {text}")


def _contradictions(kernel: KernelRegistration) -> Iterator[Violation]:
    kinds = dict(kernel.constraint_pairs)
    for name, kind in kernel.constraint_pairs:
        if kinds[name] is not kind:
            both = f"both {dt_name(kind)} and {dt_name(kinds[name])}"
            text = f"{_title(kernel)}: expected one type for {name!r}, found {both}"
            yield Violation(CONSTRAINTS_AGREE, text)


def _duplicates(
    kernels: Iterable[KernelRegistration], others: Iterable[KernelRegistration]
) -> Iterator[tuple[KernelRegistration, Violation]]:
    known = {_identity(each): each for each in others}
    for kernel in kernels:
        same = known.setdefault(_identity(kernel), kernel)
        if same is not kernel:
            text = f"{_title(kernel)}: expected one kernel of priority {kernel.priority} for these"
            yield kernel, Violation(KERNEL_UNIQUE, f"{text}, found {kernel.who} and {same.who}")


def _identity(kernel: KernelRegistration) -> Hashable:
    return kernel.key, frozenset(kernel.constraint_pairs), kernel.priority


def _title(kernel: KernelRegistration) -> str:
    return f"kernel of {kernel.op} ({kernel.where})"


# -- definitions of one operation ------------------------------------------------------------------


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
