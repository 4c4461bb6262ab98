"""Checks of many threads, of several devices, and of the end of the process."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, ROBUST, Suite
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.device.held_stream import held
from modular_tf.check.device.order_program import STREAMS, THREADS, OrderProgram
from modular_tf.check.device.process_end import BUSY, expect_clean_end
from modular_tf.check.expectation import Unsupported, expect, expect_in
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.raw_subject import RawDeviceSubject
    from modular_tf.check.device.subject import Memory, Stream

suite = Suite("device", "threads", level=ROBUST, source="TensorFlow 2.21, observed")

_ROUNDS = 10
_HEAD_START_SECONDS = 0.02
"""For streams that go on without waiting as they must; those that wait lose nothing by it."""
_NUMBERS = bytes(range(1, 252))


def _in_threads(work: Callable[[int], None]) -> None:
    """Do some work in all threads at once, each with its number; what one raises is raised."""
    run_at_once([partial(work, number) for number in range(THREADS)])


def _pattern(number: int, size: int) -> bytes:
    """Return bytes that are a thread's own."""
    return (_NUMBERS[number:] + _NUMBERS[:number]) * (size // len(_NUMBERS) + 1)


def _round_trip(device: DeviceGround, stream: Stream, memory: Memory, data: bytes) -> None:
    """Copy to the device and back, and look."""
    size, subject, back = len(data), device.subject, device.buffer(len(data))
    source = device.buffer(data)
    subject.memcpy_htod(stream, memory, source, size).must_be_ok()
    subject.memcpy_dtoh(stream, back, memory, size).must_be_ok()
    expect_passed(device, marked(device, stream), "an event behind copies of a thread")
    expect_bytes(back.content(), data, "what a thread got back, while others copy,")


@suite.check("SE-293")
def threads_copy(device: DeviceGround) -> None:
    """8 threads copy through 4 streams each, and each gets its own bytes.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """

    def work(number: int) -> None:
        size = 5000 + number
        pairs = [(device.stream(), device.memory(size)) for _ in range(STREAMS)]
        for turn in range(_ROUNDS):
            stream, memory = pairs[turn % STREAMS]
            _round_trip(device, stream, memory, _pattern(number + turn, size)[:size])

    _in_threads(work)


@suite.check("SE-294")
def threads_make_streams(device: DeviceGround) -> None:
    """Threads make, use and destroy streams at the same time.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """
    memory = device.filled(bytes(THREADS))

    def work(number: int) -> None:
        part, source = memory.part(number, 1), device.buffer(bytes((number + 1,)))
        for _ in range(_ROUNDS):
            answer = device.subject.create_stream()
            answer.must_be_ok()
            copied = device.subject.memcpy_htod(answer.value, part, source, 1)
            device.subject.destroy_stream(answer.value)
            copied.must_be_ok()

    _in_threads(work)
    prepared(device.subject.synchronize_all_activity(), "synchronize_all_activity")
    what = "what the streams of eight threads have copied"
    expect_bytes(device.content(memory), bytes(range(1, THREADS + 1)), what)


@suite.check("SE-295")
def threads_use_events(device: DeviceGround) -> None:
    """Threads record, poll and destroy events of one stream at the same time.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """
    stream, subject = device.stream(), device.subject

    def work(_: int) -> None:
        for _ in range(_ROUNDS):
            answer = subject.create_event()
            answer.must_be_ok()
            event = answer.value
            subject.record_event(stream, event).must_be_ok()
            status = subject.get_event_status(event).value
            allowed = (EventStatus.PENDING, EventStatus.COMPLETE)
            expect_in(status, allowed, "an event's status, while other threads record,")
            expect_passed(device, event, "an event that a thread has recorded")
            subject.destroy_event(event)

    _in_threads(work)


@suite.check("SE-296")
def threads_use_memory(device: DeviceGround) -> None:
    """Threads allocate, use and give back memory at the same time; no two get the same.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: TensorFlow calls from any thread: guard what calls share, in every function.
    """
    subject = device.subject

    def work(number: int) -> None:
        for turn in range(_ROUNDS):
            data = bytes((number * _ROUNDS + turn + 1,)) * 6000
            answer = subject.allocate(6000)
            answer.must_be_ok()
            source, back = device.buffer(data), device.buffer(6000)
            copied = subject.sync_memcpy_htod(answer.value, source, 6000)
            brought = subject.sync_memcpy_dtoh(back, answer.value, 6000)
            subject.deallocate(answer.value)
            copied.must_be_ok()
            brought.must_be_ok()
            expect_bytes(back.content(), data, "what a thread has in memory of its own")

    _in_threads(work)


@suite.check("SE-297", "host_callback", "wait_for_event")
def threads_keep_the_order_of_events(device: DeviceGround) -> None:
    """Threads and streams that wait for each other's events run in the order demanded.

    Otherwise: Under load results are wrong or the process crashes, and never twice in the same way.
    Remedy: Keep with each event the place where it was recorded, under a lock.
    """
    streams = [device.stream() for _ in range(STREAMS)]
    last, *others = [held(device, stream) for stream in streams]
    program = OrderProgram(device, streams)
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


def _second_device(device: DeviceGround) -> RawDeviceSubject:
    """Create the device of the next ordinal.

    Raises:
        Unsupported: There is none.
    """
    from modular_tf.check.device.raw_subject import created_device  # noqa: PLC0415  (raw pass only)

    subject: RawDeviceSubject = device.subject  # type: ignore[assignment]  # (of the raw pass)
    count = subject.get_device_count()
    prepared(count, "get_device_count")
    ordinal = (device.target.ordinal or 0) + 1
    if ordinal >= count.value:
        raise Unsupported(f"the plugin has {count.value} devices here: there is no {ordinal}")
    return created_device(subject.raw_platform, ordinal)


@suite.check("SE-298", ways=RAW)
def two_devices(device: DeviceGround) -> None:
    """Two devices of the platform work beside each other, and do not mix their memory.

    Otherwise: Programs on one device spoil what runs on another.
    Remedy: Keep all state with the device that each function is given; use no globals.
    """
    other = _second_device(device)
    mine, stream = device.filled(b"\x11" * 521), device.stream()
    answer, made_stream = other.allocate(521), other.create_stream()
    answer.must_be_ok()
    made_stream.must_be_ok()
    theirs, their_stream, back = answer.value, made_stream.value, device.buffer(521)
    try:
        zeros = device.buffer(521)
        other.sync_memcpy_htod(theirs, zeros, 521).must_be_ok()
        other.memcpy_htod(their_stream, theirs, device.buffer(b"\x22" * 521), 521).must_be_ok()
        source = device.buffer(b"\x33" * 521)
        device.subject.memcpy_htod(stream, mine, source, 521).must_be_ok()
        other.block_host_until_done(their_stream).must_be_ok()
        other.sync_memcpy_dtoh(back, theirs, 521).must_be_ok()
    finally:
        other.destroy_stream(their_stream)
        other.deallocate(theirs)
        other.created.destroy()
    device.done(stream)
    expect_bytes(back.content(), b"\x22" * 521, "memory of the other device")
    expect_bytes(device.content(mine), b"\x33" * 521, "memory of this device")


@suite.check("SE-299")
def a_process_ends_with_work_outstanding(device: DeviceGround) -> None:
    """A process may end while work is outstanding.

    Otherwise: TensorFlow destroys nothing at the end: programs crash after their last line.
    Remedy: Let destructors of the library wait for threads, or leave what they use alive.

    A process of its own destroys nothing, as TensorFlow does.
    """
    expect_clean_end(device.target, BUSY)
