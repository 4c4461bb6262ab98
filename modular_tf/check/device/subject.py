"""A device as checks see it: the plugin's own slots, or this package on top of them.

Both are asked in the same way, so that one check tries both. What the plugin makes is an object
here even where the plugin's own handle is NULL, which it may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from modular_tf.check.answers import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.host_buffer import HostBuffer

__all__ = [
    "Answer",
    "Block",
    "Bytes",
    "DeviceFacts",
    "DeviceSubject",
    "Event",
    "Memory",
    "PlatformFacts",
    "Stream",
    "Timer",
    "Work",
]

Stream: TypeAlias = Any
"""What `create_stream` made; only the subject looks into it. The handle itself may be NULL."""

Event: TypeAlias = Any
"""Likewise of `create_event`."""

Timer: TypeAlias = Any
"""Likewise of `create_timer`."""

Work: TypeAlias = "Callable[[], tuple[int, str] | None]"
"""What a host callback does: None where it went well, else a status code and a message."""


class Memory(Protocol):
    """Device memory, or a part of it."""

    @property
    def address(self) -> int:
        """`opaque`: what the plugin calls it; 0 only for 0 bytes, which this package has itself."""

    @property
    def size(self) -> int:
        """How many bytes were asked for."""

    @property
    def given_size(self) -> int | None:
        """The `size` that the plugin wrote into the struct; None through the host."""

    @property
    def payload(self) -> int | None:
        """The `payload` likewise."""

    def part(self, offset: int, n_bytes: int) -> Memory:
        """Return a piece of it, by an address inside, as hosts that pool memory do."""


class Block(Protocol):
    """Host or unified memory that the plugin allocated. Copies take it like a `HostBuffer`."""

    @property
    def address(self) -> int:
        """Where it lies, for host and, where it is unified, device."""

    @property
    def view(self) -> memoryview:
        """The bytes, writable; must not be used after the block was given back."""

    @property
    def memory(self) -> Memory | None:
        """Itself as device memory; None where it is not unified."""


Bytes: TypeAlias = "HostBuffer | Block"
"""The host's side of a copy."""

OwnMemory: TypeAlias = Any
"""A `Memory` that this very subject gave."""

OwnBlock: TypeAlias = Any
"""A `Block` likewise."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What a device says of itself; None for what it does not know, or what is NULL.

    Attributes:
        ordinal: Its number on the platform.
        hardware_name: For people.
        vendor: Likewise.
        pci_bus_id: As `0000:00:02.1`.
        numa_node: The NUMA node next to it; negative is not known (raw only).
        memory_bandwidth: Bytes per second; negative is not known (raw only).
        gflops: 1e9 operations per second; negative is not known (raw only).
    """

    ordinal: int
    hardware_name: str | None
    vendor: str | None
    pci_bus_id: str | None
    numa_node: int | None
    memory_bandwidth: int | None
    gflops: float | None


@dataclass(frozen=True, slots=True)
class PlatformFacts:
    """What a platform says of itself.

    Attributes:
        name: Its name.
        device_type: The type of its devices.
        unified_memory: `supports_unified_memory`, or the RFC's allocator's word.
        use_bfc: `use_bfc_allocator`: device memory is cut by the host.
        force_growth: `force_memory_growth`.
    """

    name: str
    device_type: str
    unified_memory: bool
    use_bfc: bool
    force_growth: bool


class DeviceSubject(Protocol):
    """One created device; each method is one slot of `SP_StreamExecutor` or of its platform.

    Every method raises `Unsupported` where the slot is NULL and nothing stands in for it. Sizes are
    in bytes. Copies and fills use the front of a memory: `Memory.part` gives others. [any thread]
    """

    def has(self, slot: str) -> bool:
        """Return whether the plugin itself has a slot, of any of its tables, by its C name."""

    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called here: the plugin has it, or something else."""

    def platform(self) -> PlatformFacts:
        """What the plugin registered."""

    def facts(self) -> DeviceFacts:
        """What SP_Device and SP_DeviceFns say."""

    def get_device_count(self) -> Answer:
        """Value: the count."""

    # -- memory -----------------------------------------------------------------------------------

    def allocate(self, n_bytes: int) -> Answer:
        """Value: a `Memory`. None, with code RESOURCE_EXHAUSTED, where `opaque` is NULL."""

    def deallocate(self, memory: OwnMemory) -> None:
        """Give it back, by its address alone as TensorFlow does: size 0, payload 0."""

    def host_memory_allocate(self, n_bytes: int) -> Answer:
        """Value: a `Block`; as `allocate`."""

    def host_memory_deallocate(self, block: OwnBlock) -> None:
        """Deallocate a block."""

    def unified_memory_allocate(self, n_bytes: int) -> Answer:
        """Value: a `Block` that has `memory`; as `allocate`."""

    def unified_memory_deallocate(self, block: OwnBlock) -> None:
        """Deallocate a block."""

    def device_memory_usage(self) -> Answer:
        """Value: (free, total). Returned (raw): the C function's truth value.

        Code UNAVAILABLE where the plugin does not know.
        """

    def get_allocator_stats(self) -> Answer:
        """Value: `AllocatorStats` (`device.memory.allocator_stats`); as `device_memory_usage`.

        Through the host, they are the arena's where one serves.
        """

    # -- copies and fills -------------------------------------------------------------------------

    def memcpy_htod(self, stream: Stream, target: OwnMemory, source: Bytes, n_bytes: int) -> Answer:
        """Enqueue a copy to the device; the source must stay until the stream has passed it."""

    def memcpy_dtoh(self, stream: Stream, target: Bytes, source: OwnMemory, n_bytes: int) -> Answer:
        """Enqueue a copy from the device."""

    def memcpy_dtod(
        self, stream: Stream, target: OwnMemory, source: OwnMemory, n_bytes: int
    ) -> Answer:
        """Enqueue a copy on the device."""

    def sync_memcpy_htod(self, target: OwnMemory, source: Bytes, n_bytes: int) -> Answer:
        """Copy to the device; done when it returns."""

    def sync_memcpy_dtoh(self, target: Bytes, source: OwnMemory, n_bytes: int) -> Answer:
        """Copy from the device; done when it returns."""

    def sync_memcpy_dtod(self, target: OwnMemory, source: OwnMemory, n_bytes: int) -> Answer:
        """Copy on the device; done when it returns."""

    def mem_zero(self, stream: Stream, memory: OwnMemory, n_bytes: int) -> Answer:
        """Enqueue setting bytes of device memory to 0."""

    def memset(self, stream: Stream, memory: OwnMemory, value: int, n_bytes: int) -> Answer:
        """Enqueue filling with a byte."""

    def memset32(self, stream: Stream, memory: OwnMemory, value: int, n_bytes: int) -> Answer:
        """Enqueue filling with a 32-bit number; `n_bytes` is a multiple of 4."""

    # -- streams ----------------------------------------------------------------------------------

    def create_stream(self) -> Answer:
        """Value: a `Stream`, where the code is OK."""

    def destroy_stream(self, stream: Stream) -> None:
        """Destroy it; through the host, when its work is done."""

    def create_stream_dependency(self, dependent: Stream, other: Stream) -> Answer:
        """Let later work of `dependent` wait for what `other` holds now."""

    def get_stream_status(self, stream: Stream) -> Answer:
        """The code says how the stream is; through the host, a callback's failure comes first."""

    def block_host_until_done(self, stream: Stream) -> Answer:
        """Wait for the stream; without the slot, by an event of its own as TensorFlow does."""

    def synchronize_all_activity(self) -> Answer:
        """Wait for all streams."""

    def host_callback(self, stream: Stream, work: Work) -> Answer:
        """Have the host called when the stream gets there.

        Returned (raw): the C function's truth value. Code INTERNAL where that is 0, in both passes.
        """

    # -- events -----------------------------------------------------------------------------------

    def create_event(self) -> Answer:
        """Value: an `Event`, where the code is OK."""

    def destroy_event(self, event: Event) -> None:
        """Destroy an event that the subject made."""

    def get_event_status(self, event: Event) -> Answer:
        """Value: the SE_EventStatus as a number: 0 unknown, 1 error, 2 pending, 3 complete.

        It has no status: the code is OK unless something was thrown.
        """

    def record_event(self, stream: Stream, event: Event) -> Answer:
        """Mark the end of what the stream holds now."""

    def wait_for_event(self, stream: Stream, event: Event) -> Answer:
        """Let later work of the stream wait for the event."""

    def block_host_for_event(self, event: Event) -> Answer:
        """Wait for the event."""

    # -- timers -----------------------------------------------------------------------------------

    def create_timer(self) -> Answer:
        """Value: a `Timer`, where the code is OK; the host has its own if the plugin has none."""

    def destroy_timer(self, timer: Timer) -> None:
        """Destroy a timer that the subject made."""

    def start_timer(self, stream: Stream, timer: Timer) -> Answer:
        """Begin to measure when the stream gets there."""

    def stop_timer(self, stream: Stream, timer: Timer) -> Answer:
        """Stop a timer."""

    def nanoseconds(self, timer: Timer) -> Answer:
        """Value: what was measured. Raw: ask only when the stream is known to be done."""
