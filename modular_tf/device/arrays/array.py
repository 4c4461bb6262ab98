"""`DeviceArray`: n-dimensional arrays in the memory of a device."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from modular_tf.abi.data_types import DataType, by_name, by_number
from modular_tf.abi.dlpack_devices import HOST
from modular_tf.abi.dlpack_elements import by_dtype
from modular_tf.device.arrays import array_memory
from modular_tf.device.arrays.array_content import ArrayContent, content_of
from modular_tf.device.arrays.array_shape import checked_shape, element_type_of, n_bytes_of
from modular_tf.device.arrays.dlpack_numbers import dlpack_device
from modular_tf.device.arrays.host_tensor import new_host_tensor
from modular_tf.device.arrays.packed_elements import has_two_layouts, in_other_layout
from modular_tf.device.arrays.work_streams import note_device
from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory, UnifiedMemory
from modular_tf.device.streams.stream import Stream
from modular_tf.errors import InvalidArgumentError, unexpected
from modular_tf.native.fresh_host_memory import fresh_host_memory
from modular_tf.native.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from modular_tf.device.arrays.array_memory import ArrayMemory, MemoryKind
    from modular_tf.device.device import Device
    from modular_tf.device.memory.host_buffer import HostBuffer

_NO_ORDER = -1  # what consumers give as a stream that order their work themselves (dlpack §1.2)
_BUFFER_KINDS = "biufc"  # of numpy: elements that Python's buffers have formats for


class DeviceArray(Tensor):
    """An n-dimensional array in C order on a device. [any thread]

    `Device.put` and `Device.empty` create them. The attributes that describe it (`shape`, `strides`
    in elements, `ndim`, `size`, `nbytes`, `dlpack_dtype`, `dlpack_device`) stay readable when it
    is closed.

    Other libraries take it by DLPack. Memory of the host is kDLCPU, and they view it as it is: all
    memory of a host device (CPU:0), and pinned and unified memory of others. Other device memory is
    of type kDLExtDev, which few of them know, unless `dlpack_types` of the configuration says
    better; `to_host()` and `numpy.from_dlpack(array, device="cpu")` make copies that all take.

    A consumer of the array keeps its memory. Closing the service closes arrays in device memory,
    but what others view on a host device stays until they let it go; other device memory ends with
    the service. Arrays in pinned and unified memory stay readable until they are closed themselves.
    """

    # Kernels' outputs are made in C (native/kernel_calls), without a memory until one is needed.
    __slots__ = ("__weakref__", "_device", "_executor", "_kept_memory")

    def __init__(
        self,
        device: Device,
        memory: ArrayMemory,
        shape: tuple[int, ...],
        dtype: tuple[int, int, int],
        *,
        is_padded: bool = False,
        is_copied: bool = False,
    ) -> None:
        """Create an array in existing memory.

        Args:
            device: Where it is.
            memory: Of that device, with as many bytes as the array; the array closes it.
            shape: Sizes.
            dtype: Code, bits and lanes of DLPack.
            is_padded: Whether elements of less than 8 bits have bytes of their own.
            is_copied: Whether the array is for a consumer who asked for a copy.

        Raises:
            InvalidArgumentError: The memory has more or fewer bytes.
            ClosedError: The memory was closed.
        """
        n_bytes = n_bytes_of(shape, dtype, is_padded=is_padded)
        if n_bytes != len(memory):
            raise InvalidArgumentError(
                f"an array of {n_bytes} bytes cannot lie in a memory of {len(memory)}"
            )
        is_host_readable = isinstance(memory, (HostMemory, UnifiedMemory))
        place = dlpack_device(
            device.platform, device.ordinal, is_host_readable=is_host_readable,
            kind=device.dlpack_type,
        )  # fmt: skip
        # Closing a memory drops its own hold; consumers need it until they let the array go.
        # (Not the view, which a caller could release.)
        kept: Any = memory.view.obj if is_host_readable else memory.hold  # type: ignore[union-attr]
        super().__init__(
            memory.address, shape, None, dtype, place, kept, is_copied=is_copied,
            is_padded=is_padded,
        )  # fmt: skip
        self._device = device
        self._kept_memory: ArrayMemory | None = memory
        self._needs_sync = not is_host_readable
        self._executor = device.executor  # last: its close finds the arrays that refer to it
        if not is_host_readable:
            note_device(place, self._executor)

    # -- what it is -------------------------------------------------------------------------------

    @property
    def device(self) -> Device:
        """The device whose memory holds the array."""
        return self._device

    @property
    def dtype(self) -> str:
        """The name of its elements, as numpy or ml_dtypes call them."""
        return by_dtype(self.dlpack_dtype).name

    @property
    def data_type(self) -> DataType:
        """TensorFlow's type of its elements, which kernels ask for.

        It says more than `dtype` for the output of a kernel that is quantized: "qint8", and not
        "int8". Copies on devices keep it; numpy and DLPack have no such types.

        Raises:
            ValueError: TensorFlow has no type for them.
        """
        return by_number(self._data_type) if self._data_type else by_name(self.dtype)

    @property
    def address(self) -> int:
        """The address of the first element, as the plugin has it.

        Raises:
            ClosedError: The array was closed.
        """
        self._check_open()
        return super().address

    @property
    def memory(self) -> ArrayMemory:
        """Its memory, for the operations of streams.

        The array cannot know what they do from then on: each export waits for the device first.

        Raises:
            ClosedError: The array was closed.
        """
        memory = self._open()
        self._needs_sync = True
        return memory

    @property
    def device_memory(self) -> DeviceMemory | None:
        """The device memory that holds it; None where pinned memory of the host does.

        For work in the device's own order: exports do not wait for other work on it.

        Raises:
            ClosedError: The array was closed.
        """
        memory = self._open()
        return memory if isinstance(memory, DeviceMemory) else None

    @property
    def closed(self) -> bool:
        """Whether it was closed; in device memory it also ends with the service."""
        memory = self._kept_memory
        if memory is None:
            return self._is_ended or self._executor.closed
        return array_memory.is_ended(memory)

    @property
    def ends_with_device(self) -> bool:
        """Whether it is open, and in device memory, not in pinned or unified memory."""
        memory = self._kept_memory
        return not self._is_ended and (memory is None or type(memory) is DeviceMemory)

    def _open(self) -> ArrayMemory:
        self._check_open()
        return self._memory

    def _check_open(self) -> None:
        if self.closed:
            memory = self._kept_memory
            is_own = isinstance(memory, HostMemory)
            if isinstance(memory, DeviceMemory):
                is_own = memory.native is None
            is_own = (is_own or self._is_ended) and not self._executor.has_ended(self)
            raise array_memory.ended_error(self._executor, is_own=is_own)

    @property
    def _memory(self) -> ArrayMemory:
        if self._kept_memory is None:
            address = super().address
            made = array_memory.of_output(self._executor, self.owner, address, self.nbytes)
            if self._kept_memory is None:  # another thread may be first: no call until it is set
                self._kept_memory = made
            if self._is_ended:  # closed meanwhile
                self._kept_memory.close()
        return self._kept_memory

    # -- copies -----------------------------------------------------------------------------------

    def copy_from(self, source: Any) -> None:
        """Replace the elements; the copy is complete when this returns.

        Args:
            source: As `Device.put` takes it, of the same shape and element type. Elements of less
                than 8 bits are packed or padded as the array has them.

        Raises:
            InvalidArgumentError: It has another shape or element type.
            ClosedError: The array was closed.
            ModularTFError: As the operations of `Stream`.
        """
        content = content_of(source)
        if (content.shape, content.dtype) != (self.shape, self.dlpack_dtype):
            raise InvalidArgumentError(
                f"{_summary(content)} cannot be copied over an array of {_summary(self)}"
            )
        data = content.bytes_in_layout(is_padded=self.is_padded)
        array_memory.overwrite(self._executor, self._open(), data)

    def copy_to(self, device: Device) -> DeviceArray:
        """Return a copy in device memory, on this device or another; through the host if need be.

        Raises:
            InvalidArgumentError: It is no device.
            OutOfMemoryError: The other device has no room.
            ClosedError: The array, or the other device, was closed.
            ModularTFError: As the operations of `Stream`.
        """
        if not isinstance(device, type(self._device)):
            raise unexpected(device, "copy_to", "a device, as of service.device('CPU:0')")
        return self._copy(device, is_copied=False)

    def _copy(self, device: Device, *, is_copied: bool) -> DeviceArray:
        source = self._open()
        target = device.allocate(self.nbytes)
        try:
            array_memory.copy(self._executor, source, device.executor, target)
            copied = DeviceArray(
                device, target, self.shape, self.dlpack_dtype,
                is_padded=self.is_padded, is_copied=is_copied,
            )  # fmt: skip
        except BaseException:
            target.close()
            raise
        copied._data_type = self._data_type
        return copied

    def to_host(self) -> Tensor:
        """Return a copy in host memory, which every DLPack consumer takes.

        Raises:
            ClosedError: The array was closed.
            ModularTFError: As the operations of `Stream`.
        """
        return self._to_host(is_copied=False)

    def _to_host(self, *, is_copied: bool) -> Tensor:
        source = self._open()
        tensor, data = new_host_tensor(self, is_copied=is_copied)
        array_memory.read(self._executor, data, source)
        return tensor

    def to_bytes(self) -> bytes:
        """Return the elements as bytes, in C order; raises as `to_host`."""
        return bytes(self._read())

    def to_memoryview(self) -> memoryview:
        """Return a copy as a `memoryview` with shape and format; needs no numpy.

        Raises:
            BufferError: Python's buffers have no format for such elements.
            ModularTFError: As `to_host`.
        """
        return memoryview(self.to_host())

    def to_numpy(self, out: Any = None) -> Any:
        """Return a copy as a numpy array.

        Args:
            out: An array in C order, of the same shape and element type, to copy into.

        Raises:
            InvalidArgumentError: `out` does not fit.
            TypeError: Neither numpy nor ml_dtypes has such elements.
            ModuleNotFoundError: numpy, or ml_dtypes for the types that only it has, is missing.
            ModularTFError: As `to_host`.
        """
        numpy = sys.modules.get("numpy") or import_module("numpy")
        dtype = _numpy_dtype(self.dlpack_dtype)
        if out is None:
            out = numpy.empty(self.shape, dtype)
        elif not isinstance(out, numpy.ndarray):
            raise unexpected(out, "out", "a numpy array")
        elif out.shape != self.shape or out.dtype != dtype or not out.flags.c_contiguous:
            raise InvalidArgumentError(
                f"out: expected {dtype} {self.shape} in C order, found {out.dtype} {out.shape}"
            )
        data = out if dtype.kind in _BUFFER_KINDS else out.reshape(-1).view(numpy.uint8)
        if has_two_layouts(self.dlpack_dtype) and not self.is_padded:
            data[:] = in_other_layout(self._read(), self.shape, self.dlpack_dtype, is_padded=False)
        else:
            self._read_into(data)
        return out

    def _read(self) -> memoryview:
        data = fresh_host_memory(self.nbytes)
        self._read_into(data)
        return data

    def _read_into(self, data: HostBuffer) -> None:
        """Copy the elements; a kernel's output in host memory needs no stream for that."""
        owner = self.owner  # keeps the memory, whoever closes the array meanwhile
        if self._kept_memory is None and self._device.is_host:
            array_memory.read_output(self._executor, data, self.address, self.nbytes)
        else:
            array_memory.read(self._executor, data, self._open())
        del owner

    # -- DLPack -----------------------------------------------------------------------------------

    def _before_export(self, stream: Any, /) -> None:
        """Wait until nothing writes to the memory; raise if it was closed.

        A number is a stream of a vendor's, which nothing here can be ordered with: it may come
        as early as it likes, once all is done. -1 says that the consumer orders the work itself.
        """
        self._check_open()
        if stream is not None and not isinstance(stream, (Stream, int)):
            raise BufferError(f"stream {stream!r}: expected None or a stream of the device's own")
        if stream != _NO_ORDER:
            array_memory.wait_for_streams(self._executor)
            self._check_open()  # or it was closed meanwhile

    def _export_elsewhere(
        self,
        stream: Any,
        dl_device: tuple[int, int] | None,
        copy: bool | None,  # noqa: FBT001  (the C part calls it so)
        /,
    ) -> Tensor:
        """Return a copy on the host or the device for an export; host memory is exported itself."""
        place = self.dlpack_device
        wanted = place if dl_device is None else tuple(dl_device)
        if place == HOST or wanted not in {place, HOST}:
            return super()._export_elsewhere(stream, dl_device, copy)
        if copy is False:
            raise BufferError(
                f"{self!r} gets to host memory by a copy only, and copy=False was asked for"
            )
        if wanted == HOST:
            return self._to_host(is_copied=True)
        return self._copy(self._device, is_copied=True)

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Release the memory when its last user has gone. Safe to call twice.

        Memory that another library took goes when that has let it go; where it took a description
        only, as C functions of tvm-ffi do, when the array is dropped too.
        """
        self._end_memory()
        if self._kept_memory is not None:
            self._kept_memory.close()

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<DeviceArray {_summary(self)} on {self._device.name}{state}>"


def put(device: Device, source: Any, memory: MemoryKind) -> DeviceArray:
    """Return a copy of an array on a device; see `Device.put`."""
    if isinstance(source, DeviceArray) and memory == "device":
        return source.copy_to(device)
    content = content_of(source)
    array = _allocate(device, content.shape, content.dtype, memory, is_padded=content.is_padded)
    try:
        array_memory.write(device.executor, array._memory, content.data)  # noqa: SLF001  (sets no mark)
    except BaseException:
        array.close()
        raise
    return array


def empty(
    device: Device, shape: Sequence[int] | int, dtype: Any, memory: MemoryKind
) -> DeviceArray:
    """Return a new array on a device; see `Device.empty`."""
    element = element_type_of(dtype)
    sizes = checked_shape(shape)
    return _allocate(device, sizes, element.dtype, memory, is_padded=element.is_subbyte)


def _allocate(
    device: Device,
    shape: tuple[int, ...],
    dtype: tuple[int, int, int],
    kind: MemoryKind,
    *,
    is_padded: bool,
) -> DeviceArray:
    size = n_bytes_of(shape, dtype, is_padded=is_padded)
    memory = array_memory.allocate(device, size, kind)
    return DeviceArray(device, memory, shape, dtype, is_padded=is_padded)


@cache
def _numpy_dtype(dtype: tuple[int, int, int]) -> Any:
    return by_dtype(dtype).to_numpy()


def _summary(described: DeviceArray | ArrayContent) -> str:
    if isinstance(described, ArrayContent):
        return f"{by_dtype(described.dtype).name} {described.shape}"
    number = described._data_type  # noqa: SLF001  (of this module's class)
    name = by_number(number).name if number else described.dtype
    return f"{name} {described.shape}"
