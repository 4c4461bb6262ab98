"""The sources of arrays on devices: numpy arrays, buffers, tensors of other libraries."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.abi.dlpack_elements import by_name, by_numpy
from modular_tf.device.arrays.host_tensor import bytes_of
from modular_tf.device.arrays.packed_elements import has_two_layouts, in_other_layout
from modular_tf.device.arrays.tensor_import import compact_host_tensor
from modular_tf.device.memory.device_memory import HostMemory
from modular_tf.errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from modular_tf.abi.dlpack_elements import ElementType

# The element types of buffer formats. Several letters have one size on the supported machines; the
# buffer itself says which.
_BUFFER_KINDS = {
    "?": "bool",
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("cBHILQN", "uint"),
    **dict.fromkeys("efd", "float"),
    **dict.fromkeys(("Zf", "Zd"), "complex"),
}
_NATIVE_ORDER = "@=<|"  # little-endian, as every machine that plugins run on


@dataclass(frozen=True)
class ArrayContent:
    """The elements of a source in C order without gaps."""

    shape: tuple[int, ...]
    dtype: tuple[int, int, int]  # code, bits and lanes
    is_padded: bool  # elements of less than 8 bits have bytes of their own
    data: Buffer  # all the bytes, one after another; keeps the memory they are in

    def bytes_in_layout(self, *, is_padded: bool) -> Buffer:
        """Return the bytes with elements of less than 8 bits padded, or packed."""
        if is_padded == self.is_padded or not has_two_layouts(self.dtype):
            return self.data
        return in_other_layout(self.data, self.shape, self.dtype, is_padded=self.is_padded)


def content_of(found: Any) -> ArrayContent:
    """Return the content of an array, copied only if it is not in C order without gaps.

    Args:
        found: A numpy array or scalar, an object with Python's buffer protocol (`bytes`,
            `array.array`, `memoryview`, ...), pinned memory, an object with `__dlpack__`, or
            content itself.

    Raises:
        InvalidArgumentError: DLPack has no name for its elements, or the memory is on a device
            that its producer does not copy from.
        TypeError: It is none of these.
    """
    if isinstance(found, ArrayContent):
        return found
    numpy = sys.modules.get("numpy")  # an array of numpy's exists only where that was imported
    if numpy is not None and isinstance(found, (numpy.ndarray, numpy.generic)):
        return _of_numpy(numpy, numpy.asarray(found))
    if isinstance(found, HostMemory):
        return _of_buffer(found.view)
    if hasattr(type(found), "__dlpack__"):
        return _of_tensor(found)
    try:
        view = memoryview(found)
    except TypeError:
        raise TypeError(
            f"{type(found).__name__!r} object: expected a numpy array, an object with the buffer "
            "protocol, or one with __dlpack__"
        ) from None
    return _of_buffer(view)


def _of_numpy(numpy: Any, array: Any) -> ArrayContent:
    if not array.dtype.isnative:
        raise InvalidArgumentError(
            f"numpy array of dtype {array.dtype}: its elements are in the other byte order; "
            "give array.astype(array.dtype.newbyteorder('='))"
        )
    try:
        element = by_numpy(array.dtype)
    except ValueError as error:
        raise InvalidArgumentError(f"numpy array of dtype {array.dtype}: {error}") from None
    data = numpy.asarray(array, order="C").reshape(-1).view(numpy.uint8)
    return ArrayContent(array.shape, element.dtype, element.is_subbyte, data)


def _of_buffer(view: memoryview) -> ArrayContent:
    element = _element_of_format(view)
    data: Any = view if view.c_contiguous else view.tobytes()
    return ArrayContent(tuple(view.shape or ()), element.dtype, is_padded=False, data=data)


def _of_tensor(producer: Any) -> ArrayContent:
    tensor = compact_host_tensor(producer)
    return ArrayContent(tensor.shape, tensor.dlpack_dtype, tensor.is_padded, bytes_of(tensor))


def _element_of_format(view: memoryview) -> ElementType:
    """Return the element type of a buffer.

    Raises InvalidArgumentError if DLPack has none: structures, pointers, big-endian.
    """
    kind = _BUFFER_KINDS.get(view.format.lstrip(_NATIVE_ORDER))
    if kind is None:
        raise InvalidArgumentError(
            f"a device array cannot hold elements of buffer format {view.format!r}; "
            "for plain bytes, give memoryview(...).cast('B')"
        )
    return by_name(kind if kind == "bool" else f"{kind}{view.itemsize * 8}")
