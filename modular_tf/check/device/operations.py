"""The operations of a device: each is said once, by a method of `Operations`.

The method's name is the slot's, its annotations are the kinds of the arguments. From that, and from
what `@operation` says of the result, `SlotDevice` makes the call of the plugin's slot, and
`HostDevice` the call of this package. What the plugin makes is an object here even where the
plugin's own handle is NULL, which it may be.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from modular_tf.check.answers import Answer
    from modular_tf.loading.device_tables import DeviceTables

P = ParamSpec("P")

Stream: TypeAlias = Any
"""What `create_stream` made; the handle itself may be NULL. `Event` and `Timer` likewise."""
Event: TypeAlias = Any
Timer: TypeAlias = Any

Size: TypeAlias = int
"""In bytes. Copies and fills use so much of the front of a memory."""
Byte: TypeAlias = int
Word: TypeAlias = int

Work: TypeAlias = "Callable[[], tuple[int, str] | None]"
"""What a host callback does: None where it went well, else a status code and a message."""


class Memory(Protocol):
    """Device memory, or a part of it."""

    @property
    def address(self) -> int:
        """`opaque`: what the plugin calls it; 0 only for 0 bytes, which this package has itself."""

    @property
    def size(self) -> int:
        """How many bytes were requested."""

    def part(self, offset: int, size: int, /) -> Memory:
        """Return a piece of it, by an address inside, as hosts that pool memory do."""


class Bytes(Protocol):
    """The host's side of a copy: a `HostBuffer`, or a block that the plugin allocated."""

    @property
    def address(self) -> int:
        """Where it lies."""

    @property
    def view(self) -> memoryview:
        """The bytes, writable; must not be used after a block was given back."""


class UnifiedMemory(Memory, Bytes, Protocol):
    """Memory of the device that the host sees too."""


class DeviceFacts(NamedTuple):
    """What SP_Device and SP_DeviceFns report; None for what the plugin does not know, or is NULL.

    By slots, a negative number is not known either.
    """

    ordinal: int
    hardware_name: str | None
    vendor: str | None
    pci_bus_id: str | None
    numa_node: int | None
    memory_bandwidth: int | None
    gflops: float | None


Result: TypeAlias = Literal["status", "handle", "number", "flag", "memory", "nothing"]
"""A status alone; a status and a handle, which is the answer's value; without a status, a number or
memory, which is the value, or whether it worked; nothing at all."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One slot of SP_StreamExecutor.

    Attributes:
        name: The slot.
        parameters: The kind of each argument, by its name: that of its type above.
        result: What comes back.
        host: What of this package does it: a method or property of an argument or of the device.
        about: The check that is about the operation, "" for none.
    """

    name: str
    parameters: Mapping[str, str]
    result: Result
    host: str
    about: str


OPERATIONS: dict[str, Operation] = {}
"""All of them, by name."""


def operation(
    host: str, result: Result = "status", *, about: str = ""
) -> Callable[[Callable[Concatenate[Any, P], None]], Callable[Concatenate[Any, P], Answer]]:
    """Make a method's signature an operation, and the method its call; see `Operation`."""

    def define(
        stub: Callable[Concatenate[Any, P], None],
    ) -> Callable[Concatenate[Any, P], Answer]:
        kinds = {name: kind for name, kind in stub.__annotations__.items() if name != "return"}
        row = OPERATIONS[stub.__name__] = Operation(stub.__name__, kinds, result, host, about)

        def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> Answer:
            answer: Answer = self.perform(row, *arguments, *named.values())
            given = zip(kinds, (*arguments, *named.values()), strict=True)
            shown = (str(each) if isinstance(each, int) else name for name, each in given)
            return replace(answer, call=f"{row.name}({', '.join(shown)})")

        return call

    return define


class Operations:
    """One created device; each method is one slot of `SP_StreamExecutor`. [any thread]

    Every method raises `Unsupported` where the slot is NULL and nothing stands in for it, and
    `Breach` where the plugin did harm to memory.
    """

    @abstractmethod
    def perform(self, row: Operation, *arguments: Any) -> Answer:
        """Call an operation."""

    # -- memory -----------------------------------------------------------------------------------

    @operation("device.allocate", "memory", about="SE-131")
    def allocate(self, n_bytes: Size) -> None:
        """Value: a `Memory`. None, with code RESOURCE_EXHAUSTED, where `opaque` is NULL."""

    @operation("memory.close", "nothing")
    def deallocate(self, memory: Memory) -> None:
        """Give it back, by its address alone as TensorFlow does: size 0, payload 0."""

    @operation("device.allocate_host", "memory")
    def host_memory_allocate(self, n_bytes: Size) -> None:
        """Value: `Bytes`; as `allocate`."""

    @operation("block.close", "nothing")
    def host_memory_deallocate(self, block: Bytes) -> None:
        """Give a block back."""

    @operation("device.allocate_unified", "memory")
    def unified_memory_allocate(self, n_bytes: Size) -> None:
        """Value: a `UnifiedMemory`; as `allocate`."""

    @operation("block.close", "nothing")
    def unified_memory_deallocate(self, block: Bytes) -> None:
        """Give a block back."""

    @operation("device.memory_usage", "flag")
    def device_memory_usage(self) -> None:
        """Value: (free, total). Returned (by slots): the C function's truth value.

        Code UNAVAILABLE where the plugin does not know.
        """

    @operation("device.allocator_stats", "flag")
    def get_allocator_stats(self) -> None:
        """Value: `AllocatorStats` (`device.memory.allocator_stats`); as `device_memory_usage`.

        Through the host, they are the arena's where one serves.
        """

    # -- copies and fills -------------------------------------------------------------------------

    @operation("stream.memcpy_htod", about="SE-202")
    def memcpy_htod(self, stream: Stream, target: Memory, source: Bytes, n_bytes: Size) -> None:
        """Enqueue a copy to the device; the source must stay until the stream has passed it."""

    @operation("stream.memcpy_dtoh", about="SE-203")
    def memcpy_dtoh(self, stream: Stream, target: Bytes, source: Memory, n_bytes: Size) -> None:
        """Enqueue a copy from the device."""

    @operation("stream.memcpy_dtod", about="SE-204")
    def memcpy_dtod(self, stream: Stream, target: Memory, source: Memory, n_bytes: Size) -> None:
        """Enqueue a copy on the device."""

    @operation("device.memcpy_htod", about="SE-200")
    def sync_memcpy_htod(self, target: Memory, source: Bytes, n_bytes: Size) -> None:
        """Copy to the device; done when it returns."""

    @operation("device.memcpy_dtoh", about="SE-200")
    def sync_memcpy_dtoh(self, target: Bytes, source: Memory, n_bytes: Size) -> None:
        """Copy from the device; done when it returns."""

    @operation("device.memcpy_dtod")
    def sync_memcpy_dtod(self, target: Memory, source: Memory, n_bytes: Size) -> None:
        """Copy on the device; done when it returns."""

    @operation("stream.mem_zero")
    def mem_zero(self, stream: Stream, memory: Memory, n_bytes: Size) -> None:
        """Enqueue setting bytes of device memory to 0."""

    @operation("stream.memset")
    def memset(self, stream: Stream, memory: Memory, value: Byte, n_bytes: Size) -> None:
        """Enqueue filling with a byte."""

    @operation("stream.memset32")
    def memset32(self, stream: Stream, memory: Memory, value: Word, n_bytes: Size) -> None:
        """Enqueue filling with a 32-bit number; `n_bytes` is a multiple of 4."""

    # -- streams ----------------------------------------------------------------------------------

    @operation("device.create_stream", "handle", about="SE-238")
    def create_stream(self) -> None:
        """Value: a `Stream`, where the code is OK."""

    @operation("stream.close", "nothing")
    def destroy_stream(self, stream: Stream) -> None:
        """Destroy it; through the host, when its work is done."""

    @operation("dependent.wait_for")
    def create_stream_dependency(self, dependent: Stream, other: Stream) -> None:
        """Let later work of `dependent` wait for what `other` holds now."""

    @operation("stream.error")
    def get_stream_status(self, stream: Stream) -> None:
        """The code is the stream's; through the host, a callback's failure comes first."""

    @operation("stream.block_until_done", about="SE-236")
    def block_host_until_done(self, stream: Stream) -> None:
        """Wait for the stream; without the slot, by an event of its own as TensorFlow does."""

    @operation("device.synchronize", about="SE-252")
    def synchronize_all_activity(self) -> None:
        """Wait for all streams."""

    @operation("stream.add_callback", "flag", about="SE-278")
    def host_callback(self, stream: Stream, work: Work) -> None:
        """Have the host called when the stream gets there.

        Returned (by slots): the C function's truth value. Code INTERNAL where that is 0, in both.
        """

    # -- events -----------------------------------------------------------------------------------

    @operation("device.create_event", "handle")
    def create_event(self) -> None:
        """Value: an `Event`, where the code is OK."""

    @operation("event.close", "nothing")
    def destroy_event(self, event: Event) -> None:
        """Destroy an event, even one that is waited for."""

    @operation("event.status", "number")
    def get_event_status(self, event: Event) -> None:
        """Value: the SE_EventStatus as a number: 0 unknown, 1 error, 2 pending, 3 complete."""

    @operation("event.record", about="SE-253")
    def record_event(self, stream: Stream, event: Event) -> None:
        """Mark the end of what the stream holds now."""

    @operation("stream.wait_event")
    def wait_for_event(self, stream: Stream, event: Event) -> None:
        """Let later work of the stream wait for the event."""

    @operation("event.block")
    def block_host_for_event(self, event: Event) -> None:
        """Wait until the event is passed."""

    # -- timers -----------------------------------------------------------------------------------

    @operation("device.create_timer", "handle")
    def create_timer(self) -> None:
        """Value: a `Timer`, where the code is OK; the host has its own if the plugin has none."""

    @operation("timer.close", "nothing")
    def destroy_timer(self, timer: Timer) -> None:
        """Destroy a timer, whatever it measures."""

    @operation("timer.start")
    def start_timer(self, stream: Stream, timer: Timer) -> None:
        """Begin to measure when the stream gets there."""

    @operation("timer.stop")
    def stop_timer(self, stream: Stream, timer: Timer) -> None:
        """End the measurement when the stream gets there."""

    @operation("timer.nanoseconds", "number")
    def nanoseconds(self, timer: Timer) -> None:
        """Value: what was measured. By slots: only when the stream is known to be done."""


class DeviceAccess(Operations):
    """A device in one of the two ways in which checks reach it.

    Attributes:
        tables: What the plugin registered.
        has_unified_memory: Whether its platform has, or the RFC's allocator.
        calls_back: Whether callbacks are called; False when one was not, for so long as one waits.
    """

    tables: DeviceTables
    has_unified_memory: bool
    calls_back = True

    def perform(self, row: Operation, *arguments: Any) -> Answer:
        """Call an operation, by a method of its own where there is one."""
        own = getattr(self, f"_{row.name}", None)
        answer: Answer = self.call(row, *arguments) if own is None else own(*arguments)
        return answer

    @abstractmethod
    def call(self, row: Operation, *arguments: Any) -> Answer:
        """Call an operation as its row says."""

    @abstractmethod
    def offers(self, slot: str) -> bool:
        """Return whether the operation can be called: the plugin has it, or something else does."""

    @abstractmethod
    def facts(self) -> DeviceFacts:
        """Return what the device reports."""

    @abstractmethod
    def close(self) -> None:
        """Destroy the device and take its platform down."""
