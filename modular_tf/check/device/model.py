"""What a device may hold, whatever its scheduler does, and random steps that are held to that.

One host thread enqueues operations, numbered as they come. Of each the model knows which others
are over before it runs: what the host knew to be done when it enqueued it, what its stream held,
and what that stream waits for. Sets of operations are bit masks: bit n is operation n.

A byte that an operation reads can be what any writer left there that may have run before, unless
another writer surely ran in between. So most reads have one possible outcome, and reads that
race with writes have a few.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from modular_tf.check.answers import code_found
from modular_tf.check.device.workspace import HostBuffer
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.sequences import Data, Numbers
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.check.device.operations import Memory, Operations
    from modular_tf.check.device.workspace import Workspace
    from modular_tf.check.sequences import Program, StepKind

Possible: TypeAlias = "frozenset[int] | None"
"""The values that a byte can have; None for any."""


@dataclass(frozen=True, slots=True)
class Place:
    """Some bytes of a memory.

    Attributes:
        memory: Its number.
        offset: Of the first.
        size: How many.
    """

    memory: int
    offset: int
    size: int

    def __str__(self) -> str:
        return f"{self.size} bytes of {self.memory} at {self.offset}"

    @property
    def end(self) -> int:
        """The offset behind the last."""
        return self.offset + self.size

    def has(self, memory: int, at: int) -> bool:
        """Return whether a byte is among them."""
        return self.memory == memory and self.offset <= at < self.end


@dataclass(frozen=True, slots=True)
class Operation:
    """One piece of work.

    Attributes:
        number: Its place in the order of the host.
        before: The operations that are over when it runs.
        source: What it reads on the device, None for nothing.
        target: What it writes on the device, None for nothing.
        data: What it writes, where that comes from the host.
    """

    number: int
    before: int
    source: Place | None = None
    target: Place | None = None
    data: bytes = b""


@dataclass(slots=True)
class DeviceModel:
    """A device; see the module. [one thread]

    Streams, events and memories go by numbers. A stream of None is the host itself: the copy is
    done when it returns.
    """

    operations: list[Operation] = field(default_factory=list)
    known: int = 0
    """The operations that the host knows to be over."""
    _streams: dict[int, int] = field(default_factory=dict)  # what is over when all its work is
    _events: dict[int, int] = field(default_factory=dict)
    _numbers: int = 0

    # -- things -----------------------------------------------------------------------------------

    def allocate(self) -> int:
        """Make a memory that can hold anything."""
        self._numbers += 1
        return self._numbers

    def is_unused(self, memory: int) -> bool:
        """Whether the host knows all to be over that uses a memory."""
        return all(
            self.is_done(one.number)
            for one in self.operations
            for place in (one.source, one.target)
            if place is not None and place.memory == memory
        )

    def create_stream(self) -> int:
        """Make a stream that holds nothing."""
        number = self.allocate()
        self._streams[number] = 0
        return number

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream; its work is still done, at an unknown time."""
        del self._streams[stream]

    def create_event(self) -> int:
        """Make an event that nothing has to pass."""
        number = self.allocate()
        self._events[number] = 0
        return number

    # -- work -------------------------------------------------------------------------------------

    def write(self, stream: int | None, target: Place, data: bytes) -> int:
        """Copy from the host, or fill; returns the operation's number."""
        return self._add(stream, target=target, data=data)

    def copy(self, stream: int | None, target: Place, source: Place) -> int:
        """Copy on the device, between places that do not overlap."""
        return self._add(stream, target=target, source=source)

    def read(self, stream: int | None, source: Place) -> int:
        """Copy to the host."""
        return self._add(stream, source=source)

    def _add(
        self,
        stream: int | None,
        *,
        source: Place | None = None,
        target: Place | None = None,
        data: bytes = b"",
    ) -> int:
        number = len(self.operations)
        before = self.known | (0 if stream is None else self._streams[stream])
        self.operations.append(Operation(number, before, source, target, data))
        over = before | 1 << number
        if stream is None:
            self.known = over
        else:
            self._streams[stream] = over
        return number

    # -- order ------------------------------------------------------------------------------------

    def depend(self, dependent: int, other: int) -> None:
        """Let a stream wait for what another holds now."""
        self._streams[dependent] |= self._streams[other]

    def record(self, stream: int, event: int) -> None:
        """Mark the end of what a stream holds now."""
        self._events[event] = self._streams[stream]

    def wait_for_event(self, stream: int, event: int) -> None:
        """Let a stream wait for an event as it was recorded last."""
        self._streams[stream] |= self._events[event]

    def passed_event(self, event: int) -> None:
        """Note that the host has waited for an event, or seen it COMPLETE."""
        self.known |= self._events[event]

    def passed_stream(self, stream: int) -> None:
        """Note that the host has waited for a stream."""
        self.known |= self._streams[stream]

    def passed_all(self) -> None:
        """Note that the host has waited for all streams that there are."""
        for held in self._streams.values():
            self.known |= held

    def is_done(self, operation: int) -> bool:
        """Whether the host knows an operation to be over."""
        return bool(self.known >> operation & 1)

    # -- what can be ------------------------------------------------------------------------------

    def possible(self, read: int) -> list[Possible]:
        """Return what each byte can be that a read brought, which must be done."""
        reader = self.operations[read]
        source = reader.source
        if source is None:
            return []
        places = range(source.offset, source.end)
        return [self._byte(source.memory, at, reader, frozenset()) for at in places]

    def mismatches(self, read: int, found: bytes) -> list[str]:
        """Return which bytes of a read cannot be, in words."""
        return [
            f"byte {at} is {value:#04x}, expected "
            + " or ".join(f"{one:#04x}" for one in sorted(allowed))
            for at, (value, allowed) in enumerate(zip(found, self.possible(read), strict=True))
            if allowed is not None and value not in allowed
        ]

    def _byte(self, memory: int, at: int, reader: Operation, pending: frozenset[int]) -> Possible:
        """Return what a reader can find in a byte.

        The source of each pending copy is already being followed: it adds nothing to itself.
        """
        writers = self._visible_writers(memory, at, reader)
        if not any(reader.before >> writer.number & 1 for writer in writers):
            return None  # no write is known to have happened there
        found: frozenset[int] = frozenset()
        for writer in writers:
            value = frozenset() if writer.number in pending else self._written(writer, at, pending)
            if value is None:
                return None
            found |= value
        return found

    def _visible_writers(self, memory: int, at: int, reader: Operation) -> list[Operation]:
        """Return the writers of a byte that can be the last before the reader."""
        writers = [
            one
            for one in self.operations
            if one.target is not None
            and one.target.has(memory, at)
            and one.number != reader.number
            and not one.before >> reader.number & 1
        ]
        earlier = [one for one in writers if reader.before >> one.number & 1]
        return [
            one for one in writers if not any(later.before >> one.number & 1 for later in earlier)
        ]

    def _written(self, writer: Operation, at: int, pending: frozenset[int]) -> Possible:
        """Return what a writer can have left in a byte of its target."""
        index = at - (0 if writer.target is None else writer.target.offset)
        source = writer.source
        if source is None:
            return frozenset({writer.data[index]})
        return self._byte(source.memory, source.offset + index, writer, pending | {writer.number})


SIZE = 32
"""In bytes, of each memory of a run."""
MEMORIES, STREAMS, EVENTS = 3, 3, 3
"""How many of them a run has."""
HOST = -1
"""Instead of a stream: the copy is done when it returns."""
_MOST_FINDINGS = 5


def length(at: int, wanted: int) -> int:
    """Return a length from 1 on that does not reach beyond the memory."""
    return min(wanted + 1, SIZE - at)


class ModelRun:
    """Steps on a device and on its model, which name memories, streams and events by small numbers.

    A step whose operation the device does not offer raises `Unsupported` and changes nothing.
    [one thread]
    """

    def __init__(self, device: Operations) -> None:
        self._device = device
        self._model = DeviceModel()
        self._findings: list[str] = []
        self._handles: dict[int, Any] = {}
        self._reads: dict[int, HostBuffer] = {}
        self._buffers: list[HostBuffer] = []
        self._memories = [self._memory() for _ in range(MEMORIES)]
        self._streams = [self._stream() for _ in range(STREAMS)]
        self._events = [
            self._made(self._model.create_event(), device.create_event()) for _ in range(EVENTS)
        ]

    def _made(self, number: int, answer: Answer) -> int:
        self._worked(answer)
        self._handles[number] = answer.value
        return number

    def _stream(self) -> int:
        return self._made(self._model.create_stream(), self._device.create_stream())

    def _memory(self) -> int:
        answer = self._device.allocate(SIZE)
        if answer.value is None:
            raise Blocked(f"allocate({SIZE}) gave nothing")
        memory = self._made(self._model.allocate(), answer)
        self._write(HOST, Place(memory, 0, SIZE), bytes(SIZE))
        return memory

    # -- work -------------------------------------------------------------------------------------

    def write(self, stream: int, memory: int, at: int, data: str) -> None:
        """Copy bytes from the host, which are hexadecimal."""
        content = bytes.fromhex(data)[: SIZE - at]
        self._write(stream, Place(self._memories[memory], at, len(content)), content)

    def _write(self, stream: int, place: Place, content: bytes) -> None:
        self._copied("memcpy_htod", stream, self._part(place), self._buffer(content), place.size)
        self._model.write(self._number(stream), place, content)

    def fill(self, stream: int, memory: int, at: int, size: int, value: int) -> None:
        """Fill with a byte."""
        place = Place(self._memories[memory], at, length(at, size))
        handle = self._handles[self._streams[stream]]
        self._worked(self._device.memset(handle, self._part(place), value, place.size))
        self._model.write(self._number(stream), place, bytes((value,)) * place.size)

    def copy(self, stream: int, to: int, to_at: int, of: int, of_at: int, size: int) -> None:
        """Copy on the device, unless it is the same memory: overlapping copies are undefined."""
        if to == of:
            return
        n_bytes = min(length(to_at, size), length(of_at, size))
        target = Place(self._memories[to], to_at, n_bytes)
        source = Place(self._memories[of], of_at, n_bytes)
        self._copied("memcpy_dtod", stream, self._part(target), self._part(source), n_bytes)
        self._model.copy(self._number(stream), target, source)

    def read(self, stream: int, memory: int, at: int, size: int) -> None:
        """Copy to the host; it is judged as soon as it is known to be done."""
        place = Place(self._memories[memory], at, length(at, size))
        target = self._buffer(place.size)
        self._copied("memcpy_dtoh", stream, target, self._part(place), place.size)
        self._reads[self._model.read(self._number(stream), place)] = target
        self._judge()

    def _copied(self, way: str, stream: int, target: object, source: object, size: int) -> None:
        if stream == HOST:
            answer = getattr(self._device, f"sync_{way}")(target, source, size)
        else:
            handle = self._handles[self._streams[stream]]
            answer = getattr(self._device, way)(handle, target, source, size)
        self._worked(answer)

    def _number(self, stream: int) -> int | None:
        return None if stream == HOST else self._streams[stream]

    def _part(self, place: Place) -> Memory:
        memory: Memory = self._handles[place.memory]
        return memory.part(place.offset, place.size)

    def _buffer(self, content: bytes | int) -> HostBuffer:
        self._buffers.append(HostBuffer(content))
        return self._buffers[-1]

    # -- order ------------------------------------------------------------------------------------

    def depend(self, dependent: int, other: int) -> None:
        """Let a stream wait for another one."""
        if dependent != other:
            one, two = self._streams[dependent], self._streams[other]
            handles = self._handles[one], self._handles[two]
            self._worked(self._device.create_stream_dependency(*handles))
            self._model.depend(one, two)

    def record(self, stream: int, event: int) -> None:
        """Record an event."""
        one, mark = self._streams[stream], self._events[event]
        self._worked(self._device.record_event(self._handles[one], self._handles[mark]))
        self._model.record(one, mark)

    def wait_for_event(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        one, mark = self._streams[stream], self._events[event]
        self._worked(self._device.wait_for_event(self._handles[one], self._handles[mark]))
        self._model.wait_for_event(one, mark)

    def poll(self, event: int) -> None:
        """See whether an event is passed."""
        mark = self._events[event]
        if self._device.get_event_status(self._handles[mark]).value == EventStatus.COMPLETE:
            self._model.passed_event(mark)
            self._judge()

    def block_for_event(self, event: int) -> None:
        """Wait for an event."""
        mark = self._events[event]
        self._worked(self._device.block_host_for_event(self._handles[mark]))
        self._model.passed_event(mark)
        self._judge()

    def block_for_stream(self, stream: int) -> None:
        """Wait for a stream."""
        one = self._streams[stream]
        self._worked(self._device.block_host_until_done(self._handles[one]))
        self._model.passed_stream(one)
        self._judge()

    def synchronize(self) -> None:
        """Wait for all streams."""
        self._worked(self._device.synchronize_all_activity())
        self._model.passed_all()
        self._judge()

    def replace_stream(self, stream: int) -> None:
        """Destroy a stream, whatever it holds, and take a new one."""
        one = self._streams[stream]
        self._model.destroy_stream(one)
        self._device.destroy_stream(self._handles.pop(one))
        self._streams[stream] = self._stream()

    def replace_memory(self, memory: int) -> None:
        """Wait for all streams, give a memory back that nothing uses then, and take a new one."""
        self.synchronize()
        if self._model.is_unused(self._memories[memory]):
            self._device.deallocate(self._handles.pop(self._memories[memory]))
            self._memories[memory] = self._memory()

    # -- findings ---------------------------------------------------------------------------------

    def _worked(self, answer: Answer) -> None:
        if not answer.ok:
            self._findings.append(f"{answer.call}: {code_found(answer)}")

    def _judge(self) -> None:
        """Judge the reads that are known to be done by now."""
        for number in [number for number in self._reads if self._model.is_done(number)]:
            found = self._reads.pop(number).content()
            place = self._model.operations[number].source
            for mismatch in self._model.mismatches(number, found):
                self._findings.append(f"read of {place}: {mismatch}")

    def finish(self) -> None:
        """Read all memories, destroy all, and demand that the model rules nothing out."""
        for memory in range(MEMORIES):
            with suppress(Unsupported):
                self.read(HOST, memory, 0, SIZE)
        self.synchronize()
        for stream in self._streams:
            self._device.destroy_stream(self._handles[stream])
        for event in self._events:
            self._device.destroy_event(self._handles[event])
        for memory in self._memories:
            self._device.deallocate(self._handles[memory])
        for buffer in self._buffers:
            try:
                buffer.check_guards()
            except Deviation as deviation:
                self._findings.append(deviation.message)
        if self._findings:
            raise Deviation(
                "the device did what no allowed order of its work does",
                found="; ".join(self._findings[:_MOST_FINDINGS]),
            )


# -- steps as data ---------------------------------------------------------------------------------

_STREAM, _EVENT, _MEMORY = (Numbers(0, most - 1) for most in (STREAMS, EVENTS, MEMORIES))
_STREAM_OR_HOST = Numbers(HOST, STREAMS - 1)
_AT = Numbers(0, SIZE - 1)

STEPS: Sequence[StepKind] = (
    (("write",), (_STREAM_OR_HOST, _MEMORY, _AT, Data(1, SIZE))),
    (("fill",), (_STREAM, _MEMORY, _AT, _AT, Numbers(0, 255))),
    (("copy",), (_STREAM_OR_HOST, _MEMORY, _AT, _MEMORY, _AT, _AT)),
    (("read",), (_STREAM_OR_HOST, _MEMORY, _AT, _AT)),
    (("read",), (_STREAM_OR_HOST, _MEMORY, _AT, _AT)),
    (("depend",), (_STREAM, _STREAM)),
    (("record", "wait_for_event"), (_STREAM, _EVENT)),
    (("poll", "block_for_event"), (_EVENT,)),
    (("block_for_stream", "replace_stream"), (_STREAM,)),
    (("synchronize",), ()),
    (("replace_memory",), (_MEMORY,)),
)
"""What a step may be."""


def script(program: Program) -> list[str]:
    """Return a program as C-like statements, one a step.

    Memories `m0`, streams `s0` and events `e0` are numbered from 0; memories have 32 bytes.
    """
    return [_statement(operation, arguments) for operation, arguments in program]


_STATEMENTS = {
    "depend": "create_stream_dependency(s{0}, s{1});",
    "record": "record_event(s{0}, e{1});",
    "wait_for_event": "wait_for_event(s{0}, e{1});",
    "poll": "get_event_status(e{0});",
    "block_for_event": "block_host_for_event(e{0});",
    "block_for_stream": "block_host_until_done(s{0});",
    "synchronize": "synchronize_all_activity();",
    "replace_stream": "destroy_stream(s{0}); create_stream(&s{0});",
    "replace_memory": "deallocate(m{0}); allocate(&m{0});",
}


def _statement(operation: str, arguments: list[Any]) -> str:
    if operation in _STATEMENTS:
        return _STATEMENTS[operation].format(*arguments)
    stream, memory, at, *rest = arguments
    place = f"m{memory} + {at}"
    if operation == "write":
        data = bytes.fromhex(rest[0])[: SIZE - at]
        text = "".join(f"\\x{byte:02x}" for byte in data)
        return _copy("htod", stream, place, f'"{text}"', len(data))
    if operation == "fill":
        return f"memset(s{stream}, {place}, {rest[1]}, {length(at, rest[0])});"
    if operation == "copy":
        size = min(length(at, rest[2]), length(rest[1], rest[2]))
        return _copy("dtod", stream, place, f"m{rest[0]} + {rest[1]}", size)
    return _copy("dtoh", stream, "host", place, length(at, rest[0]))


def _copy(way: str, stream: int, target: str, source: str, size: int) -> str:
    if stream == HOST:
        return f"sync_memcpy_{way}({target}, {source}, {size});"
    return f"memcpy_{way}(s{stream}, {target}, {source}, {size});"


def perform(device: Workspace, program: Program) -> None:
    """Do a program to a device and to its model, then read all memories."""
    run = ModelRun(device)
    for operation, arguments in program:
        with suppress(Unsupported):
            getattr(run, operation)(*arguments)
    run.finish()
