"""Kernel objects, ready to compute: one for each node, kernel and device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.abi.data_types import REF_OFFSET
from modular_tf.device.device_core import call_and_own
from modular_tf.errors import InvalidArgumentError, UnimplementedError
from modular_tf.kernel.node import TensorValue
from modular_tf.kernel.op_definition import FunctionName
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.plugin_names import named
from modular_tf.native.status import take_error
from modular_tf.rules import Violation
from modular_tf.rules.kernel import COMPUTATION_RETURNS, HOST_ARGUMENT_EXISTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.abi.data_types import DataType
    from modular_tf.errors import ModularTFError
    from modular_tf.kernel.node import Node
    from modular_tf.kernel.op_definition import AttrDefinition, OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.site import KernelSite

__all__ = ["PreparedKernel"]


class PreparedKernel:
    """A kernel object of a plugin's, made for one node on one device. [any thread]

    Several threads may have it compute at once. Its end calls the plugin's `delete`, when no call
    of it is under way any more.
    """

    __slots__ = ("__weakref__", "host_inputs", "native", "node", "registration", "site")

    def __init__(
        self,
        registration: KernelRegistration,
        node: Node,
        definition: OpDefinition,
        site: KernelSite,
    ) -> None:
        """Have the plugin make a kernel object.

        Raises the plugin's own status (rule KN-060), InvalidArgumentError if it wants an argument
        in host memory that there is not (KN-014).
        """
        self.registration = registration
        self.node = node
        self.site = site
        host_args = _checked_host_args(registration, node)
        # for each tensor that goes in, whether it has to be in host memory
        self.host_inputs = tuple(
            not kind.is_plain or _name_of(node, index) in host_args
            for index, kind in enumerate(node.input_types)
        )
        made = _native_node(node, definition, host_args)
        subject = f"{node.op} on {site.device.name}".encode()
        arguments = registration.native, made, site.native, named(registration.plugin), subject
        ffi.gc(made, None)  # the kernel takes it over, also on failure
        self.native: Any = call_and_own(lib.mtf_kernel_new, arguments, lib.mtf_kernel_free)
        if not self.native:
            raise self.failure(lib.mtf_take_error(), "create")

    def failure(self, error: Any, operation: str) -> ModularTFError:
        """Return a native error as an exception that names operation, kernel and plugin."""
        name = self.registration.name or self.registration.op
        subject = f"{self.node.op}: {operation} of kernel {name!r} on {self.site.device.name}"
        is_thrown = bool(error) and bool(error.thrown)
        failed = take_error(error, plugin=self.registration.plugin, operation=subject)
        failed.operation = self.node.op
        if is_thrown:
            failed.rule = COMPUTATION_RETURNS.id
        return failed

    def raise_failure(self) -> NoReturn:
        """Raise the error of a call that has just failed on this thread."""
        raise self.failure(lib.mtf_take_error(), "compute")


def _checked_host_args(registration: KernelRegistration, node: Node) -> frozenset[str]:
    """Return the arguments that a kernel wants in host memory.

    Raises InvalidArgumentError if the operation lacks one of them (rule KN-014).
    """
    names = (*node.input_ranges, *node.output_ranges)
    unknown = [name for name in registration.host_args if name not in names]
    if unknown:
        text = f"{node.op}: {registration.who} wants {unknown[0]!r} in host memory"
        raise Violation(HOST_ARGUMENT_EXISTS, f"{text}; arguments are {', '.join(names)}").error(
            InvalidArgumentError, plugin=registration.plugin, operation=node.op
        )
    return frozenset(registration.host_args)


def _name_of(node: Node, index: int) -> str:
    return next(name for name, where in node.input_ranges.items() if index in where)


# -- nodes in the native core's form, from which plugins read attributes ---------------------------


def _native_node(node: Node, definition: OpDefinition, host_args: frozenset[str]) -> Any:
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
