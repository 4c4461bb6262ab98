"""Definitions, kernels and nodes for the tests of this folder."""

from __future__ import annotations

from modular_tf.abi.data_types import data_type
from modular_tf.kernel.node import Node, build_node
from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition
from modular_tf.kernel.registration import KernelRegistration

FLOAT, DOUBLE, INT32, INT64, STRING = map(
    data_type, ("float", "double", "int32", "int64", "string")
)


def attr(name, kind, **fields):
    return AttrDefinition(name, kind, **fields)


def defaulted(name, kind, default, **fields):
    return AttrDefinition(name, kind, default=default, has_default=True, **fields)


MATMUL = OpDefinition(
    "MatMul",
    (ArgDefinition("a", type_attr="T"), ArgDefinition("b", type_attr="T")),
    (ArgDefinition("product", type_attr="T"),),
    (
        defaulted("transpose_a", "bool", False),
        defaulted("transpose_b", "bool", False),
        attr("T", "type", allowed=(FLOAT, DOUBLE, INT32)),
    ),
)
CONCAT = OpDefinition(
    "ConcatV2",
    (
        ArgDefinition("values", type_attr="T", number_attr="N"),
        ArgDefinition("axis", type_attr="Tidx"),
    ),
    (ArgDefinition("output", type_attr="T"),),
    (
        attr("N", "int", minimum=2),
        attr("T", "type"),
        defaulted("Tidx", "type", INT32, allowed=(INT32, INT64)),
    ),
)
CONV = OpDefinition(
    "Conv",
    (ArgDefinition("input", type_attr="T"),),
    (ArgDefinition("output", type_attr="T"),),
    (
        attr("T", "type"),
        attr("strides", "int", is_list=True, minimum=2),
        attr("padding", "string", allowed=("SAME", "VALID")),
    ),
)
BATCH = OpDefinition(
    "Batch",
    (
        ArgDefinition("tensors", type_list_attr="Tin"),
        ArgDefinition("seeds", type=INT64, number_attr="N"),
        ArgDefinition("names", type=STRING, number_attr="N"),
    ),
    (
        ArgDefinition("copies", type_list_attr="Tin"),
        ArgDefinition("sums", type_attr="out", number_attr="N"),
        ArgDefinition("count", type=INT32),
    ),
    (
        attr("Tin", "type", is_list=True, minimum=1),
        attr("N", "int", minimum=0),
        attr("out", "type"),
    ),
)


def kernel(op="MatMul", device_type="CPU", /, *constraints, **fields):
    """Return a registration of a kernel; constraints are pairs."""
    fields.setdefault("plugin", "libk.so")
    return KernelRegistration(op, device_type, constraint_pairs=constraints, **fields)


def matmul_node(kind=FLOAT, **fields) -> Node:
    return build_node(MATMUL, [kind, kind], **fields)
