"""Nodes in the native core's form, from which plugins read attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.data_types import REF_OFFSET
from modular_tf.device.native_object import call_and_own
from modular_tf.errors import UnimplementedError
from modular_tf.kernel.attributes import TensorValue
from modular_tf.kernel.op_definition import FunctionName
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import take_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.abi.data_types import DataType
    from modular_tf.kernel.node import Node
    from modular_tf.kernel.op_definition import AttrDefinition, OpDefinition

__all__ = ["native_node"]


def native_node(node: Node, definition: OpDefinition, host_args: frozenset[str]) -> Any:
    """Return a native node, owned by Python until a kernel takes it over.

    `host_args` are the inputs and outputs that are in host memory. Raises UnimplementedError if an
    attribute has a value that the host cannot give to plugins.
    """
    name = _text(node.op)
    made = call_and_own(lib.mtf_kernel_node_new, (name, name), lib.mtf_kernel_node_free)
    if not made:
        raise take_error(lib.mtf_take_error(), operation=node.op)
    for attr in definition.attrs:
        if attr.name in node.attrs:
            _set_attr(made, node, attr)
    add_input, add_output = lib.mtf_kernel_node_add_input, lib.mtf_kernel_node_add_output
    refs = frozenset(arg.name for arg in (*definition.inputs, *definition.outputs) if arg.is_ref)
    names = host_args, refs
    _add_arguments(made, add_input, node.input_types, node.input_ranges, *names)
    _add_arguments(made, add_output, node.output_types, node.output_ranges, *names)
    return made


def _add_arguments(
    made: Any,
    add: Callable[..., Any],
    types: Sequence[DataType],
    ranges: Mapping[str, range],
    host_args: frozenset[str],
    refs: frozenset[str],
) -> None:
    for name, where in ranges.items():
        offset = REF_OFFSET if name in refs else 0
        numbers = ffi.new("int32_t[]", [types[index].number + offset for index in where])
        _check(add(made, _text(name), numbers, len(where), name in host_args))


def _set_attr(made: Any, node: Node, attr: AttrDefinition) -> None:
    value: Any = node.attrs[attr.name]
    values = value if attr.is_list else (value,)
    write = _WRITERS.get(attr.kind)
    if write is None or (attr.kind == "tensor" and not all(map(_is_tensor, values))):
        raise UnimplementedError(
            f"{node.op}: attribute {attr.name!r} is {value!r}: values of kind {attr.kind} cannot be"
            " given to kernels",
            operation=node.op,
        )
    write(made, _text(attr.name), attr.is_list, values)


def _is_tensor(value: object) -> bool:
    return isinstance(value, TensorValue)


def _set(
    made: Any,
    name: bytes,
    kind: int,
    is_list: bool,  # noqa: FBT001  (as the C function)
    data: Any,
    sizes: Any,
    count: int,
) -> None:
    set_attr = lib.mtf_kernel_node_set_attr
    _check(set_attr(made, name, kind, is_list, data, sizes, count))


def _set_ints(kind: int) -> Callable[..., None]:
    def write(made: Any, name: bytes, is_list: bool, values: Iterable[Any]) -> None:  # noqa: FBT001
        numbers = [int(value) if kind != lib.MTF_ATTR_TYPE else value.number for value in values]
        _set(made, name, kind, is_list, ffi.new("int64_t[]", numbers), ffi.NULL, len(numbers))

    return write


def _set_floats(
    made: Any,
    name: bytes,
    is_list: bool,  # noqa: FBT001
    values: Sequence[float],
) -> None:
    data = ffi.new("float[]", list(values))
    _set(made, name, lib.MTF_ATTR_FLOAT, is_list, data, ffi.NULL, len(values))


def _set_strings(kind: int) -> Callable[..., None]:
    def write(made: Any, name: bytes, is_list: bool, values: Iterable[Any]) -> None:  # noqa: FBT001
        texts = [
            _text(value.name if isinstance(value, FunctionName) else value) for value in values
        ]
        sizes = ffi.new("int64_t[]", [len(text) for text in texts])
        data = ffi.new("char[]", b"".join(texts))
        _set(made, name, kind, is_list, data, sizes, len(texts))

    return write


def _set_shapes(made: Any, name: bytes, is_list: bool, values: Sequence[Any]) -> None:  # noqa: FBT001
    ranks = ffi.new("int64_t[]", [-1 if shape is None else len(shape) for shape in values])
    data = ffi.new("int64_t[]", [size for shape in values for size in shape or ()])
    _set(made, name, lib.MTF_ATTR_SHAPE, is_list, data, ranks, len(values))


def _set_tensors(made: Any, name: bytes, is_list: bool, values: Sequence[TensorValue]) -> None:  # noqa: FBT001
    add = lib.mtf_kernel_node_add_tensor_attr
    if not values:  # an empty list
        _set(made, name, lib.MTF_ATTR_TENSOR, is_list, ffi.NULL, ffi.NULL, 0)
    for value in values:
        if not isinstance(value.data, bytes):
            raise UnimplementedError("tensors of strings cannot be given to kernels as attributes")
        dims = ffi.new("int64_t[]", list(value.shape))
        data = ffi.from_buffer("char[]", value.data)
        shape = dims, len(value.shape)
        _check(add(made, name, is_list, value.type.number, *shape, data, len(value.data)))


_WRITERS: dict[str, Callable[..., None]] = {
    "int": _set_ints(lib.MTF_ATTR_INT),
    "bool": _set_ints(lib.MTF_ATTR_BOOL),
    "type": _set_ints(lib.MTF_ATTR_TYPE),
    "float": _set_floats,
    "string": _set_strings(lib.MTF_ATTR_STRING),
    "func": _set_strings(lib.MTF_ATTR_FUNC),
    "shape": _set_shapes,
    "tensor": _set_tensors,
}


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _check(error: Any) -> None:
    if error:
        raise take_error(error)
