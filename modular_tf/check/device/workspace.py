"""A device as a check is given it: its operations, and what the check makes there."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import pairwise
from operator import ne
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

from modular_tf.check.device.operations import OPERATIONS, Operations
from modular_tf.check.device.waiting import Gate
from modular_tf.check.expectation import Blocked, Deviation, Unsupported, expect
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Sequence

    from modular_tf.check.answers import Answer
    from modular_tf.check.device.by_slots import SlotDevice
    from modular_tf.check.device.operations import (
        Bytes,
        DeviceAccess,
        DeviceFacts,
        Event,
        Memory,
        Operation,
        Stream,
        Timer,
        UnifiedMemory,
        Work,
    )
    from modular_tf.check.target import Target
    from modular_tf.rules import Severity

P = ParamSpec("P")

_PASSED_SECONDS = 5.0
"""How long the kit waits for a mark that has nothing to wait for; plugins need microseconds."""
_HELD_SECONDS = 0.03
"""How long a mark is watched that must not be passed. A plugin that keeps the order passes the
check however long or short this is."""
_NAP_SECONDS = 0.001
_CALLED_SECONDS = 5.0
"""How long the kit waits for a callback that has nothing to wait for."""
_SILENT_SECONDS = 0.2
"""Likewise, when it had to wait in vain before."""

_ORDER = ("timer", "event", "stream", "device", "host", "unified")
"""What is destroyed first, as this package does."""


class HostBuffer(GuardedMemory):
    """Bytes of the host's, of which a copy reads or writes some, between two guards. [any thread]

    It must be kept until the stream has passed every copy that uses it.

    Attributes:
        view: The bytes, writable, without the guards.
        address: Where they lie: a multiple of 64, and `shift` more.
    """

    __slots__ = ()

    def __init__(self, content: bytes | int, *, shift: int = 0) -> None:
        """Make a buffer of some bytes, or so many of 0, `shift` bytes from an aligned address."""
        if isinstance(content, int):
            super().__init__(content, shift=shift)
        else:
            super().__init__(len(content), content, shift=shift)

    def content(self) -> bytes:
        """Return a copy of the bytes."""
        return self.raw()

    def check_guards(self) -> None:
        """Demand that nothing was written before the buffer or after it."""
        where = self.breach()
        expect(
            where is None,
            "the plugin wrote beside a host buffer",
            expected="only the buffer's own bytes are written",
            found=where or "",
        )


class Workspace(Operations):
    """A device, for one check. What the check makes there is destroyed after it. [any thread]

    Attributes:
        access: How the device is reached.
        target: What is checked.
        random: Seeded by the run's seed and the check's id.
    """

    def __init__(self, access: DeviceAccess, target: Target, random: random.Random) -> None:
        self.access = access
        self.target = target
        self.random = random
        self._made: dict[str, list[Any]] = {kind: [] for kind in _ORDER}
        self._buffers: list[HostBuffer] = []
        self._gates: list[Gate] = []
        self._destroy: dict[str, Callable[[Any], object]] = {
            "timer": access.destroy_timer,
            "event": access.destroy_event,
            "stream": access.destroy_stream,
            "device": access.deallocate,
            "host": access.host_memory_deallocate,
            "unified": access.unified_memory_deallocate,
        }

    def perform(self, row: Operation, *arguments: Any) -> Answer:
        """Call an operation."""
        return self.access.perform(row, *arguments)

    @property
    def slots(self) -> SlotDevice:
        """The device by its slots, for checks that are tried in this way only."""
        return cast("SlotDevice", self.access)

    def offers(self, slot: str) -> bool:
        """Return whether an operation can be called; see `DeviceAccess`."""
        return self.access.offers(slot)

    def facts(self) -> DeviceFacts:
        """Return what the device reports; see `DeviceAccess`."""
        return self.access.facts()

    # -- what the check needs, and others are about -----------------------------------------------

    def memory(self, n_bytes: int = 4096) -> Memory:
        """Return device memory whose content is not known."""
        memory: Memory = self._keep("device", self.allocate(n_bytes))
        return memory

    def filled(self, data: bytes) -> Memory:
        """Return device memory that holds `data`, copied by sync_memcpy_htod."""
        memory = self.memory(len(data))
        prepared(self.sync_memcpy_htod(memory, self.buffer(data), len(data)))
        return memory

    def content(self, memory: Memory) -> bytes:
        """Return what a memory holds, copied by sync_memcpy_dtoh."""
        buffer = self.buffer(memory.size)
        prepared(self.sync_memcpy_dtoh(buffer, memory, memory.size))
        return buffer.content()

    def must_hold(
        self, memory: Memory, expected: bytes, what: str, *, severity: Severity | None = None
    ) -> None:
        """Demand of a memory's content that it is the expected one; see `expect_bytes`."""
        expect_bytes(self.content(memory), expected, what, severity=severity)

    def host_block(self, n_bytes: int = 4096) -> Bytes:
        """Return host memory of the plugin's."""
        block: Bytes = self._keep("host", self.host_memory_allocate(n_bytes))
        return block

    def unified_block(self, n_bytes: int = 4096) -> UnifiedMemory:
        """Return unified memory of the plugin's."""
        block: UnifiedMemory = self._keep("unified", self.unified_memory_allocate(n_bytes))
        return block

    def stream(self, n_bytes: int = 0) -> Stream:
        """Return a stream, which has copied so many bytes."""
        stream = self._keep("stream", self.create_stream())
        if n_bytes:
            self.enqueue_work(stream, n_bytes)
        return stream

    def event(self) -> Event:
        """Return an event that was not recorded."""
        return self._keep("event", self.create_event())

    def timer(self) -> Timer:
        """Return a timer that was not started."""
        return self._keep("timer", self.create_timer())

    def _keep(self, kind: str, answer: Answer) -> Any:
        made = prepared(answer)
        if made is None:
            raise Blocked(f"{answer.call} reported OK and returned nothing")
        return self.adopt(kind, made)

    def adopt(self, kind: str, thing: Any) -> Any:
        """Have something destroyed afterwards that the check itself made, and return it.

        Its kind is "device", "host", "unified", "stream", "event" or "timer".
        """
        self._made[kind].append(thing)
        return thing

    def destroy(self, thing: Any) -> None:
        """Destroy now what one of the functions above has made."""
        for kind, things in self._made.items():
            for index, kept in enumerate(things):
                if kept is thing:
                    del things[index]
                    self._destroy[kind](thing)
                    return

    def buffer(self, content: bytes | int, *, shift: int = 0) -> HostBuffer:
        """Return host memory that holds `content`, or as many bytes of 0; guarded, kept alive."""
        buffer = HostBuffer(content, shift=shift)
        self._buffers.append(buffer)
        return buffer

    def bytes(self, n_bytes: int) -> bytes:
        """Return random bytes."""
        return self.random.randbytes(n_bytes)

    # -- order ------------------------------------------------------------------------------------

    def done(self, stream: Stream) -> None:
        """Wait until a stream is done."""
        prepared(self.block_host_until_done(stream))

    def run(
        self,
        enqueue: Callable[Concatenate[Stream, P], Answer],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> None:
        """Demand that a new stream takes a piece of work, and wait until it is done."""
        stream = self.stream()
        enqueue(stream, *arguments, **named).must_be_ok()
        self.done(stream)

    def enqueue_work(self, stream: Stream, n_bytes: int) -> None:
        """Enqueue a copy to new memory of the device, which every layout of plugins can do."""
        target, source = self.memory(n_bytes), self.buffer(n_bytes)
        prepared(self.memcpy_htod(stream, target, source, n_bytes))

    def call_back(self, stream: Stream, work: Work) -> None:
        """Have a stream call a function; as `prepared`, where that ended no process before."""
        for call in ("host_callback", OPERATIONS["host_callback"].host):
            if call in self.target.lost_calls:
                raise Blocked("host_callback ended a process", self.target.lost_calls[call])
        prepared(self.host_callback(stream, work))

    def gate(self, stream: Stream) -> Gate:
        """Hold a stream until the gate is opened, if streams of this device can be held."""
        gate = Gate()
        self._gates.append(gate)
        try:
            self.call_back(stream, gate.work)
        except (Blocked, Unsupported) as error:
            gate.why_not = error
        gate.enqueued()
        return gate

    def held(self, stream: Stream) -> Gate:
        """Hold a stream without work until the gate is opened; it is held when this returns.

        Raises `Unsupported` where streams of this device run at once, and `Blocked` where its
        callbacks do not work, which other checks are about.
        """
        gate = self.gate(stream)
        gate.require_callback()
        if gate.is_inline:
            raise Unsupported("streams of this device run work at once: none can be blocked")
        if not gate.reached.wait(_CALLED_SECONDS if self.access.calls_back else _SILENT_SECONDS):
            self.access.calls_back = False
            raise Blocked("host_callback took a callback and did not call it", "SE-279")
        return gate

    def marked(self, stream: Stream, n_bytes: int = 0) -> Event:
        """Return a new event that stands for what the stream holds, and a copy of so many bytes."""
        if n_bytes:
            self.enqueue_work(stream, n_bytes)
        event = self.event()
        prepared(self.record_event(stream, event))
        return event

    def status_of(self, event: Event) -> int:
        """Return what get_event_status returns."""
        return int(self.get_event_status(event).must_be_ok())

    def gets_passed(self, event: Event) -> bool:
        """Wait until an event is COMPLETE, for some time."""
        end = time.monotonic() + _PASSED_SECONDS
        while self.status_of(event) != EventStatus.COMPLETE:
            if time.monotonic() > end:
                return False
            time.sleep(_NAP_SECONDS)
        return True

    def must_pass(self, event: Event, what: str) -> None:
        """Demand that an event becomes COMPLETE."""
        if not self.gets_passed(event):
            raise Deviation(
                f"{what} is not complete, although no work is left before it",
                expected="SE_EVENT_COMPLETE",
                found=f"{shown_status(self.status_of(event))} after {_PASSED_SECONDS:.0f} s",
            )

    def must_pass_meanwhile(self, event: Event, what: str) -> None:
        """Demand that an event becomes COMPLETE while other streams are held back.

        Raises `Blocked` where one of a stream of its own does not either.
        """
        if self.gets_passed(event):
            return
        if self.status_of(self.marked(self.stream())) != EventStatus.COMPLETE:
            raise Blocked("every stream waits while one is blocked")
        self.must_pass(event, what)

    def must_wait(self, gate: Gate, event: Event, what: str) -> None:
        """Demand that an event becomes COMPLETE when a gate is opened, and not before."""
        self.must_be_held(event, what)
        gate.open()
        self.must_pass(event, what)

    def must_be_held(self, event: Event, what: str) -> None:
        """Demand that an event is not COMPLETE, while work in front of it is held back."""
        end = time.monotonic() + _HELD_SECONDS
        while time.monotonic() < end:
            expect(
                self.status_of(event) != EventStatus.COMPLETE,
                f"{what} is complete, although work before it is still blocked",
                expected="SE_EVENT_PENDING",
                found="SE_EVENT_COMPLETE",
            )
            time.sleep(_NAP_SECONDS)

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for all work, destroy what is left, inspect the guards of all buffers.

        Raises `Deviation` where the plugin wrote outside of a host buffer.
        """
        for gate in self._gates:
            gate.open()
        with suppress(Unsupported):
            self.synchronize_all_activity()
        for kind in _ORDER:
            while self._made[kind]:
                self._destroy[kind](self._made[kind].pop())
        for buffer in self._buffers:
            buffer.check_guards()


def prepared(answer: Answer) -> Any:
    """Return the value of a step that the check only prepares with; see `Answer.needed`."""
    return answer.needed(OPERATIONS[answer.call.partition("(")[0]].about)


def shown_status(status: int) -> str:
    """Return the name of an SE_EventStatus, or its number where it has none."""
    try:
        return f"SE_EVENT_{EventStatus(status).name}"
    except ValueError:
        return f"event status {status}, which is none"


# -- what memory must be --------------------------------------------------------------------------

_SHOWN_BYTES = 16
_PIECE_BYTES = 1 << 16
"""Compared at once: most of many MiB is mostly right."""


def expect_bytes(
    found: bytes, expected: bytes, what: str, *, severity: Severity | None = None
) -> None:
    """Demand that bytes, such as `the target of memcpy_dtod`, are the expected ones.

    The message names the first byte that differs, and how many do.
    """
    if found == expected:
        return
    if len(found) != len(expected):
        raise Deviation(
            f"{what} is not as long as it must be",
            expected=f"{len(expected)} bytes",
            found=f"{len(found)} bytes",
            severity=severity,
        )
    at, wrong = -1, 0
    for start in range(0, len(expected), _PIECE_BYTES):
        piece = slice(start, start + _PIECE_BYTES)
        if found[piece] != expected[piece]:
            differs = bytes(map(ne, found[piece], expected[piece]))
            wrong += differs.count(1)
            at = start + differs.index(1) if at < 0 else at
    raise Deviation(
        f"{what} differs in {wrong} of {len(expected)} bytes, from byte {at} on",
        expected=f"{expected[at : at + _SHOWN_BYTES].hex(' ')} at byte {at}",
        found=f"{found[at : at + _SHOWN_BYTES].hex(' ')} at byte {at}",
        severity=severity,
    )


def expect_apart(ranges: Sequence[tuple[int, int]], what: str) -> None:
    """Demand that no two of several `device memories` share a byte; each is address and size."""
    for (start, size), (after, _) in pairwise(sorted(ranges)):
        expect(
            start + size <= after,
            f"two {what} overlap that exist at the same time",
            expected=f"none begins before {start + size:#x}",
            found=f"{size} bytes at {start:#x}, and others at {after:#x}",
        )
