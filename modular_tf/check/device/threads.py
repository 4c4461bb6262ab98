"""Checks of many threads, of several devices, and of the end of the process."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, ROBUST, Suite
from modular_tf.check.device.by_slots import SlotDevice
from modular_tf.check.device.workspace import expect_bytes, prepared
from modular_tf.check.endings import BUSY, expect_clean_end
from modular_tf.check.expectation import Unsupported, expect, expect_in
from modular_tf.check.under_load import at_once
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.operations import Event, Stream
    from modular_tf.check.device.workspace import Workspace

suite = Suite("device", "threads", level=ROBUST, source="TensorFlow 2.21, observed")

_THREADS, _STREAMS, _STEPS = 8, 4, 30
_ROUNDS = 10
_HEAD_START_SECONDS = 0.02
"""For streams that go on without waiting as they must; those that wait lose nothing by it."""
_NUMBERS = bytes(range(1, 252))


def _in_threads(work: Callable[[int], None]) -> None:
    """Do some work in all threads at once, each with its number; what one raises is raised."""
    at_once([partial(work, number) for number in range(_THREADS)])


def _pattern(number: int, size: int) -> bytes:
    """Return bytes that are a thread's own."""
    return (_NUMBERS[number:] + _NUMBERS[:number]) * (size // len(_NUMBERS) + 1)


@suite.check("SE-293")
def threads_copy(device: Workspace) -> None:
    """8 threads copy through 4 streams each, and each gets its own bytes.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """

    def work(number: int) -> None:
        size = 5000 + number
        pairs = [(device.stream(), device.memory(size)) for _ in range(_STREAMS)]
        for turn in range(_ROUNDS):
            stream, memory = pairs[turn % _STREAMS]
            data, back = _pattern(number + turn, size)[:size], device.buffer(size)
            device.memcpy_htod(stream, memory, device.buffer(data), size).must_be_ok()
            device.memcpy_dtoh(stream, back, memory, size).must_be_ok()
            device.must_pass(device.marked(stream), "an event behind copies of a thread")
            expect_bytes(back.content(), data, "what a thread got back, while others copy,")

    _in_threads(work)


@suite.check("SE-294")
def threads_make_streams(device: Workspace) -> None:
    """Threads make, use and destroy streams at the same time.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """
    memory = device.filled(bytes(_THREADS))

    def work(number: int) -> None:
        part, source = memory.part(number, 1), device.buffer(bytes((number + 1,)))
        for _ in range(_ROUNDS):
            stream = device.create_stream().must_be_ok()
            copied = device.memcpy_htod(stream, part, source, 1)
            device.destroy_stream(stream)
            copied.must_be_ok()

    _in_threads(work)
    prepared(device.synchronize_all_activity())
    what = "what the streams of eight threads have copied"
    device.must_hold(memory, bytes(range(1, _THREADS + 1)), what)


@suite.check("SE-295")
def threads_use_events(device: Workspace) -> None:
    """Threads record, poll and destroy events of one stream at the same time.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """
    stream = device.stream()

    def work(_: int) -> None:
        for _ in range(_ROUNDS):
            event = device.create_event().must_be_ok()
            device.record_event(stream, event).must_be_ok()
            status = device.get_event_status(event).value
            allowed = (EventStatus.PENDING, EventStatus.COMPLETE)
            expect_in(status, allowed, "an event's status, while other threads record,")
            device.must_pass(event, "an event that a thread has recorded")
            device.destroy_event(event)

    _in_threads(work)


@suite.check("SE-296")
def threads_use_memory(device: Workspace) -> None:
    """Threads allocate, use and give back memory at the same time; no two get the same.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """

    def work(number: int) -> None:
        for turn in range(_ROUNDS):
            data = bytes((number * _ROUNDS + turn + 1,)) * 6000
            memory, back = device.allocate(6000).must_be_ok(), device.buffer(6000)
            copied = device.sync_memcpy_htod(memory, device.buffer(data), 6000)
            brought = device.sync_memcpy_dtoh(back, memory, 6000)
            device.deallocate(memory)
            copied.must_be_ok()
            brought.must_be_ok()
            expect_bytes(back.content(), data, "what a thread has in memory of its own")

    _in_threads(work)


@dataclass
class _Trace:
    """What was demanded and what was seen; ticks are numbers that no two share.

    Attributes:
        demanded: Of each callback, those that must have ended before it starts.
        started: The tick of each callback's start.
        ended: The tick of its end.
    """

    demanded: dict[int, frozenset[int]] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)

    def breaches(self) -> list[tuple[int, int]]:
        """Return each callback that started before one that it had to wait for had ended."""
        return [
            (then, first)
            for then, before in self.demanded.items()
            for first in before
            if self.ended[first] > self.started[then]
        ]

    def lost(self) -> list[int]:
        """Return the callbacks that were never called."""
        return [number for number in self.demanded if number not in self.ended]


class _OrderProgram:
    """Work of many threads on few streams, and what order their events demand.

    Each thread takes random steps: it has a callback called, records an event, or lets a stream
    wait for an event that some thread has recorded. What must have ended before a callback starts
    is known from three sources: what this thread enqueued on the stream before, what such callbacks
    had to wait for themselves, and the same of the stream of each event that the stream was made to
    wait for. What other threads enqueue on the same stream meanwhile demands nothing.

    Attributes:
        trace: Complete when all streams are done.
    """

    def __init__(self, device: Workspace, streams: list[Stream]) -> None:
        self.trace = _Trace()
        self._device = device
        self._streams = streams
        self._recorded: list[tuple[Event, frozenset[int]]] = []
        self._numbers, self._ticks = count(), count()
        self._seeds = [device.random.getrandbits(32) for _ in range(_THREADS)]

    def enqueue(self) -> None:
        """Have all threads take all their steps; the streams need not get anywhere."""
        at_once([partial(self._thread, seed) for seed in self._seeds])

    def _thread(self, seed: int) -> None:
        choose = random.Random(seed)  # noqa: S311  (repeatable)
        before: list[set[int]] = [set() for _ in self._streams]
        for _ in range(_STEPS):
            at = choose.randrange(_STREAMS)
            step = choose.choice((self._call, self._call, self._record, self._wait))
            step(choose, self._streams[at], before[at])

    def _call(self, _: random.Random, stream: Stream, before: set[int]) -> None:
        number = next(self._numbers)
        self.trace.demanded[number] = frozenset(before)
        self._device.host_callback(stream, lambda: self._called(number)).must_be_ok()
        before.add(number)

    def _called(self, number: int) -> None:
        self.trace.started[number] = next(self._ticks)
        self.trace.ended[number] = next(self._ticks)

    def _record(self, _: random.Random, stream: Stream, before: set[int]) -> None:
        event = self._device.event()
        self._device.record_event(stream, event).must_be_ok()
        self._recorded.append((event, frozenset(before)))

    def _wait(self, choose: random.Random, stream: Stream, before: set[int]) -> None:
        if not self._recorded:
            return
        event, known = choose.choice(self._recorded[-_STREAMS:])
        self._device.wait_for_event(stream, event).must_be_ok()
        before |= known


@suite.check("SE-297", "host_callback", "wait_for_event")
def threads_keep_the_order_of_events(device: Workspace) -> None:
    """Threads and streams that wait for each other's events run in the order demanded.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: Keep with each event the place where it was recorded, under a lock.
    """
    streams = [device.stream() for _ in range(_STREAMS)]
    last, *others = [device.held(stream) for stream in streams]
    program = _OrderProgram(device, streams)
    program.enqueue()
    for gate in others:
        gate.open()
    time.sleep(_HEAD_START_SECONDS)
    last.open()
    for stream in streams:
        device.done(stream)
    lost = program.trace.lost()
    expect(not lost, "callbacks of eight threads were not called", found=f"{len(lost)} are missing")
    breaches = program.trace.breaches()
    expect(
        not breaches,
        "callbacks ran before what their streams had to wait for",
        expected="the order that the events demand",
        found=f"{len(breaches)} pairs out of order, as (too early, before) {breaches[:3]}",
    )


@suite.check("SE-298", ways=RAW)
def two_devices(device: Workspace) -> None:
    """Two devices of the platform work beside each other, and do not mix their memory.

    Otherwise: Programs on one device spoil what runs on another.
    Remedy: Keep all state with the device that each function is given; use no globals.
    """
    platform, ordinal = device.slots.platform, (device.target.ordinal or 0) + 1
    devices = platform.device_count().needed()
    if ordinal >= devices:
        raise Unsupported(f"the plugin has {devices} devices here: there is no {ordinal}")
    other = SlotDevice(platform, ordinal)
    mine, stream = device.filled(b"\x11" * 521), device.stream()
    theirs, their_stream = other.allocate(521).must_be_ok(), other.create_stream().must_be_ok()
    back = device.buffer(521)
    try:
        other.sync_memcpy_htod(theirs, device.buffer(521), 521).must_be_ok()
        source = device.buffer(b"\x22" * 521)
        other.memcpy_htod(their_stream, theirs, source, 521).must_be_ok()
        source = device.buffer(b"\x33" * 521)
        device.memcpy_htod(stream, mine, source, 521).must_be_ok()
        other.block_host_until_done(their_stream).must_be_ok()
        other.sync_memcpy_dtoh(back, theirs, 521).must_be_ok()
    finally:
        other.destroy_stream(their_stream)
        other.deallocate(theirs)
        other.created.destroy()
    device.done(stream)
    expect_bytes(back.content(), b"\x22" * 521, "memory of the other device")
    device.must_hold(mine, b"\x33" * 521, "memory of this device")


@suite.check("SE-299")
def a_process_ends_with_work_outstanding(device: Workspace) -> None:
    """A process may end while work is outstanding.

    Otherwise: TensorFlow destroys nothing at the end: programs crash after their last line.
    Remedy: Let destructors of the library wait for threads, or leave what they use alive.

    A process of its own destroys nothing, as TensorFlow does.
    """
    expect_clean_end(device.target, BUSY)
