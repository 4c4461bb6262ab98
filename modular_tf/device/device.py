"""A device for its users: its memory, streams and operations, and the arrays on it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from math import prod
from operator import index
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.abi.data_types import DataType, by_name, by_number, imported_numpy
from modular_tf.abi.dlpack_devices import HOST, DeviceType
from modular_tf.abi.dlpack_elements import TypeCode, by_dtype
from modular_tf.device.arrays.array_content import (
    ArrayContent,
    checked_shape,
    content_of,
    element_type_of,
    flattened,
    has_two_layouts,
    host_tensor,
    in_other_layout,
    n_bytes_of,
)
from modular_tf.device.arrays.dlpack_devices import dlpack_device, note_device
from modular_tf.device.details import DeviceDetails
from modular_tf.device.device_core import check_natural, whole_number
from modular_tf.device.memory.allocator_stats import allocator_stats, memory_usage
from modular_tf.device.memory.device_memory import (
    DeviceMemory,
    HostMemory,
    UnifiedMemory,
    checked_size,
    held,
    host_buffer,
)
from modular_tf.device.names import LOCAL_PREFIX
from modular_tf.device.streams.event import Event
from modular_tf.device.streams.stream import Stream
from modular_tf.device.streams.timer import HostClockTimer, PluginTimer
from modular_tf.errors import (
    InvalidArgumentError,
    ModularTFError,
    UnimplementedError,
    unexpected,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.fresh_host_memory import address_of, fresh_host_memory
from modular_tf.native.tensor import Tensor

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import SupportsIndex

    from typing_extensions import Self

    from modular_tf.device.executor import DeviceContext, Executor
    from modular_tf.device.factory import DeviceFactory
    from modular_tf.device.memory.allocator_stats import AllocatorStats, MemoryUsage
    from modular_tf.device.memory.device_memory import ArrayMemory, HostBuffer, MemoryKind
    from modular_tf.device.streams.timer import Timer

_KINDS: dict[str, type[DeviceMemory | HostMemory]] = {
    "device": DeviceMemory,
    "host": HostMemory,
    "unified": UnifiedMemory,
}
_NO_ORDER = -1  # what consumers give as a stream that order their work themselves (dlpack §1.2)
_MOST_SHOWN = 16  # elements in a repr
_BUFFER_KINDS = "biufc"  # of numpy: elements that Python's buffers have formats for


class Operation(Protocol):
    """An operation on a device: a `modular_tf.Op`."""

    name: str

    @property
    def signature(self) -> inspect.Signature:
        """The parameters of a call."""

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Compute the operation; see `modular_tf.Op`."""

    def run(self, inputs: Sequence[Any], attrs: Mapping[str, Any], **options: Any) -> Any:
        """Compute it with inputs and attributes apart."""

    def explain(self, *inputs: Any, **named: Any) -> Sequence[Any]:
        """Return each kernel with the reason for it or against it."""


class Variable(Protocol):
    """A variable on a device: a `modular_tf.Variable`."""

    device: Device

    def assign(self, value: Any) -> None:
        """Replace the value by a copy of an array."""

    def value(self) -> DeviceArray:
        """Return the value as it is now."""

    def close(self) -> None:
        """Release it when no call uses it any more."""


class Operations(Protocol):
    """Makes the operations of a service."""

    def on_device(self, device: Device, name: str, label: str = "") -> Any:
        """Return an `Operation` on a device."""

    def variable(self, device: Device, dtype: Any) -> Any:
        """Return a new variable on a device."""


class Device:
    """One visible device. [any thread]

    Creating and listing devices touches no hardware. The first read of a detail, such as
    `hardware_name`, asks the factory, which creates the device; if that fails, every detail raises
    the factory's error, and the next read tries again. The first use for work creates the device
    too: it raises the plugin's own status as a ModularTFError, ClosedError where the platform was
    closed, and UnimplementedError where Python only describes the device.

    Attributes:
        factory: Its source.
        plugin: The plugin's name.
        priority: The factory's, as configured.
        ordinal: Its number on the platform.
        index: Its number among the visible devices of its type.
        dlpack_type: The type of its memory for other libraries, as configured.
        name_prefix: The job, replica and task of this process, as configured.
        operations: Makes operations on it; None where the device belongs to no service.
    """

    __slots__ = (
        "__weakref__",
        "_dlpack_place",
        "dlpack_type",
        "factory",
        "index",
        "name_prefix",
        "operations",
        "ordinal",
        "plugin",
        "priority",
    )

    def __init__(
        self,
        factory: DeviceFactory,
        *,
        ordinal: int,
        index: int,
        plugin: str,
        priority: int,
        dlpack_type: DeviceType = DeviceType.EXT_DEV,
        name_prefix: str = LOCAL_PREFIX,
        operations: Operations | None = None,
    ) -> None:
        self.factory = factory
        self.ordinal = ordinal
        self.index = index
        self.plugin = plugin
        self.priority = priority
        self.dlpack_type = dlpack_type
        self.name_prefix = name_prefix
        self.operations = operations
        self._dlpack_place: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The short name, as `GPU:0`; it counts visible devices."""
        return f"{self.device_type}:{self.index}"

    @property
    def full_name(self) -> str:
        """TensorFlow's full name, as `/job:localhost/replica:0/task:0/device:GPU:0`."""
        return f"{self.name_prefix}/device:{self.name}"

    @property
    def physical_name(self) -> str:
        """TensorFlow's name of the hardware, as `/physical_device:GPU:0`; it counts ordinals."""
        return f"/physical_device:{self.device_type}:{self.ordinal}"

    @property
    def device_type(self) -> str:
        """The type, as `GPU`."""
        return self.factory.device_type

    @property
    def platform(self) -> str:
        """The name of the platform."""
        return self.factory.platform

    @property
    def details(self) -> DeviceDetails:
        """All details at once.

        Raises:
            ModularTFError: The device cannot be created, with the plugin's own code.
            ClosedError: The platform was closed.
        """
        return self.factory.device_details(self.ordinal)

    @property
    def hardware_name(self) -> str | None:
        """The name of the hardware, for people; raises as `details` does."""
        return self.details.hardware_name

    @property
    def vendor(self) -> str | None:
        """The maker of the hardware; raises as `details` does."""
        return self.details.vendor

    @property
    def pci_bus_id(self) -> str | None:
        """Its address, as `0000:00:02.1`; raises as `details` does."""
        return self.details.pci_bus_id

    @property
    def numa_node(self) -> int | None:
        """The NUMA node next to it; raises as `details` does."""
        return self.details.numa_node

    @property
    def memory_bandwidth(self) -> int | None:
        """Bytes per second of its own memory; raises as `details` does."""
        return self.details.memory_bandwidth

    @property
    def gflops(self) -> float | None:
        """1e9 floating point operations per second; raises as `details` does."""
        return self.details.gflops

    @property
    def dlpack_place(self) -> tuple[int, int]:
        """The DLPack device of its own memory."""
        if self._dlpack_place is None:
            place = dlpack_device(self.platform, self.ordinal, kind=self.dlpack_type)
            self._dlpack_place = place
        return self._dlpack_place

    @property
    def is_host(self) -> bool:
        """Whether its memory is the host's, which reads and writes it by address: a CPU."""
        own = getattr(self.factory, "is_host_memory", False)
        return bool(own) or self.dlpack_type is DeviceType.CPU

    # -- work -------------------------------------------------------------------------------------

    @property
    def executor(self) -> Executor:
        """The device at work, for this package; its first use creates the device."""
        executor_of = getattr(self.factory, "executor", None)
        if executor_of is None:
            raise UnimplementedError(
                f"{self.name}: {self.plugin} describes devices and offers no work on them",
                plugin=self.plugin,
            )
        executor: Executor = executor_of(self.ordinal)
        return executor

    @property
    def native_handle(self) -> int:
        """The address of the plugin's SP_Device, for code that knows the plugin's own structs.

        It stays the plugin's, and is valid until the service, or the last one that uses the
        platform, is closed; `Stream.native_handle` is the handle to queue work with.

        Raises:
            ClosedError: The device was closed.
        """
        executor = self.executor
        if executor.closed:
            raise executor.closed_error("the device")
        return executor.device_address

    def allocate(self, n_bytes: int) -> DeviceMemory:
        """Return new device memory, out of an arena if the plugin wants one.

        Raises:
            OutOfMemoryError: The plugin gave none, or the arena's limit is reached, and then with
                a picture of the arena; a `MemoryError`, and RESOURCE_EXHAUSTED.
        """
        return DeviceMemory.allocate(self.executor, n_bytes)

    def allocate_host(self, n_bytes: int) -> HostMemory:
        """Return new host memory for asynchronous copies; raises as `allocate`.

        The plugin allocates it, and most pin it. Streams copy from and to any buffer of Python's,
        which is not staged through such memory: where a copy shall overlap with other work on a
        device that needs pinned memory for that, fill this and give it to the stream.
        """
        return HostMemory.allocate(self.executor, n_bytes)

    def allocate_unified(self, n_bytes: int) -> UnifiedMemory:
        """Return new memory that host and device share; raises as `allocate`.

        Raises:
            UnimplementedError: The plugin has no such memory.
        """
        return UnifiedMemory.allocate(self.executor, n_bytes)

    def put(self, source: Any, *, memory: MemoryKind = "device") -> DeviceArray:
        """Return a copy of an array on the device; it is complete when this returns.

        Args:
            source: A numpy array, an object with the buffer protocol or with `__dlpack__`, or
                another `DeviceArray`; with any strides.
            memory: "device"; "host" for pinned memory and "unified" for shared memory, which
                other libraries take without a copy.

        Raises:
            InvalidArgumentError: The elements have no name in DLPack, or the source is on a device
                that its producer does not copy from.
            TypeError: It is no array.
        """
        if isinstance(source, DeviceArray) and memory == "device":
            return source.copy_to(self)
        content = content_of(source)
        array = self._allocated(content.shape, content.dtype, memory, is_padded=content.is_padded)
        try:
            self.executor.write(array._memory, content.data, is_new=True)  # noqa: SLF001  (sets no mark)
        except BaseException:
            array.close()
            raise
        return array

    def empty(
        self, shape: Sequence[int] | int, dtype: Any, *, memory: MemoryKind = "device"
    ) -> DeviceArray:
        """Return an array whose elements are not set.

        Args:
            shape: Sizes.
            dtype: A name, as "float32" or "bfloat16", or a dtype of numpy's.
            memory: As in `put`.

        Raises:
            InvalidArgumentError: No array can be so.
        """
        element = element_type_of(dtype)
        sizes = checked_shape(shape)
        return self._allocated(sizes, element.dtype, memory, is_padded=element.is_subbyte)

    def _allocated(
        self,
        shape: tuple[int, ...],
        dtype: tuple[int, int, int],
        kind: MemoryKind,
        *,
        is_padded: bool,
    ) -> DeviceArray:
        size = n_bytes_of(shape, dtype, is_padded=is_padded)
        if kind not in _KINDS:
            raise InvalidArgumentError(f"memory {kind!r}: expected 'device', 'host' or 'unified'")
        memory = _KINDS[kind].allocate(self.executor, size)
        return DeviceArray(self, memory, shape, dtype, is_padded=is_padded)

    def memory_usage(self) -> MemoryUsage:
        """Return free and total bytes.

        Raises:
            UnavailableError: The plugin does not know.
        """
        return memory_usage(self.executor)

    def allocator_stats(self) -> AllocatorStats:
        """Return the figures of the arena, or those that the plugin counts.

        Raises:
            UnavailableError: There is no arena, and the plugin does not know.
        """
        return allocator_stats(self.executor)

    def create_stream(self) -> Stream:
        """Return a new stream."""
        return Stream.create(self.executor)

    def create_event(self) -> Event:
        """Return a new event, not recorded yet; raises as `create_stream`."""
        return Event.create(self.executor)

    def create_timer(self) -> Timer:
        """Return a new timer, by the host's clock where the plugin has none; raises likewise."""
        executor = self.executor
        return PluginTimer(executor) if executor.has_timers() else HostClockTimer(executor)

    @property
    def context(self) -> DeviceContext:
        """The streams that every device has, and copies in order; raises as `executor`."""
        return self.executor.context

    def memcpy_htod(
        self, target: DeviceMemory, source: HostBuffer, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the host to the device, now; arguments and errors as `Stream.memcpy_htod`."""
        with host_buffer(source) as data:
            size = checked_size(n_bytes, data)
            check_natural(offset)
            native, _kept = held(target)
            if size:
                copy = lib.mtf_sync_memcpy_htod
                self._copy_now(copy, "sync_memcpy_htod", native, index(offset), data, size)

    def memcpy_dtoh(
        self, target: HostBuffer, source: DeviceMemory, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the device to the host, now; arguments and errors as `Stream.memcpy_dtoh`."""
        with host_buffer(target, writable=True) as data:
            size = checked_size(n_bytes, data)
            check_natural(offset)
            native, _kept = held(source)
            if size:
                copy = lib.mtf_sync_memcpy_dtoh
                self._copy_now(copy, "sync_memcpy_dtoh", data, native, index(offset), size)

    def memcpy_dtod(
        self,
        target: DeviceMemory,
        source: DeviceMemory,
        n_bytes: int | None = None,
        *,
        target_offset: int = 0,
        source_offset: int = 0,
    ) -> None:
        """Copy within the device, now; arguments and errors as `Stream.memcpy_dtod`.

        The bytes go through the host where the plugin has no sync_memcpy_dtod.
        """
        (to, _target), (start, _source) = held(target), held(source)
        check_natural(target_offset, source_offset)
        to_, from_ = index(target_offset), index(source_offset)
        size = source.size - from_ if n_bytes is None else whole_number(n_bytes, "bytes to copy")
        check_natural(size)
        if not size:
            return
        if lib.mtf_has_operation(self.executor.native, lib.MTF_SYNC_MEMCPY_DTOD):
            copy = lib.mtf_sync_memcpy_dtod
            self._copy_now(copy, "sync_memcpy_dtod", to, to_, start, from_, size)
            return
        staging = bytearray(size)
        self.memcpy_dtoh(staging, source, size, from_)
        self.memcpy_htod(target, staging, size, to_)

    def _copy_now(self, function: Callable[..., Any], operation: str, *arguments: Any) -> None:
        executor = self.executor
        error = function(executor.native, *arguments)
        if error:
            raise executor.failure(error, operation)

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until all streams of the device are done; signal handlers run meanwhile.

        Args:
            timeout: In seconds; None waits as long as it takes.

        Raises:
            DeadlineExceededError: They were not done in time; the work goes on.
        """
        self.executor.synchronize(timeout)

    # -- operations -------------------------------------------------------------------------------

    def op(self, name: str, label: str = "") -> Operation:
        """Return an operation that kernels of plugins compute on this device.

        Get it once and call it often: `matmul = device.op("MatMul")`, then
        `matmul(a, b, transpose_a=True)`. Its `signature` and repr show the parameters.

        Args:
            name: Of the operation, as in TensorFlow.
            label: Asks for kernels that were registered with this label.

        Raises:
            NotFoundError: No plugin and no TensorFlow defines it (rule KN-040).
            UnimplementedError: The device belongs to no service.
        """
        operation: Operation = self._maker().on_device(self, name, label)
        return operation

    def run(
        self,
        name: str,
        *inputs: Any,
        attrs: Mapping[str, Any] | None = None,
        label: str = "",
        **options: Any,
    ) -> Any:
        """Compute an operation once; attributes are apart, whatever the names of the inputs.

        Args:
            name: As in `op`.
            inputs: In the order of the definition.
            attrs: By name.
            label: As in `op`.
            options: `donate`, `stream` and `out`, as in a call of `modular_tf.kernel.op.Op`.
        """
        return self.op(name, label).run(inputs, attrs or {}, **options)

    def variable(self, dtype: Any) -> Variable:
        """Return a variable on this device: a tensor that kernels change in place.

        Args:
            dtype: Of its elements, as in `empty`.

        Raises:
            UnimplementedError: The device belongs to no service.
        """
        made: Variable = self._maker().variable(self, dtype)
        return made

    def _maker(self) -> Operations:
        if self.operations is None:
            raise UnimplementedError(f"{self}: operations need a device of a plugin service")
        return self.operations

    def to_dict(self) -> dict[str, str | int | float | None]:
        """Return the device as `devices --json` shows it; never raises.

        A device that cannot be created has None for every detail and the reason in `error`.
        Memory is in bytes; None where the plugin does not know. `streams` is how many the device
        has for arrays and their copies; None where it cannot work.
        """
        values: dict[str, str | int | float | None] = {
            "name": self.name,
            "device_type": self.device_type,
            "platform": self.platform,
            "ordinal": self.ordinal,
            "priority": self.priority,
            "plugin": self.plugin,
        }
        try:
            values |= {**self.details.as_dict(), "error": None}
        except ModularTFError as error:
            values |= {**DeviceDetails().as_dict(), "error": error.message}
        values |= {"memory_free": None, "memory_total": None, "streams": None}
        with suppress(ModularTFError):
            values["memory_free"], values["memory_total"] = self.memory_usage()
        with suppress(ModularTFError):
            values["streams"] = self.context.n_streams
        return values

    def __repr__(self) -> str:
        return f"<Device {self.name} of platform {self.platform} from {self.plugin}>"


def _both_ways(op: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return the operator that computes an operation, and its reflection."""

    def compute(left: DeviceArray, right: Any) -> Any:
        return left._computed(op, left, right)  # noqa: SLF001  (of this class)

    def compute_reflected(right: DeviceArray, left: Any) -> Any:
        return right._computed(op, left, right)  # noqa: SLF001

    return compute, compute_reflected


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

    What needs the elements raises ClosedError once the array was closed, and errors of copies, as
    `Stream` does.

    Arithmetic (`a + b`, `a @ b`, `-a`, `a < b`) calls TensorFlow's operation of that meaning on the
    device, and raises NotFoundError where no plugin has a kernel of it; also where numpy's array or
    number is on the left, whose functions (`numpy.add`) take a copy to the host instead. `==`
    compares objects, so arrays are keys of dicts, and `in` looks for no value: that is refused.
    """

    # Kernels' outputs are made in C (native/dlpack), without a memory until one is needed.
    __slots__ = ("__weakref__", "_device", "_executor", "_is_viewed", "_kept_memory")
    __array_priority__ = 1000  # operators of numpy leave the work to those of this class
    _is_viewed: bool

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
        place = HOST if is_host_readable else device.dlpack_place
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
        # Last: its close finds the arrays that refer to it.
        self._executor: Executor = memory._core  # type: ignore[assignment]  # noqa: SLF001
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
        """The address of the first element, as the plugin has it."""
        self._check_open()
        return super().address

    @property
    def memory(self) -> ArrayMemory:
        """Its memory, for the operations of streams.

        The array cannot know what they do from then on: each export waits for the device first.
        """
        memory = self._open()
        self._needs_sync = True
        return memory

    @property
    def device_memory(self) -> DeviceMemory | None:
        """The device memory that holds it; None where pinned memory of the host does.

        For work in the device's own order: exports do not wait for other work on it.
        """
        memory = self._open()
        return memory if isinstance(memory, DeviceMemory) else None

    @property
    def closed(self) -> bool:
        """Whether it was closed; in device memory it also ends with the service."""
        memory = self._kept_memory
        if memory is None:
            return self._is_ended or self._executor.closed
        # Unified memory outlives its device; plain device memory ends with it.
        return memory.native is None if isinstance(memory, UnifiedMemory) else memory.closed

    @property
    def ends_with_device(self) -> bool:
        """Whether it is open, and in device memory, not in pinned or unified memory."""
        memory = self._kept_memory
        return not self._is_ended and (memory is None or type(memory) is DeviceMemory)

    @property
    def may_be_seen(self) -> bool:
        """Whether views of it, or other libraries, may see its memory."""
        return bool(self._n_exports) or getattr(self, "_is_viewed", False)  # not set by C

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
            what, remedy = "the array", ""
            if not is_own:
                what, remedy = "the device of the array", "; copy it to the host before that"
            raise self._executor.closed_error(what, remedy)

    @property
    def _memory(self) -> ArrayMemory:
        if self._kept_memory is None:
            address = super().address
            made: ArrayMemory  # None owns the empty output
            if self.owner is None:
                made = DeviceMemory.allocate(self._executor, 0)
            else:
                made = DeviceMemory.borrow(self._executor, address, self.nbytes, owner=self.owner)
            if self._kept_memory is None:  # another thread may be first: no call until it is set
                self._kept_memory = made
            if self._is_ended:  # closed meanwhile
                self._kept_memory.close()
        return self._kept_memory

    # -- views ------------------------------------------------------------------------------------

    def reshape(self, *shape: int | Sequence[int]) -> DeviceArray:
        """Return a view with another shape: `reshape(2, 3)`, `reshape((2, -1))`.

        It shares the memory, and keeps it. One size may be -1.

        Raises:
            InvalidArgumentError: It would have another number of elements.
        """
        first = shape[0] if len(shape) == 1 else shape
        sizes: list[Any] = list(first) if isinstance(first, Iterable) else [first]
        if sizes.count(-1) == 1:
            at = sizes.index(-1)
            known = prod(checked_shape(sizes[:at] + sizes[at + 1 :]))
            sizes[at] = self.size // known if known else 0
        wanted = checked_shape(sizes)
        if prod(wanted) != self.size:
            raise InvalidArgumentError(f"reshape: {self.size} elements do not fit into {wanted}")
        return self._view(0, wanted)

    def __getitem__(self, key: Any) -> DeviceArray:
        """Return a view of a part: `a[1]`, `a[2:5]`, `a[0, 2:5]`.

        It shares the memory, and keeps it. Numbers and a last slice select along the first
        dimensions; other parts are no views, and are taken of a copy: `a.to_numpy()[...]`.

        Raises:
            IndexError: There is no such element or dimension.
            InvalidArgumentError: The part is not contiguous.
        """
        first, shape = 0, self.shape
        keys = list(key) if isinstance(key, tuple) else [key]
        n_indices = sum(each is not Ellipsis for each in keys)
        if n_indices > self.ndim:
            raise IndexError(f"{n_indices} indices of an array of {self.ndim} dimensions")
        while keys and _selects_all(keys[-1]):
            keys.pop()
        for position, each in enumerate(keys):
            size, step = shape[0], prod(shape[1:])
            if isinstance(each, slice):
                try:
                    start, stop, stride = each.indices(size)
                except (TypeError, ValueError):  # a step of 0, or what is no number
                    raise self._no_view(key) from None
                if stride != 1 or position + 1 < len(keys):
                    raise self._no_view(key)
                first += start * step
                shape = (max(0, stop - start), *shape[1:])
                break
            # A mask is neither 0 nor 1, which numpy before 2.3 makes of its own bool.
            if isinstance(each, bool) or str(getattr(each, "dtype", None)) == "bool":
                raise self._no_view(key)
            try:
                number = index(each)
            except TypeError:
                raise self._no_view(key) from None
            if not -size <= number < size:
                raise IndexError(f"index {number} of a dimension of {size}")
            first += number % size * step
            shape = shape[1:]
        return self._view(first, shape)

    def _no_view(self, key: object) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"array[{key!r}] is no view of an array: select by numbers, and by one slice without a"
            " step after them; or take it of a copy, array.to_numpy()[...]"
        )

    def _view(self, first: int, shape: tuple[int, ...]) -> DeviceArray:
        """Return an array over elements from the one of that number on."""
        memory = self._open()
        bits = self.dlpack_dtype[1] * self.dlpack_dtype[2]
        offset = n_bytes_of((first,), self.dlpack_dtype, is_padded=self.is_padded)
        if not self.is_padded and first * bits % 8:
            raise InvalidArgumentError(f"element {first} of {bits} bits does not begin a byte")
        size = n_bytes_of(shape, self.dlpack_dtype, is_padded=self.is_padded)
        part = memory.part(offset if size else 0, size)
        view = DeviceArray(self._device, part, shape, self.dlpack_dtype, is_padded=self.is_padded)
        view._data_type = self._data_type
        view._needs_sync = self._needs_sync = True  # neither knows what streams do by the other
        self._is_viewed = view._is_viewed = True
        return view

    def __iter__(self) -> Iterator[DeviceArray]:
        return map(self.__getitem__, range(len(self)))

    # -- copies -----------------------------------------------------------------------------------

    def copy_from(self, source: Any) -> None:
        """Replace the elements; the copy is complete when this returns.

        Args:
            source: As `Device.put` takes it, of the same shape and element type. Elements of less
                than 8 bits are packed or padded as the array has them.

        Raises:
            InvalidArgumentError: It has another shape or element type.
        """
        target = self._open()
        if isinstance(source, DeviceArray) and source._overlaps(self):  # noqa: SLF001  (of this class)
            source = source.to_host()  # plugins' copies need not be right where two views overlap
        if (
            isinstance(source, DeviceArray)
            and isinstance(target, DeviceMemory)
            and (source.shape, source.dlpack_dtype, source.is_padded)
            == (self.shape, self.dlpack_dtype, self.is_padded)
        ):
            source._executor.copy(source._open(), self._executor, target)  # noqa: SLF001
            return
        content = content_of(source)
        if (content.shape, content.dtype) != (self.shape, self.dlpack_dtype):
            raise InvalidArgumentError(
                f"{_summary(content)} cannot be copied over an array of {_summary(self)}"
            )
        data = content.bytes_in_layout(is_padded=self.is_padded)
        self._executor.write(target, data)

    def _overlaps(self, other: DeviceArray) -> bool:
        here, there = self.address, other.address
        return (
            self._executor is other._executor
            and here < there + other.nbytes
            and there < here + self.nbytes
        )

    def copy_to(self, device: Device) -> DeviceArray:
        """Return a copy in device memory, on this device or another; through the host if need be.

        Raises:
            InvalidArgumentError: It is no device.
        """
        if not isinstance(device, type(self._device)):
            raise unexpected(device, "copy_to", "a device, as of service.device('CPU:0')")
        return self._copy(device, is_copied=False)

    def _copy(self, device: Device, *, is_copied: bool) -> DeviceArray:
        source = self._open()
        target = DeviceMemory.allocate(device.executor, self.nbytes)
        try:
            self._executor.copy(source, device.executor, target)
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
        """Return a copy in host memory, which every DLPack consumer takes."""
        return self._to_host(is_copied=False)

    def _to_host(self, *, is_copied: bool) -> Tensor:
        source = self._open()
        data = fresh_host_memory(self.nbytes)
        owner = ffi.from_buffer("char[]", data.obj)  # not the view, which anybody could release
        tensor = Tensor(
            address_of(data), self.shape, None, self.dlpack_dtype, HOST, owner,
            is_copied=is_copied, is_padded=self.is_padded,
        )  # fmt: skip
        self._executor.read(data, source)
        return tensor

    def to_bytes(self) -> bytes:
        """Return the elements as bytes, in C order; raises as `to_host`."""
        return bytes(self._read())

    def to_memoryview(self) -> memoryview:
        """Return a copy as a `memoryview` with shape and format; needs no numpy.

        Raises:
            BufferError: Python's buffers have no format for such elements.
        """
        return memoryview(self.to_host())

    def tolist(self) -> Any:
        """Return a copy as nested lists of Python's numbers; one number without dimensions.

        Raises:
            TypeError: Neither numpy nor ml_dtypes has such elements.
            ModuleNotFoundError: numpy is missing, and Python itself cannot read the elements.
        """
        try:
            return self.to_memoryview().tolist()
        except (BufferError, NotImplementedError):
            values = self.to_numpy()
            if values.dtype.kind == "V":  # of ml_dtypes
                is_whole = self.dlpack_dtype[0] in (TypeCode.INT, TypeCode.UINT)
                values = values.astype("int8" if is_whole else "float32")
            return values.tolist()

    def astype(self, dtype: Any) -> DeviceArray:
        """Return a copy with elements of another type, converted as numpy does.

        On a device whose memory is not the host's, the operation Cast does it.

        Raises:
            InvalidArgumentError: There is no such type.
            NotFoundError: No plugin has a kernel of Cast for the device.
            ModuleNotFoundError: numpy, or ml_dtypes for types that only it has, is missing.
        """
        element = element_type_of(dtype)
        if not self._device.is_host:
            converted: DeviceArray = self._computed("Cast", self, DstT=element.name)
            return converted
        wanted = element.to_numpy()
        return self._device.put(self.to_numpy().astype(wanted))

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Pickle the elements: what comes back is a `Tensor` in host memory, for `Device.put`."""
        del protocol
        return host_tensor, (self.to_bytes(), self.shape, self.dlpack_dtype, self.is_padded)

    def __copy__(self) -> DeviceArray:
        return self.copy_to(self._device)

    def __deepcopy__(self, memo: object) -> DeviceArray:
        return self.copy_to(self._device)

    def to_numpy(self, out: Any = None) -> Any:
        """Return a copy as a numpy array.

        Args:
            out: An array in C order, of the same shape and element type, to copy into.

        Raises:
            InvalidArgumentError: `out` does not fit.
            TypeError: Neither numpy nor ml_dtypes has such elements.
            ModuleNotFoundError: numpy, or ml_dtypes for the types that only it has, is missing.
        """
        numpy = imported_numpy() or import_module("numpy")
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
            self._executor.read_output(data, self.address, self.nbytes)
        else:
            self._executor.read(data, self._open())
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
            self._executor.await_work()
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

    def __bool__(self) -> bool:
        """Return the truth of the only element: `while a[0] < 3`; others have none, as in numpy."""
        if self.size != 1:
            raise InvalidArgumentError(
                f"an array of {self.size} elements is neither true nor false; ask for one element,"
                " or for any(...) or all(...) of array.to_numpy()"
            )
        return bool(flattened(self.tolist())[1][0])

    __contains__: Any = None  # elements are arrays, and == compares objects: it never was

    def __repr__(self) -> str:
        state = ", closed" if self.closed else self._shown_values()
        return f"<DeviceArray {_summary(self)} on {self._device.name}{state}>"

    def _shown_values(self) -> str:
        """Return the values of a small array that the host reads at once; "" of others."""
        is_busy = any(stream.may_have_work for stream in self._executor.streams.all())
        if is_busy or not self._device.is_host or self.size > _MOST_SHOWN:
            return ""
        try:
            return f": {self.tolist()}"
        except Exception:  # noqa: BLE001  (closed meanwhile, or no numpy)
            return ""

    # -- operators --------------------------------------------------------------------------------

    def _computed(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        return self._device.run(op, *inputs, attrs=attrs)

    def __matmul__(self, other: Any) -> Any:
        return self._computed(_product(self), self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._computed(_product(self), other, self)

    __add__, __radd__ = _both_ways("AddV2")
    __sub__, __rsub__ = _both_ways("Sub")
    __mul__, __rmul__ = _both_ways("Mul")
    __truediv__, __rtruediv__ = _both_ways("RealDiv")
    __floordiv__, __rfloordiv__ = _both_ways("FloorDiv")
    __mod__, __rmod__ = _both_ways("FloorMod")
    __pow__, __rpow__ = _both_ways("Pow")
    __lt__, __gt__ = _both_ways("Less")[0], _both_ways("Greater")[0]
    __le__, __ge__ = _both_ways("LessEqual")[0], _both_ways("GreaterEqual")[0]

    def __neg__(self) -> Any:
        return self._computed("Neg", self)

    def __abs__(self) -> Any:
        return self._computed("Abs", self)


def _product(array: DeviceArray) -> str:
    return "MatMul" if array.ndim == 2 else "BatchMatMulV2"  # noqa: PLR2004  (matrices)


def _selects_all(key: object) -> bool:
    if isinstance(key, slice):  # not by ==, which arrays in a slice answer with an array
        return key.start is None and key.stop is None and key.step is None
    return key is Ellipsis


@cache
def _numpy_dtype(dtype: tuple[int, int, int]) -> Any:
    return by_dtype(dtype).to_numpy()


def _summary(described: DeviceArray | ArrayContent) -> str:
    if isinstance(described, ArrayContent):
        return f"{by_dtype(described.dtype).name} {described.shape}"
    number = described._data_type  # noqa: SLF001  (of this module's class)
    name = by_number(number).name if number else described.dtype
    return f"{name} {described.shape}"
