"""Kernels and definitions of operations, as values of JSON and as rows of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.data_types import DataType
from modular_tf.kernel.op_definition import FunctionName, TensorText

if TYPE_CHECKING:
    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition
    from modular_tf.kernel.registration import KernelRegistration

KERNEL_HEADERS = (
    "op", "device type", "constraints", "host args", "priority", "label", "plugin",
)  # fmt: skip


def kernel_as_dict(kernel: KernelRegistration) -> dict[str, Any]:
    """Return a kernel as a JSON object."""
    return {
        "op": kernel.op,
        "device_type": kernel.device_type,
        "name": kernel.name,
        "constraints": [
            {"attr": attr, "type": kind.name} for attr, kind in kernel.constraint_pairs
        ],
        "host_args": list(kernel.host_args),
        "priority": kernel.priority,
        "label": kernel.label,
        "asynchronous": kernel.asynchronous,
        "plugin": kernel.plugin,
    }


def kernel_row(kernel: dict[str, Any]) -> tuple[object, ...]:
    """Return the cells of a kernel's JSON object below `KERNEL_HEADERS`."""
    return (
        kernel["op"],
        kernel["device_type"],
        ", ".join(f"{each['attr']}={each['type']}" for each in kernel["constraints"]),
        ", ".join(kernel["host_args"]),
        kernel["priority"],
        kernel["label"],
        kernel["plugin"],
    )


def definition_as_dict(definition: OpDefinition) -> dict[str, Any]:
    """Return a definition as a JSON object."""
    return {
        "name": definition.name,
        "signature": f"{definition.name}{definition.signature}",
        "source": definition.source,
        "inputs": [_arg(arg) for arg in definition.inputs],
        "outputs": [_arg(arg) for arg in definition.outputs],
        "attrs": [_attr(attr, definition) for attr in definition.attrs],
        "is_stateful": definition.is_stateful,
        "is_commutative": definition.is_commutative,
        "is_aggregate": definition.is_aggregate,
        "allows_uninitialized_input": definition.allows_uninitialized_input,
        "is_deprecated": definition.is_deprecated,
    }


def _arg(arg: ArgDefinition) -> dict[str, Any]:
    return {
        "name": arg.name,
        "type": arg.type_text,
        "is_list": arg.is_list,
        "is_ref": arg.is_ref,
    }


def _attr(attr: AttrDefinition, definition: OpDefinition) -> dict[str, Any]:
    return {
        "name": attr.name,
        "kind": attr.kind,
        "is_list": attr.is_list,
        "allowed": None if attr.allowed is None else [as_json(each) for each in attr.allowed],
        "minimum": attr.minimum,
        "has_default": attr.has_default,
        "default": as_json(attr.default) if attr.has_default else None,
        "is_inferred": attr.name in definition.inferred_attrs,
    }


def as_json(value: Any) -> Any:
    """Return a value of an attribute as JSON has it: names of types and functions as text."""
    if isinstance(value, (TensorText, FunctionName)):
        return value[0]
    if isinstance(value, tuple):
        return [as_json(each) for each in value]
    return value.name if isinstance(value, DataType) else value
