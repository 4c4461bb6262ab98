"""What a device may hold, whatever its scheduler does: a model of memory, streams and events.

One host thread enqueues operations, numbered as they come. Of each the model knows which others
are over before it runs: what the host knew to be done when it enqueued it, what its stream held,
and what that stream waits for. Sets of operations are bit masks: bit n is operation n.

A byte that an operation reads can be what any writer left there that may have run before, unless
another writer surely ran in between. So most reads have one possible outcome, and reads that
race with writes have a few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Possible: TypeAlias = "frozenset[int] | None"
"""The values that a byte can have; None for any."""

_NOTHING: frozenset[int] = frozenset()


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
class _Stream:
    held: int = 0  # what is over when all that it holds is


@dataclass(slots=True)
class DeviceModel:
    """A device; see the module. [one thread]

    Streams, events and memories go by numbers. A stream of None is the host itself: the copy is
    done when it returns.
    """

    operations: list[Operation] = field(default_factory=list)
    sizes: dict[int, int] = field(default_factory=dict)
    known: int = 0
    """The operations that the host knows to be over."""
    _streams: dict[int, _Stream] = field(default_factory=dict)
    _events: dict[int, int] = field(default_factory=dict)
    _numbers: int = 0

    @property
    def streams(self) -> list[int]:
        """The numbers of the streams that there are."""
        return list(self._streams)

    @property
    def events(self) -> list[int]:
        """The numbers of the events that there are."""
        return list(self._events)

    # -- things -----------------------------------------------------------------------------------

    def allocate(self, size: int) -> int:
        """Make a memory of so many bytes that can hold anything."""
        number = self._new()
        self.sizes[number] = size
        return number

    def deallocate(self, memory: int) -> None:
        """Give a memory back, which `is_unused`."""
        del self.sizes[memory]

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
        number = self._new()
        self._streams[number] = _Stream()
        return number

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream; its work is still done, at an unknown time."""
        del self._streams[stream]

    def create_event(self) -> int:
        """Make an event that nothing has to pass."""
        number = self._new()
        self._events[number] = 0
        return number

    def destroy_event(self, event: int) -> None:
        """Destroy an event; who waits for it still does."""
        del self._events[event]

    def _new(self) -> int:
        self._numbers += 1
        return self._numbers

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

    def callback(self, stream: int) -> int:
        """Enqueue a callback."""
        return self._add(stream)

    def _add(
        self,
        stream: int | None,
        *,
        source: Place | None = None,
        target: Place | None = None,
        data: bytes = b"",
    ) -> int:
        number = len(self.operations)
        before = self.known | (0 if stream is None else self._streams[stream].held)
        self.operations.append(Operation(number, before, source, target, data))
        over = before | 1 << number
        if stream is None:
            self.known = over
        else:
            self._streams[stream].held = over
        return number

    # -- order ------------------------------------------------------------------------------------

    def depend(self, dependent: int, other: int) -> None:
        """Let a stream wait for what another holds now."""
        self._streams[dependent].held |= self._streams[other].held

    def record(self, stream: int, event: int) -> None:
        """Mark the end of what a stream holds now."""
        self._events[event] = self._streams[stream].held

    def wait_for_event(self, stream: int, event: int) -> None:
        """Let a stream wait for an event as it was recorded last."""
        self._streams[stream].held |= self._events[event]

    def passed_event(self, event: int) -> None:
        """Note that the host has waited for an event, or seen it COMPLETE."""
        self.known |= self._events[event]

    def passed_stream(self, stream: int) -> None:
        """Note that the host has waited for a stream."""
        self.known |= self._streams[stream].held

    def passed_all(self) -> None:
        """Note that the host has waited for all streams that there are."""
        for stream in self._streams.values():
            self.known |= stream.held

    def is_done(self, operation: int) -> bool:
        """Whether the host knows an operation to be over."""
        return bool(self.known >> operation & 1)

    # -- what can be ------------------------------------------------------------------------------

    def possible(self, read: int) -> list[Possible]:
        """Return what each byte can be that a read brought, which must be done."""
        return self._source_of(self.operations[read], frozenset())

    def mismatches(self, read: int, found: bytes) -> list[str]:
        """Return which bytes of a read cannot be, in words."""
        return [
            f"byte {at} is {value:#04x}, expected {_shown(allowed)}"
            for at, (value, allowed) in enumerate(zip(found, self.possible(read), strict=True))
            if allowed is not None and value not in allowed
        ]

    def _source_of(self, reader: Operation, pending: frozenset[int]) -> list[Possible]:
        source = reader.source
        if source is None:
            return []
        places = range(source.offset, source.end)
        return [self._byte(source.memory, at, reader, pending) for at in places]

    def _byte(self, memory: int, at: int, reader: Operation, pending: frozenset[int]) -> Possible:
        """Return what a reader can find in a byte.

        Args:
            memory: Where.
            at: The offset.
            reader: Who looks.
            pending: Copies whose own source is being looked at: none of them can bring itself
                anything new.
        """
        writers = self._visible_writers(memory, at, reader)
        found = _NOTHING
        if not any(reader.before >> writer.number & 1 for writer in writers):
            return None  # no write is known to have happened there
        for writer in writers:
            if writer.number in pending:
                continue
            value = self._written(writer, at, pending)
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
        target = writer.target
        if target is None:
            return _NOTHING
        index = at - target.offset
        if writer.source is None:
            return frozenset({writer.data[index]})
        source = writer.source
        return self._byte(source.memory, source.offset + index, writer, pending | {writer.number})


def _shown(allowed: frozenset[int]) -> str:
    return " or ".join(f"{value:#04x}" for value in sorted(allowed))
