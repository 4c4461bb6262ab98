"""What numpy computes for well-known operations."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Unsupported
from modular_tf.check.kernel.subject import Output

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from modular_tf.check.kernel.samples import Sample

    Reference = Callable[[Any, Mapping[str, Any], Sequence[Any]], Any]

_KINDS = frozenset({"float", "double", "int32", "int64"})


def _function(name: str) -> Reference:
    return lambda numpy, _, inputs: getattr(numpy, name)(*inputs)


def _reduction(name: str) -> Reference:
    def reduce(numpy: Any, attrs: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
        values, axes = inputs
        axis = tuple(int(each) for each in numpy.atleast_1d(axes))
        return getattr(numpy, name)(values, axis=axis, keepdims=attrs.get("keep_dims", False))

    return reduce


def _matmul(_: Any, attrs: Mapping[str, Any], inputs: Sequence[Any]) -> Any:
    a, b = inputs
    left = a.T if attrs.get("transpose_a") else a
    return left @ (b.T if attrs.get("transpose_b") else b)


_REFERENCES: Mapping[str, Reference] = {
    "MatMul": _matmul,
    "Relu": lambda numpy, _, inputs: numpy.maximum(inputs[0], 0),
    "Transpose": lambda numpy, _, inputs: numpy.transpose(inputs[0], inputs[1]),
    **{op: _function(name) for op, name in {
        "Abs": "abs", "Add": "add", "AddV2": "add", "Ceil": "ceil", "Cos": "cos", "Exp": "exp",
        "Floor": "floor", "Identity": "copy", "Maximum": "maximum", "Minimum": "minimum",
        "Mul": "multiply", "Neg": "negative", "Sin": "sin", "Square": "square", "Sub": "subtract",
        "Tanh": "tanh",
    }.items()},
    **{op: _reduction(name) for op, name in {
        "Max": "max", "Mean": "mean", "Min": "min", "Prod": "prod", "Sum": "sum",
    }.items()},
}  # fmt: skip


def reference_of(sample: Sample) -> list[Output] | None:
    """Return what a sample should give, None where that is not known.

    Raises:
        Unsupported: numpy is not installed.
    """
    compute = _REFERENCES.get(sample.node.op)
    kinds = (*sample.node.input_types, *sample.node.output_types)
    if compute is None or not all(kind.name in _KINDS for kind in kinds):
        return None
    try:
        numpy = import_module("numpy")
    except ImportError:
        raise Unsupported("numpy is not installed") from None
    inputs = [
        numpy.frombuffer(each.data, each.kind.element_name).reshape(each.shape)
        for each in sample.tensors
    ]
    (kind,) = sample.node.output_types
    found = numpy.asarray(compute(numpy, sample.node.attrs, inputs), kind.element_name)
    return [Output(kind, found.shape, found.tobytes())]
