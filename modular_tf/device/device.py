"""`Device`: the interface of a device for users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.dlpack_devices import DeviceType
from modular_tf.device.arrays.array import empty, put
from modular_tf.device.details import DeviceDetails
from modular_tf.device.names import LOCAL_PREFIX
from modular_tf.device.operations import WithOperations
from modular_tf.device.streams.synchronous_copy import copy_dtod, copy_dtoh, copy_htod
from modular_tf.errors import ModularTFError, UnimplementedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.device.arrays.array import DeviceArray
    from modular_tf.device.arrays.array_memory import MemoryKind
    from modular_tf.device.executor import Executor
    from modular_tf.device.factory import DeviceFactory
    from modular_tf.device.memory.allocator_stats import AllocatorStats, MemoryUsage
    from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory, UnifiedMemory
    from modular_tf.device.memory.host_buffer import HostBuffer
    from modular_tf.device.operations import Operations
    from modular_tf.device.streams.device_context import DeviceContext
    from modular_tf.device.streams.event import Event
    from modular_tf.device.streams.stream import Stream
    from modular_tf.device.streams.timer import Timer


class Device(WithOperations):
    """One visible device. [any thread]

    Creating and listing devices touches no hardware. The first look at a detail, such as
    `hardware_name`, asks the factory, which creates the device; if that fails, every detail raises
    the factory's error, and the next look tries again.

    Attributes:
        factory: What brought it.
        plugin: The plugin's name.
        priority: The factory's, as configured.
        ordinal: Its number on the platform.
        index: Its number among the visible devices of its type.
        dlpack_type: What its memory is to other libraries, as configured.
        name_prefix: The job, replica and task of this process, as configured.
        operations: Who makes operations on it; None where nobody does.
    """

    __slots__ = (
        "__weakref__",
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
    def is_host(self) -> bool:
        """Whether its memory is the host's, which reads and writes it by address: a CPU."""
        of_plugin = getattr(self.factory, "is_host_memory", False)
        return bool(of_plugin) or self.dlpack_type is DeviceType.CPU

    # -- work -------------------------------------------------------------------------------------

    @property
    def executor(self) -> Executor:
        """The stream executor; its first use creates the device.

        Raises:
            UnimplementedError: The device is one of Python's, which only describes itself.
            ModularTFError: The device cannot be created, with the plugin's own code.
            ClosedError: The platform was closed.
        """
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
            ModularTFError: As `executor`.
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
            ModularTFError: As `executor`.
        """
        return self.executor.allocate(n_bytes)

    def allocate_host(self, n_bytes: int) -> HostMemory:
        """Return new host memory for asynchronous copies; raises as `allocate`.

        The plugin allocates it, and most pin it. Streams copy from and to any buffer of Python's,
        which is not staged through such memory: where a copy shall overlap with other work on a
        device that needs pinned memory for that, fill this and give it to the stream.
        """
        return self.executor.allocate_host(n_bytes)

    def allocate_unified(self, n_bytes: int) -> UnifiedMemory:
        """Return new memory that host and device share; raises as `allocate`.

        Raises:
            UnimplementedError: The plugin has no such memory.
        """
        return self.executor.allocate_unified(n_bytes)

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
            OutOfMemoryError: The plugin gave no memory.
            ModularTFError: As `executor`, or the plugin's own status.
        """
        return put(self, source, memory)

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
            OutOfMemoryError: The plugin gave no memory.
            ModularTFError: As `executor`.
        """
        return empty(self, shape, dtype, memory)

    def memory_usage(self) -> MemoryUsage:
        """Return free and total bytes.

        Raises:
            UnavailableError: The plugin does not know.
            ModularTFError: As `executor`.
        """
        return self.executor.memory_usage()

    def allocator_stats(self) -> AllocatorStats:
        """Return the figures of the arena, or those that the plugin counts.

        Raises:
            UnavailableError: There is no arena, and the plugin does not know.
            ModularTFError: As `executor`.
        """
        return self.executor.allocator_stats()

    def create_stream(self) -> Stream:
        """Return a new stream.

        Raises:
            ModularTFError: The plugin's own status, or as `executor`.
        """
        return self.executor.create_stream()

    def create_event(self) -> Event:
        """Return a new event, not recorded yet; raises as `create_stream`."""
        return self.executor.create_event()

    def create_timer(self) -> Timer:
        """Return a new timer, by the host's clock where the plugin has none; raises likewise."""
        return self.executor.create_timer()

    @property
    def context(self) -> DeviceContext:
        """The streams that every device has, and copies in order; raises as `executor`."""
        return self.executor.context

    def memcpy_htod(
        self, target: DeviceMemory, source: HostBuffer, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the host to the device, now; arguments and errors as `Stream.memcpy_htod`."""
        copy_htod(self.executor, target, source, n_bytes, offset)

    def memcpy_dtoh(
        self, target: HostBuffer, source: DeviceMemory, n_bytes: int | None = None, offset: int = 0
    ) -> None:
        """Copy from the device to the host, now; arguments and errors as `Stream.memcpy_dtoh`."""
        copy_dtoh(self.executor, target, source, n_bytes, offset)

    def memcpy_dtod(
        self,
        target: DeviceMemory,
        source: DeviceMemory,
        n_bytes: int | None = None,
        *,
        target_offset: int = 0,
        source_offset: int = 0,
    ) -> None:
        """Copy within the device, now; arguments and errors as `Stream.memcpy_dtod`."""
        copy_dtod(self.executor, target, source, n_bytes, target_offset, source_offset)

    def synchronize(self, timeout: float | None = None) -> None:
        """Wait until all streams of the device are done; signal handlers run meanwhile.

        Args:
            timeout: In seconds; None waits as long as it takes.

        Raises:
            DeadlineExceededError: They were not done in time; the work goes on.
            ModularTFError: As `create_stream`.
        """
        self.executor.synchronize(timeout)

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
        return values | self._details_or_error() | self._memory_or_none() | self._streams_or_none()

    def _details_or_error(self) -> dict[str, str | int | float | None]:
        try:
            return {**self.details.as_dict(), "error": None}
        except ModularTFError as error:
            return {**DeviceDetails().as_dict(), "error": error.message}

    def _memory_or_none(self) -> dict[str, int | None]:
        try:
            free, total = self.memory_usage()
        except ModularTFError:
            return {"memory_free": None, "memory_total": None}
        return {"memory_free": free, "memory_total": total}

    def _streams_or_none(self) -> dict[str, int | None]:
        try:
            return {"streams": self.context.n_streams}
        except ModularTFError:
            return {"streams": None}

    def __repr__(self) -> str:
        return f"<Device {self.name} of platform {self.platform} from {self.plugin}>"
