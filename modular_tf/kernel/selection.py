"""Which of the registered kernels serves a call, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.abi.data_types import DataType
from modular_tf.errors import InvalidArgumentError, ModularTFError, NotFoundError
from modular_tf.kernel.registration import DEFAULT_DEVICE, DEVICE_PLUGGABLE, dt_name
from modular_tf.rules import Violation
from modular_tf.rules.kernel import (
    CONSTRAINED_ATTRIBUTE_EXISTS,
    KERNEL_MATCHES,
    LABEL_REGISTERED,
    ONE_BEST_KERNEL,
    ONE_DEFAULT_KERNEL,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modular_tf.kernel.node import Node
    from modular_tf.kernel.registration import KernelRegistration

__all__ = ["KernelCandidate", "candidates", "device_types_of", "select"]


@dataclass(frozen=True)
class KernelCandidate:
    """A registered kernel of a call's operation, judged.

    Attributes:
        registration: The kernel.
        is_selected: Whether it serves the call.
        reason: Why it does, or why it does not.
    """

    registration: KernelRegistration
    is_selected: bool
    reason: str


def select(
    registrations: Iterable[KernelRegistration],
    node: Node,
    device_type: str,
    *,
    is_pluggable: bool = True,
) -> KernelRegistration:
    """Return the kernel that serves a call.

    Among the kernels for the device's type that match, the one of highest priority. Where none
    does, likewise among those for `DEVICE_PLUGGABLE`, if the device is a plugin's, and then among
    those for `DEFAULT_DEVICE`, of which only one may match. Kernels of other operations are
    ignored, and the order of all means nothing; `device_type` is case-sensitive.

    Raises:
        NotFoundError: No kernel matches (rule KN-034, or KN-038 for a label that none has); the
            message lists those of the operation.
        InvalidArgumentError: Two match that nothing ranks (KN-033, KN-036), or one constrains what
            is no type attribute of the operation (KN-013).
    """
    of_op = [each for each in registrations if each.op == node.op]
    for stage in device_types_of(device_type, is_pluggable=is_pluggable):
        with_key = [each for each in of_op if (each.device_type, each.label) == (stage, node.label)]
        matching = [each for each in with_key if _mismatch(each, node) is None]
        if matching:
            return _best(matching, node, stage)
    raise _none_matches(of_op, node, device_type)


def device_types_of(device_type: str, *, is_pluggable: bool) -> tuple[str, ...]:
    """Return the device types whose kernels serve a device, the preferred first."""
    between = (DEVICE_PLUGGABLE,) if is_pluggable else ()
    return tuple(dict.fromkeys((device_type, *between, DEFAULT_DEVICE)))


def _mismatch(registration: KernelRegistration, node: Node) -> str | None:
    """Return which constraint a call does not meet; None where it meets all.

    Raises InvalidArgumentError if a constraint before that is on no type attribute (rule KN-013).
    """
    for name, wanted in registration.constraint_pairs:
        for found in _types(registration, node, name):
            if found is not wanted:
                return f"{name} is {dt_name(found)}, not {dt_name(wanted)}"
    return None


def _types(registration: KernelRegistration, node: Node, name: str) -> Sequence[DataType]:
    if name not in node.attrs:
        raise _unfit_constraint(registration, f"{name!r}, which {node.op} does not have")
    value = node.attrs[name]
    if isinstance(value, DataType):
        return (value,)
    if type(value) is tuple and all(isinstance(each, DataType) for each in value):
        return value  # type: ignore[return-value]
    raise _unfit_constraint(registration, f"{name!r}, which is neither a type nor a list of types")


def _unfit_constraint(registration: KernelRegistration, what: str) -> InvalidArgumentError:
    text = f"{registration.op}: {registration.who} constrains attribute {what}"
    return Violation(CONSTRAINED_ATTRIBUTE_EXISTS, text).error(
        InvalidArgumentError,
        plugin=registration.plugin,
        operation=registration.op,
        hint=". Disable the plugin to use other kernels of this operation.",
    )


def _best(matching: list[KernelRegistration], node: Node, stage: str) -> KernelRegistration:
    highest = max(each.priority for each in matching)
    top = [each for each in matching if stage == DEFAULT_DEVICE or each.priority == highest]
    if len(top) == 1:
        return top[0]
    names = " and ".join(f"{each.who} ({each.where})" for each in top)
    rule, why = ONE_BEST_KERNEL, f"all of priority {highest}"
    if stage == DEFAULT_DEVICE:
        rule, why = ONE_DEFAULT_KERNEL, "for the device type DEFAULT"
    text = f"{node.op}: {len(top)} kernels match the call, {why}: {names}"
    raise Violation(rule, text).error(
        InvalidArgumentError, operation=node.op, hint=f". {rule.remedy}"
    )


def _none_matches(of_op: list[KernelRegistration], node: Node, device_type: str) -> NotFoundError:
    types = []
    for name, value in node.attrs.items():
        if isinstance(value, DataType):
            types.append(f"{name}={dt_name(value)}")
        elif type(value) is tuple and value and all(isinstance(each, DataType) for each in value):
            names = ", ".join(map(dt_name, value))  # type: ignore[arg-type]  # all are, as just seen
            types.append(f"{name}={names}" if len(value) == 1 else f"{name}=[{names}]")
    with_types = f" with {', '.join(types)}" if types else ""
    labelled = f" and label {node.label!r}" if node.label else ""
    text = f"{node.op}: no kernel for device type {device_type!r}{labelled} serves a call"
    listed = "\n".join(f"  {each.where}" for each in of_op) or "  <no registered kernels>"
    has_label = any(each.label == node.label for each in of_op)
    rule = LABEL_REGISTERED if node.label and not has_label else KERNEL_MATCHES
    # Where there is no kernel at all, no other input and no other device would help.
    remedy = (
        rule.remedy if of_op else "Install or load a plugin that has kernels of this operation."
    )
    return Violation(rule, text + with_types).error(
        NotFoundError, operation=node.op, hint=f". {remedy} Registered:\n{listed}"
    )


def candidates(
    registrations: Iterable[KernelRegistration],
    node: Node,
    device_type: str,
    *,
    is_pluggable: bool = True,
) -> tuple[KernelCandidate, ...]:
    """Return each kernel of a call's operation with the reason for it or against it.

    Arguments as of `select`, whose errors are reported as reasons.
    """
    of_op = [each for each in registrations if each.op == node.op]
    try:
        selected = select(of_op, node, device_type, is_pluggable=is_pluggable)
    except ModularTFError:
        selected = None
    stages = device_types_of(device_type, is_pluggable=is_pluggable)
    return tuple(
        KernelCandidate(each, each is selected, _reason(each, selected, node, stages))
        for each in of_op
    )


def _reason(
    registration: KernelRegistration,
    selected: KernelRegistration | None,
    node: Node,
    stages: tuple[str, ...],
) -> str:
    against = _reason_against(registration, node, stages)
    if against is not None:
        return against
    if selected is None:
        return "matches, and so does another one that nothing ranks below or above it"
    if registration is selected:
        return f"matches; priority {registration.priority}"
    if registration.device_type != selected.device_type:
        return f"matches; one for device type {selected.device_type!r} comes first"
    return f"matches; one of priority {selected.priority} comes before {registration.priority}"


def _reason_against(
    registration: KernelRegistration, node: Node, stages: tuple[str, ...]
) -> str | None:
    if registration.device_type not in stages:
        return f"is for device type {registration.device_type!r}, not {stages[0]!r}"
    if registration.label != node.label:
        return f"has label {registration.label!r}, not {node.label!r}"
    try:
        return _mismatch(registration, node)
    except InvalidArgumentError as error:
        return error.message
