"""Calls of kernels that are made up from the definition of their operation alone."""

from __future__ import annotations

import math
import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.data_types import by_name
from modular_tf.check.expectation import Unsupported
from modular_tf.errors import ModularTFError
from modular_tf.kernel.node import build_node

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.abi.data_types import DataType
    from modular_tf.kernel.node import Node
    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition
    from modular_tf.kernel.registration import KernelRegistration

    Reference = Callable[[Any, Mapping[str, Any], Sequence[Any]], Any]

_LIST_LENGTH = 2  # of inputs that are several tensors
_FLOAT = by_name("float")
_AXES = frozenset({"axis", "dim", "dimension", "reduction_indices", "concat_dim", "split_dim"})
_SHAPES = frozenset({"shape", "size", "dims", "input_sizes", "filter_sizes", "output_shape"})
_BY_NAME = {"strides": 1, "ksize": 1, "dilations": 1}  # each element of a list


class Form(NamedTuple):
    """What the tensors of a sample look like: all of them have one shape."""

    rank: int
    side: int

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each tensor."""
        return (self.side,) * self.rank


FORMS = (Form(2, 4), Form(4, 4), Form(1, 4), Form(0, 1), Form(5, 3), Form(3, 4))
"""The forms to try, the likeliest first: the meaning of an operation is not known."""


class SampleTensor(NamedTuple):
    """One tensor that goes in."""

    kind: DataType
    shape: tuple[int, ...]
    data: bytes


class Sample(NamedTuple):
    """One call of one kernel.

    Attributes:
        registration: The kernel.
        definition: Of its operation.
        node: The call without its tensors.
        tensors: All that go in.
        form: What they look like.
    """

    registration: KernelRegistration
    definition: OpDefinition
    node: Node
    tensors: tuple[SampleTensor, ...]
    form: Form

    def call(self, step: str) -> str:
        """Return how reports show a step; no other kernel of the operation is told apart by it."""
        inputs = [f"{each.kind}{list(each.shape)}" for each in self.tensors]
        attrs = [f"{name}={_shown(value)}" for name, value in self.node.attrs.items()]
        who = f"kernel {self.registration.name!r} on {self.registration.device_type}"
        return f"{self.node.op}.{step}({', '.join([*inputs, *attrs])}) of {who}"


class NoSampleError(Exception):
    """Nothing can be made up for a kernel; says why."""


def sample_of(
    registration: KernelRegistration, definition: OpDefinition, form: Form, numbers: random.Random
) -> Sample:
    """Return a call of a kernel.

    Raises `NoSampleError` where an input or attribute is of a kind that cannot be made up.
    """
    attrs = _types(registration, definition)
    groups = [_tensors(arg, attrs, form, numbers) for arg in definition.inputs]
    types = [
        [each.kind for each in group] if arg.is_list else group[0].kind
        for arg, group in zip(definition.inputs, groups, strict=True)
    ]
    inferred = definition.inferred_attrs
    given = {name: value for name, value in attrs.items() if name not in inferred}
    for attr in definition.attrs:
        if not (attr.has_default or attr.may_be_absent or attr.name in inferred):
            given.setdefault(attr.name, _made_up(attr, form))
    try:
        node = build_node(definition, types, given, label=registration.label)
    except ModularTFError as error:
        raise NoSampleError(error.message) from None
    tensors = tuple(each for group in groups for each in group)
    return Sample(registration, definition, node, tensors, form)


def _types(registration: KernelRegistration, definition: OpDefinition) -> dict[str, Any]:
    """Return types for the attributes that inputs give, and for those that are constrained."""
    constrained = registration.constraints
    found: dict[str, Any] = {}
    for attr in definition.attrs:
        if attr.kind == "type" and (
            attr.name in constrained or attr.name in definition.inferred_attrs
        ):
            kind = constrained.get(attr.name) or _likely_type(attr)
            found[attr.name] = [kind] * _LIST_LENGTH if attr.is_list else kind
    return found


def _likely_type(attr: AttrDefinition) -> DataType:
    if attr.has_default and attr.default in (attr.allowed or ()):
        return attr.default  # type: ignore[return-value]
    allowed: Any = attr.allowed or (_FLOAT,)
    return _FLOAT if _FLOAT in allowed else allowed[0]


def _tensors(
    arg: ArgDefinition, types: dict[str, Any], form: Form, numbers: random.Random
) -> list[SampleTensor]:
    if arg.type_list_attr is not None:
        kinds = types[arg.type_list_attr]
    else:
        one = arg.type or types[arg.type_attr or ""]
        kinds = [one] * (_LIST_LENGTH if arg.number_attr else 1)
    return [_tensor(arg, kind, form, numbers) for kind in kinds]


def _tensor(arg: ArgDefinition, kind: DataType, form: Form, numbers: random.Random) -> SampleTensor:
    if arg.is_ref or not can_be_sampled(kind):
        raise NoSampleError(f"input {arg.name} is of type {arg.type_text} ({kind})")
    if arg.name in _AXES:
        return SampleTensor(kind, (), elements_of(kind, [0]))
    if arg.name in _SHAPES:
        return SampleTensor(kind, (form.rank,), elements_of(kind, form.shape))
    if arg.name == "perm":
        return SampleTensor(kind, (form.rank,), elements_of(kind, range(form.rank)))
    shape = form.shape[-1:] if arg.name == "bias" else form.shape
    return SampleTensor(kind, shape, random_elements(kind, math.prod(shape), numbers))


def _made_up(attr: AttrDefinition, form: Form) -> Any:
    """Return a value for an attribute without default."""
    if attr.is_list:
        length = form.rank if attr.name in _BY_NAME else max(attr.minimum or 1, 1)
        return [_one(attr, form)] * length
    return _one(attr, form)


def _one(attr: AttrDefinition, form: Form) -> Any:
    if attr.allowed is not None:
        return attr.allowed[0]
    known = {
        "int": max(attr.minimum or 1, 1), "float": 0.5, "bool": False, "type": _FLOAT,
        "shape": form.shape, "string": "",
    }  # fmt: skip
    if attr.kind not in known:
        raise NoSampleError(f"attribute {attr.name} is a {attr.kind}")
    return known[attr.kind]


def _shown(value: Any) -> str:
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, (list, tuple)) else str(value)


# -- elements -------------------------------------------------------------------------------------

_FLOATS = {"float": "f", "double": "d", "half": "e"}
_COMPLEX = {"complex64": "2f", "complex128": "2d"}
_INTEGERS = {
    "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I",
    "int64": "q", "uint64": "Q", "qint8": "b", "quint8": "B", "qint16": "h", "quint16": "H",
    "qint32": "i",
}  # fmt: skip
_TOLERANCES = {"float": 1e-3, "double": 1e-9, "half": 2e-2, "bfloat16": 5e-2}
_MOST = 3


def can_be_sampled(kind: DataType) -> bool:
    """Return whether there are sample values of a type."""
    return kind.name in {*_FLOATS, *_COMPLEX, *_INTEGERS, "bfloat16", "bool"}


def random_elements(kind: DataType, count: int, numbers: random.Random) -> bytes:
    """Return small random elements; integers are not negative, since many are indices."""
    if kind.name in _INTEGERS or kind.name == "bool":
        most = 1 if kind.name == "bool" else _MOST
        return elements_of(kind, [numbers.randint(0, most) for _ in range(count)])
    # Quarters are exact in all types.
    return elements_of(kind, [numbers.randint(-4 * _MOST, 4 * _MOST) / 4 for _ in range(count)])


def elements_of(kind: DataType, values: Iterable[float]) -> bytes:
    """Return numbers as elements of a type."""
    return b"".join(_packed(kind, value) for value in values)


def _packed(kind: DataType, value: float) -> bytes:
    if kind.name in _FLOATS:
        return struct.pack(_FLOATS[kind.name], value)
    if kind.name in _COMPLEX:
        return struct.pack(_COMPLEX[kind.name], value, value)
    if kind.name == "bfloat16":
        return struct.pack("I", struct.unpack("I", struct.pack("f", value))[0])[2:]
    if kind.name == "bool":
        return bytes([bool(value)])
    return struct.pack(_INTEGERS[kind.name], int(value))


def agree(kind: DataType, one: bytes, other: bytes) -> bool:
    """Return whether elements are equal, floating point numbers within the accuracy of the type."""
    if one == other or len(one) != len(other):
        return one == other
    tolerance = _TOLERANCES.get(kind.name)
    if tolerance is None:
        return False
    pairs = zip(_floats(kind, one), _floats(kind, other), strict=True)
    return all(_close(a, b, tolerance) for a, b in pairs)


def _close(one: float, other: float, tolerance: float) -> bool:
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


def _floats(kind: DataType, elements: bytes) -> Sequence[float]:
    if kind.name == "bfloat16":
        halves = [elements[at : at + 2] for at in range(0, len(elements), 2)]
        return [struct.unpack("f", b"\0\0" + half)[0] for half in halves]
    letter = _FLOATS[kind.name]
    return struct.unpack(f"{len(elements) // kind.size}{letter}", elements)


# -- what numpy computes for well-known operations -------------------------------------------------


class Output(NamedTuple):
    """A tensor that came out."""

    kind: DataType
    shape: tuple[int, ...]
    data: bytes


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

    Raises `Unsupported` where numpy is not installed.
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
