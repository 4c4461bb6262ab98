"""Checks of many threads, of several devices, and of the end of the process."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.device.held_stream import held
from modular_tf.check.device.order_program import STREAMS, THREADS, OrderProgram
from modular_tf.check.device.process_end import BUSY, expect_clean_end
from modular_tf.check.expectation import Unsupported, expect, expect_in
from modular_tf.check.level import Level
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.raw_subject import RawDeviceSubject
    from modular_tf.check.device.subject import Memory, Stream

CHECKS = CheckList("device", "threads")

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


def _round_trip(ground: DeviceGround, stream: Stream, memory: Memory, data: bytes) -> None:
    """Copy to the device and back, and look."""
    size, subject, back = len(data), ground.subject, ground.buffer(len(data))
    source = ground.buffer(data)
    expect_ok(subject.memcpy_htod(stream, memory, source, size), "memcpy_htod")
    expect_ok(subject.memcpy_dtoh(stream, back, memory, size), "memcpy_dtoh")
    expect_passed(ground, marked(ground, stream), "an event behind copies of a thread")
    expect_bytes(back.content(), data, "what a thread got back, while others copy,")


@CHECKS.check("SE-293", Level.ROBUST)
def threads_copy(ground: DeviceGround) -> None:
    """Each thread on four streams of its own, copies of some KiB."""

    def work(number: int) -> None:
        size = 5000 + number
        pairs = [(ground.stream(), ground.memory(size)) for _ in range(STREAMS)]
        for turn in range(_ROUNDS):
            stream, memory = pairs[turn % STREAMS]
            _round_trip(ground, stream, memory, _pattern(number + turn, size)[:size])

    _in_threads(work)


@CHECKS.check("SE-294", Level.ROBUST)
def threads_make_streams(ground: DeviceGround) -> None:
    """Each makes one, uses it, destroys it, and so on."""
    memory = ground.filled(bytes(THREADS))

    def work(number: int) -> None:
        part, source = memory.part(number, 1), ground.buffer(bytes((number + 1,)))
        for _ in range(_ROUNDS):
            answer = ground.subject.create_stream()
            expect_ok(answer, "create_stream, while other threads make streams,")
            copied = ground.subject.memcpy_htod(answer.value, part, source, 1)
            ground.subject.destroy_stream(answer.value)
            expect_ok(copied, "memcpy_htod")

    _in_threads(work)
    prepared(ground.subject.synchronize_all_activity(), "synchronize_all_activity")
    what = "what the streams of eight threads have copied"
    expect_bytes(ground.content(memory), bytes(range(1, THREADS + 1)), what)


@CHECKS.check("SE-295", Level.ROBUST)
def threads_use_events(ground: DeviceGround) -> None:
    """Tried with the events of one stream."""
    stream, subject = ground.stream(), ground.subject

    def work(_: int) -> None:
        for _ in range(_ROUNDS):
            answer = subject.create_event()
            expect_ok(answer, "create_event, while other threads do,")
            event = answer.value
            expect_ok(subject.record_event(stream, event), "record_event")
            status = subject.get_event_status(event).value
            allowed = (EventStatus.PENDING, EventStatus.COMPLETE)
            expect_in(status, allowed, "an event's status, while other threads record,")
            expect_passed(ground, event, "an event that a thread has recorded")
            subject.destroy_event(event)

    _in_threads(work)


@CHECKS.check("SE-296", Level.ROBUST)
def threads_use_memory(ground: DeviceGround) -> None:
    """Each fills what it has got, and finds it so before it gives it back."""
    subject = ground.subject

    def work(number: int) -> None:
        for turn in range(_ROUNDS):
            data = bytes((number * _ROUNDS + turn + 1,)) * 6000
            answer = subject.allocate(6000)
            expect_ok(answer, "allocate, while other threads do,")
            source, back = ground.buffer(data), ground.buffer(6000)
            copied = subject.sync_memcpy_htod(answer.value, source, 6000)
            brought = subject.sync_memcpy_dtoh(back, answer.value, 6000)
            subject.deallocate(answer.value)
            expect_ok(copied, "sync_memcpy_htod")
            expect_ok(brought, "sync_memcpy_dtoh")
            expect_bytes(back.content(), data, "what a thread has in memory of its own")

    _in_threads(work)


@CHECKS.check("SE-297", Level.ROBUST, needs=("host_callback", "wait_for_event"))
def threads_keep_the_order_of_events(ground: DeviceGround) -> None:
    """8 threads on 4 streams, all held back until all is enqueued, and one for longer."""
    streams = [ground.stream() for _ in range(STREAMS)]
    last, *others = [held(ground, stream) for stream in streams]
    program = OrderProgram(ground, streams)
    program.enqueue()
    for gate in others:
        gate.open()
    time.sleep(_HEAD_START_SECONDS)
    last.open()
    for stream in streams:
        ground.done(stream)
    lost = program.trace.lost()
    expect(not lost, "callbacks of eight threads were not called", found=f"{len(lost)} are missing")
    breaches = program.trace.breaches()
    expect(
        not breaches,
        "callbacks ran before what their streams had to wait for",
        expected="the order that the events demand",
        found=f"{len(breaches)} pairs out of order, as (too early, before) {breaches[:3]}",
    )


def _second_device(ground: DeviceGround) -> RawDeviceSubject:
    """Create the device of the next ordinal.

    Raises:
        Unsupported: There is none.
    """
    from modular_tf.check.device.raw_subject import created_device  # noqa: PLC0415  (raw pass only)

    subject: RawDeviceSubject = ground.subject  # type: ignore[assignment]  # (of the raw pass)
    count = subject.get_device_count()
    prepared(count, "get_device_count")
    ordinal = (ground.target.ordinal or 0) + 1
    if ordinal >= count.value:
        raise Unsupported(f"the plugin has {count.value} devices here: there is no {ordinal}")
    return created_device(subject.raw_platform, ordinal)


@CHECKS.check("SE-298", Level.ROBUST, passes=RAW)
def two_devices(ground: DeviceGround) -> None:
    """The next ordinal beside this one, where there is one."""
    other = _second_device(ground)
    mine, stream = ground.filled(b"\x11" * 521), ground.stream()
    answer, made_stream = other.allocate(521), other.create_stream()
    expect_ok(answer, "allocate on the other device")
    expect_ok(made_stream, "create_stream on the other device")
    theirs, their_stream, back = answer.value, made_stream.value, ground.buffer(521)
    try:
        zeros = ground.buffer(521)
        expect_ok(other.sync_memcpy_htod(theirs, zeros, 521), "sync_memcpy_htod")
        copied = other.memcpy_htod(their_stream, theirs, ground.buffer(b"\x22" * 521), 521)
        expect_ok(copied, "memcpy_htod on the other device")
        source = ground.buffer(b"\x33" * 521)
        expect_ok(ground.subject.memcpy_htod(stream, mine, source, 521), "memcpy_htod")
        expect_ok(other.block_host_until_done(their_stream), "block_host_until_done")
        expect_ok(other.sync_memcpy_dtoh(back, theirs, 521), "sync_memcpy_dtoh")
    finally:
        other.destroy_stream(their_stream)
        other.deallocate(theirs)
        other.created.destroy()
    ground.done(stream)
    expect_bytes(back.content(), b"\x22" * 521, "memory of the other device")
    expect_bytes(ground.content(mine), b"\x33" * 521, "memory of this device")


@CHECKS.check("SE-299", Level.ROBUST)
def a_process_ends_with_work_outstanding(ground: DeviceGround) -> None:
    """A process of its own, which destroys nothing, as TensorFlow."""
    expect_clean_end(ground.target, BUSY)
