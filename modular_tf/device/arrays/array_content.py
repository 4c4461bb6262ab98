"""Arrays of the host as devices take them: shapes, element types, and bytes in C order."""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.data_types import by_name as number_type
from modular_tf.abi.data_types import imported_numpy
from modular_tf.abi.dlpack_devices import DLPACK_VERSION, HOST, DeviceType
from modular_tf.abi.dlpack_elements import ElementType, TypeCode, by_dtype, by_name, by_numpy
from modular_tf.device.memory.device_memory import HostMemory, host_buffer
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import ffi
from modular_tf.native.fresh_host_memory import address_of, fresh_host_memory
from modular_tf.native.tensor import Tensor, bytes_of_elements, consume, repacked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from modular_tf.abi.data_types import DataType

MOST_DIMENSIONS = 64  # numpy's limit too
_BYTE = (int(TypeCode.UINT), 8, 1)
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

NUMBERS = (bool, int, float, complex)
"""The types of Python's numbers, each a part of the next."""

_DEFAULTS = ("bool", "int32", "float", "complex128")
_FORMATS = {
    "half": "e", "float": "f", "double": "d", "bool": "?", "int8": "b", "uint8": "B", "int16": "h",
    "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "uint64": "Q",
}  # fmt: skip


class ArrayContent(NamedTuple):
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
            `array.array`, `memoryview`, ...), pinned memory, an object with `__dlpack__`, a number,
            nested lists of one of these, or content itself.

    Raises:
        InvalidArgumentError: DLPack has no name for its elements, the memory is on a device that
            its producer does not copy from, or lists in a list differ in length.
        TypeError: It is none of these.
    """
    if isinstance(found, ArrayContent):
        return found
    if isinstance(found, NUMBERS) and not hasattr(found, "dtype"):  # numpy's have a type
        return content_of_numbers(found)[1]
    numpy = imported_numpy()  # an array of numpy's exists only where that was imported
    if isinstance(found, (list, tuple)):
        _, flat = flattened(found)
        if all(isinstance(each, NUMBERS) and not hasattr(each, "dtype") for each in flat):
            return content_of_numbers(found)[1]
        arrays = NUMBERS if numpy is None else (*NUMBERS, numpy.generic, numpy.ndarray)
        for each in flat:
            if not isinstance(each, arrays):
                raise _no_array(each)
        try:
            found = numpy.asarray(found)  # some are numpy's
        except ValueError:
            shapes = sorted({str([*getattr(each, "shape", ())]) for each in flat})
            raise InvalidArgumentError(
                f"a list of arrays is one array where their shapes are equal; found the shapes"
                f" {' and '.join(shapes)}"
            ) from None
    if numpy is not None and isinstance(found, (numpy.ndarray, numpy.generic)):
        return _of_numpy(numpy, numpy.asarray(found))
    if isinstance(found, HostMemory):
        return _of_buffer(found.view)
    if hasattr(type(found), "__dlpack__"):
        return _of_tensor(found)
    try:
        view = memoryview(found)
    except TypeError:
        raise _no_array(found) from None
    return _of_buffer(view)


def _no_array(found: object) -> TypeError:
    return TypeError(
        f"{type(found).__name__!r} object: expected a numpy array, an object with the buffer "
        "protocol, one with __dlpack__, or lists of numbers"
    )


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


# -- numbers ---------------------------------------------------------------------------------------


def flattened(values: Any) -> tuple[tuple[int, ...], list[Any]]:
    """Return the shape of nested lists, and what is in them in C order.

    Raises InvalidArgumentError if lists beside each other differ in length, or lie too deep.
    """
    if not isinstance(values, (list, tuple)):
        return (), [values]
    first = values
    for _ in range(MOST_DIMENSIONS + 1):
        if not (isinstance(first, (list, tuple)) and first):
            break
        first = first[0]
    else:  # or it contains itself
        raise InvalidArgumentError(f"lists in lists of more than {MOST_DIMENSIONS} dimensions")
    shape: list[int] = []
    level = [values]
    while level and isinstance(level[0], (list, tuple)):
        size = len(level[0])
        if not all(isinstance(each, (list, tuple)) and len(each) == size for each in level):
            raise InvalidArgumentError(f"lists of unequal lengths in dimension {len(shape)}")
        shape.append(size)
        level = [each for group in level for each in group]
    if any(isinstance(each, (list, tuple)) for each in level):
        raise InvalidArgumentError(f"lists beside other elements in dimension {len(shape)}")
    return tuple(shape), level


def content_of_numbers(values: Any, kind: DataType | None = None) -> tuple[DataType, ArrayContent]:
    """Return a number, or nested lists of numbers, as elements of a type.

    Without a type they are bool, int32, float32 or complex128, as in TensorFlow. Raises
    InvalidArgumentError if a number does not fit, or there are bools among numbers.
    """
    shape, flat = flattened(values)
    if kind is None:
        ranks = [next(i for i, each in enumerate(NUMBERS) if isinstance(one, each)) for one in flat]
        kind = number_type(_DEFAULTS[max(ranks, default=2)])
    try:
        data = _packed(flat, kind)
    except (struct.error, OverflowError, TypeError):
        shown = repr(values)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."  # noqa: PLR2004  (fits on a line)
        raise InvalidArgumentError(f"{shown} is no {kind}") from None
    if kind.dlpack is None:
        raise InvalidArgumentError(f"a number is no {kind}")
    return kind, ArrayContent(shape, kind.dlpack, is_padded=False, data=data)


def _packed(flat: list[Any], kind: DataType) -> bytes:
    """Return numbers as bytes; `=` because the native format makes too large ones infinite."""
    if any(isinstance(one, bool) != (kind.name == "bool") for one in flat):
        raise TypeError
    if kind.name in ("complex64", "complex128"):
        part = "f" if kind.name == "complex64" else "d"
        parts = [part for one in flat for part in (complex(one).real, complex(one).imag)]
        return struct.pack(f"={len(parts)}{part}", *parts)
    if kind.name == "bfloat16":
        bits = struct.unpack(f"={len(flat)}I", struct.pack(f"={len(flat)}f", *flat))
        rounded = [  # a NaN stays one, whatever its lower bits are
            each >> 16 | 0x40 if each & 0x7FFFFFFF > 0x7F800000  # noqa: PLR2004  (infinity)
            else (each + 0x7FFF + (each >> 16 & 1)) >> 16
            for each in bits
        ]  # fmt: skip
        return struct.pack(f"={len(flat)}H", *rounded)
    letter = _FORMATS.get(kind.name)
    if letter is None:
        raise TypeError
    return struct.pack(f"={len(flat)}{letter}", *flat)


# -- shapes and element types ----------------------------------------------------------------------


def checked_shape(shape: Sequence[int] | int) -> tuple[int, ...]:
    """Return a shape as a tuple; a number is one dimension.

    Raises InvalidArgumentError if a size is no whole number, or negative, or there are more than
    64.
    """
    try:
        sizes = tuple(map(operator.index, shape if isinstance(shape, Iterable) else (shape,)))
    except TypeError:
        raise InvalidArgumentError(
            f"shape: expected a whole number, or a sequence of them, found {shape!r}"
        ) from None
    if any(size < 0 for size in sizes) or len(sizes) > MOST_DIMENSIONS:
        raise InvalidArgumentError(
            f"shape {sizes}: expected at most {MOST_DIMENSIONS} sizes, none below 0"
        )
    return sizes


def n_bytes_of(shape: tuple[int, ...], dtype: tuple[int, int, int], *, is_padded: bool) -> int:
    """Return the size of a compact array, whose shape is of `checked_shape`.

    The dtype is code, bits and lanes. Padded elements of less than 8 bits have bytes of their own;
    else they are packed. Raises InvalidArgumentError if no memory is so large, or there are no such
    elements.
    """
    try:
        return bytes_of_elements(shape, dtype, is_padded)
    except ValueError as error:
        raise InvalidArgumentError(f"shape {shape}, elements {dtype}: {error}") from None


def element_type_of(dtype: Any) -> ElementType:
    """Return the element type with a name, or of a dtype of numpy.

    Raises InvalidArgumentError if there is none.
    """
    try:
        if isinstance(dtype, ElementType):
            return dtype
        if isinstance(dtype, str):
            return by_name(dtype)
        if isinstance(dtype, tuple):
            return by_dtype(dtype)
        return by_numpy(import_module("numpy").dtype(dtype))
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"dtype {dtype!r} of a device array: {error}") from None


def has_two_layouts(dtype: tuple[int, int, int]) -> bool:
    """Return whether elements have less than 8 bits, so that they can be packed or padded."""
    return dtype[1] % 8 != 0


def in_other_layout(
    data: Buffer, shape: tuple[int, ...], dtype: tuple[int, int, int], *, is_padded: bool
) -> memoryview:
    """Return packed elements as padded ones, whose upper bits are 0, or padded ones packed.

    With upper bits of 0 ml_dtypes stores them too, negative numbers included. The data are in C
    order; packed, the first element is in the lowest bits of the first byte. The dtype is code,
    bits and lanes. `is_padded` describes the elements of `data`.
    """
    with host_buffer(data) as held:
        address = int(ffi.cast("uintptr_t", held))
        found = Tensor(address, shape, None, dtype, HOST, held, is_padded=is_padded)
        return bytes_of(repacked(found, not is_padded))


def host_tensor(
    data: bytes,
    shape: tuple[int, ...],
    dtype: tuple[int, int, int],
    is_padded: bool,  # noqa: FBT001  (pickles have it by position)
) -> Tensor:
    """Return a tensor in host memory, which is a copy of bytes; pickled arrays become one."""
    memory = fresh_host_memory(len(data))
    memory[:] = data
    owner = ffi.from_buffer("char[]", memory.obj)
    return Tensor(address_of(memory), shape, None, dtype, HOST, owner, is_padded=is_padded)


def bytes_of(tensor: Tensor) -> memoryview:
    """Return the bytes of a compact tensor of the host's, without a copy; they keep it.

    A read-only tensor gives read-only bytes.
    """
    flat = Tensor(tensor.address, (tensor.nbytes,), None, _BYTE, HOST, tensor, tensor.read_only)
    return memoryview(flat)


# -- tensors of other libraries, by DLPack ---------------------------------------------------------


def compact_host_tensor(producer: Any) -> Tensor:
    """Return a producer's tensor in host memory and C order, copied only if it must be.

    Raises InvalidArgumentError if it is not in host memory and its producer does not bring it
    there.
    """
    place = HOST
    try:
        place = producer.__dlpack_device__()
        refuse_negated(producer)
        try:
            is_on_host = DeviceType(int(place[0])) is DeviceType.CPU
        except ValueError:
            raise BufferError(f"its memory is on the unknown DLPack device {place}") from None
        wishes: dict[str, Any] = {} if is_on_host else {"dl_device": HOST}
        try:
            capsule = producer.__dlpack__(max_version=DLPACK_VERSION, **wishes)
        except TypeError as error:
            if wishes:
                raise BufferError(f"it cannot be asked for host memory: {error}") from None
            capsule = producer.__dlpack__()  # it knows no versions
        try:
            tensor = consume(capsule)
        except ValueError as error:
            raise BufferError(f"its __dlpack__ gave nothing to take: {error}") from error
        if not DeviceType(tensor.dlpack_device[0]).is_host_readable:
            text = f"its memory is on DLPack device {tensor.dlpack_device}"
            raise BufferError(text)  # noqa: TRY301  (one report for all)
        sizes = [max(size, 1) for size in tensor.shape]
        compact = tuple(prod(sizes[at + 1 :]) for at in range(tensor.ndim))
        if tensor.strides == compact or not tensor.size:
            return tensor
        return consume(tensor.__dlpack__(max_version=DLPACK_VERSION, copy=True))
    except BufferError as error:
        remedy = "" if place[0] == DeviceType.CPU else "; move it to host memory first"
        raise InvalidArgumentError(
            f"{type(producer).__name__!r} object for a device array: {error}{remedy}"
        ) from error


def refuse_negated(producer: Any) -> None:
    """Raise BufferError if a producer's elements are not negated yet, as torch's `is_neg()` says.

    Those of `tensor.conj().imag` are not. DLPack has no flag for that. torch itself refuses to
    export a lazy conjugation, but not these.
    """
    ask = getattr(producer, "is_neg", None)
    if callable(ask) and ask() is True:
        raise BufferError(
            "Can't export tensors with the negative bit set, whose memory has the other sign;"
            " use tensor.resolve_neg()"
        )
