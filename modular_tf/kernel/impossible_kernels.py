"""What is wrong with the kernels of a plugin: duplicates, and kernels that nothing can select."""

from __future__ import annotations

from collections import Counter
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
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from modular_tf.kernel.op_definition import OpDefinition
    from modular_tf.kernel.registration import KernelRegistration

    Lookup = Callable[[str], OpDefinition | None]

__all__ = ["definition_conflicts", "impossible_kernels"]


def definition_conflicts(
    definitions: Iterable[OpDefinition], definition_of: Lookup
) -> list[Violation]:
    """Return which definitions differ from those that count for their names (rule KN-023)."""
    return [
        Violation(
            DEFINITION_UNIQUE,
            f"{each.name}: expected the definition of {known.source or 'another plugin'}, "
            f"{known!r}, found {each!r}",
        )
        for each in definitions
        if (known := definition_of(each.name)) is not None and known != each
    ]


def impossible_kernels(
    kernels: Iterable[KernelRegistration],
    definition_of: Lookup,
    others: Iterable[KernelRegistration] = (),
) -> list[Violation]:
    """Return what is wrong with kernels; a fault that several share is told once.

    Args:
        kernels: Of one plugin.
        definition_of: Returns the definition of an operation.
        others: Kernels of other plugins for the same operations.
    """
    kernels = tuple(kernels)
    found = [fault for each in kernels for fault in _faults(each, definition_of(each.op))]
    found += _duplicates(kernels, others)
    return list({(fault.rule_id, fault.message): fault for fault in found}.values())


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
    kernels: tuple[KernelRegistration, ...], others: Iterable[KernelRegistration]
) -> Iterator[Violation]:
    known = {_identity(each): each for each in others}
    counts = Counter(map(_identity, kernels))
    for kernel in kernels:
        same = known.get(_identity(kernel))
        count = counts[_identity(kernel)]
        if same is not None or count > 1:
            found = f"{count} of them" if same is None else f"another one of plugin {same.plugin}"
            text = f"{_title(kernel)}: expected one kernel of priority {kernel.priority}"
            yield Violation(KERNEL_UNIQUE, f"{text} for these, found {found}")


def _identity(kernel: KernelRegistration) -> Hashable:
    return kernel.key, frozenset(kernel.constraint_pairs), kernel.priority


def _title(kernel: KernelRegistration) -> str:
    return f"kernel of {kernel.op} ({kernel.where})"
