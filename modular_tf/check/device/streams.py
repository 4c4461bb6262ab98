"""Checks of streams: their order, waiting for them, dependencies between them.

What holds a stream back is a callback that waits; so no check depends on how fast anything is.
Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.device.enqueued_work import enqueue_work
from modular_tf.check.device.event_progress import (
    expect_held,
    expect_passed,
    expect_passed_meanwhile,
    gets_passed,
    marked,
)
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.device.held_stream import expect_prompt, expect_waits, held
from modular_tf.check.expectation import expect

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Stream

suite = Suite("device", "streams", source="device.h")

_HOLDS = ("host_callback", "create_event", "record_event", "get_event_status")
_DEPENDS = ("create_stream_dependency", *_HOLDS)
_IN_TURN = 200
_AT_ONCE = 64
_LONG = 1000


def _depend(device: DeviceGround, dependent: Stream, other: Stream) -> None:
    device.subject.create_stream_dependency(dependent, other).must_be_ok()


@suite.check("SE-235", "get_stream_status")
def a_new_stream_is_well(device: DeviceGround) -> None:
    """The status of a new stream is OK.

    Otherwise: The first operation of the device fails.
    Remedy: Set the status to TF_OK while nothing went wrong.
    """
    device.subject.get_stream_status(device.stream()).must_be_ok()


@suite.check("SE-236", "block_host_until_done")
def waiting_for_nothing(device: DeviceGround) -> None:
    """Waiting for a stream without work returns at once, again and again.

    Otherwise: Programs that wait where there is nothing to wait for fail.
    Remedy: Return OK where the stream has no work.
    """
    stream = device.stream()
    for _ in range(2):
        device.subject.block_host_until_done(stream).must_be_ok()


@suite.check("SE-237", "get_stream_status", *_HOLDS, severity=WARNING)
def a_status_does_not_wait(device: DeviceGround) -> None:
    """get_stream_status does not wait for the stream.

    Otherwise: Threads that only look stand still until the device is done.
    Remedy: Report what is known so far.
    """
    stream = device.stream()
    gate = held(device, stream)
    call = lambda: device.subject.get_stream_status(stream)  # noqa: E731
    expect_prompt(gate, call, "get_stream_status").must_be_ok()


@suite.check("SE-238", level=ROBUST)
def streams_in_turn(device: DeviceGround) -> None:
    """200 streams can be made and destroyed, one after the other.

    Otherwise: A long-running program gets no stream any more.
    Remedy: Give back in destroy_stream all that create_stream took.
    """
    for _ in range(_IN_TURN):
        device.subject.destroy_stream(device.subject.create_stream().must_be_ok())


@suite.check("SE-239", level=ROBUST, severity=WARNING)
def streams_at_once(device: DeviceGround) -> None:
    """64 streams work at once.

    Otherwise: Programs with several devices and threads get no stream.
    Remedy: Share queues of the hardware between streams where they are few.
    Source: host recommendation
    """
    memory = device.filled(bytes(_AT_ONCE))
    for number in range(_AT_ONCE):
        answer = device.subject.create_stream()
        answer.must_be_ok()
        device.adopt("stream", answer.value)
        part, source = memory.part(number, 1), device.buffer(bytes((number + 1,)))
        device.subject.memcpy_htod(answer.value, part, source, 1).must_be_ok()
    prepared(device.subject.synchronize_all_activity(), "synchronize_all_activity")
    expected = bytes(range(1, _AT_ONCE + 1))
    expect_bytes(device.content(memory), expected, f"what {_AT_ONCE} streams have copied")


@suite.check("SE-240", *_HOLDS, level=ROBUST, severity=WARNING)
def streams_are_independent(device: DeviceGround) -> None:
    """A stream continues while another one is blocked.

    Otherwise: Copies do not run beside computations, and a callback that waits stops the device.
    Remedy: Give each stream a queue of its own.
    """
    gate, other = held(device, device.stream()), device.stream()
    enqueue_work(device, other, 353)
    passed = gets_passed(device, marked(device, other))
    gate.open()
    expect(passed, "a stream waits while another one is blocked", expected="it continues")


@suite.check("SE-241", "host_callback")
def copies_in_order(device: DeviceGround) -> None:
    """The copies of a stream happen in the order in which they were enqueued.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Start each piece of work when the one before it on the stream is done.
    """
    stream, subject = device.stream(), device.subject
    first, last = device.bytes(357), device.bytes(357)
    memory, taken = device.filled(bytes(357)), device.buffer(357)
    gate = device.gate(stream)
    prepared(subject.memcpy_htod(stream, memory, device.buffer(first), 357), "memcpy_htod")
    prepared(subject.memcpy_dtoh(stream, taken, memory, 357), "memcpy_dtoh")
    prepared(subject.memcpy_htod(stream, memory, device.buffer(last), 357), "memcpy_htod")
    gate.open()
    device.done(stream)
    expect_bytes(taken.content(), first, "what was read between two writes")
    expect_bytes(device.content(memory), last, "what was written last")


@suite.check("SE-242", "host_callback", level=ROBUST)
def a_long_queue(device: DeviceGround) -> None:
    """A stream takes a thousand pieces of work without losing one.

    Otherwise: What a program enqueues ahead of the device is lost.
    Remedy: Let the queue grow, or let the caller wait; drop nothing.
    """
    stream, memory = device.stream(), device.filled(bytes(_LONG))
    expected = bytes(number % 250 + 1 for number in range(_LONG))
    gate = device.gate(stream)
    for number in range(_LONG):
        part, source = memory.part(number, 1), device.buffer(expected[number : number + 1])
        device.subject.memcpy_htod(stream, part, source, 1).must_be_ok()
    gate.open()
    device.done(stream)
    expect_bytes(device.content(memory), expected, f"what {_LONG} copies have copied")


@suite.check("SE-243", "host_callback")
def the_host_waits_for_a_stream(device: DeviceGround) -> None:
    """block_host_until_done waits until the work of the stream is done.

    Otherwise: The host reads results that are not there yet.
    Remedy: Wait for a mark at the end of the stream.
    """
    stream = device.stream()
    gate = held(device, stream)
    enqueue_work(device, stream, 359)
    call = lambda: device.subject.block_host_until_done(stream)  # noqa: E731
    expect_waits(gate, call, "block_host_until_done").must_be_ok()


@suite.check("SE-244", *_DEPENDS)
def a_stream_depends_on_another(device: DeviceGround) -> None:
    """Work behind create_stream_dependency waits for what the other stream held.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    Source: TensorFlow 2.21, observed
    """
    dependent, other, data = device.stream(), device.stream(), device.bytes(361)
    source, target = device.filled(bytes(361)), device.filled(bytes(361))
    gate = held(device, other)
    enqueue_work(device, other, 361)
    prepared(device.subject.memcpy_htod(other, source, device.buffer(data), 361), "memcpy_htod")
    _depend(device, dependent, other)
    prepared(device.subject.memcpy_dtod(dependent, target, source, 361), "memcpy_dtod")
    expect_held(device, marked(device, dependent), "a stream that depends on another")
    gate.open()
    device.done(dependent)
    expect_bytes(device.content(target), data, "what was copied behind a dependency")


@suite.check("SE-245", *_DEPENDS, severity=WARNING)
def a_dependency_does_not_block(device: DeviceGround) -> None:
    """create_stream_dependency does not block its caller.

    Otherwise: TensorFlow makes one before each copy: the host then waits for the device each time.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    """
    dependent, other = device.stream(), device.stream()
    gate = held(device, other)
    enqueue_work(device, other, 363)
    call = lambda: device.subject.create_stream_dependency(dependent, other)  # noqa: E731
    expect_prompt(gate, call, "create_stream_dependency").must_be_ok()


@suite.check("SE-246", "create_stream_dependency", level=ROBUST)
def a_stream_depends_on_itself(device: DeviceGround) -> None:
    """A stream that is made dependent on itself continues.

    Otherwise: The program stands still, with no error.
    Remedy: What the stream holds is before its later work anyway: do nothing.
    """
    stream = device.stream()
    enqueue_work(device, stream, 367)
    _depend(device, stream, stream)
    enqueue_work(device, stream, 368)
    expect_passed(device, marked(device, stream), "a stream that depends on itself")


@suite.check("SE-247", *_DEPENDS, level=ROBUST)
def a_chain_of_streams(device: DeviceGround) -> None:
    """Dependencies hold along a chain of streams.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let a mark wait for the waits before it too.
    """
    streams = [device.stream() for _ in range(8)]
    gate = held(device, streams[0])
    for other, dependent in pairwise(streams):
        _depend(device, dependent, other)
    last = marked(device, streams[-1])
    expect_held(device, last, "the last of eight streams that depend on each other in a row")
    gate.open()
    expect_passed(device, last, "the last of eight streams that depend on each other in a row")


@suite.check("SE-248", "create_stream_dependency", level=ROBUST)
def two_streams_depend_on_each_other(device: DeviceGround) -> None:
    """Two streams that depend on each other go on.

    Otherwise: The program stands still, with no error.
    Remedy: A dependency is on what the other stream holds now, not on what comes later.
    """
    one, two = device.stream(), device.stream()
    enqueue_work(device, one, 371)
    enqueue_work(device, two, 372)
    _depend(device, one, two)
    _depend(device, two, one)
    for stream in (one, two):
        expect_passed(device, marked(device, stream), "a stream of two that depend on each other")


@suite.check("SE-249", *_DEPENDS, level=ROBUST)
def a_dependency_is_on_earlier_work(device: DeviceGround) -> None:
    """A dependency does not wait for what the other stream is given later.

    Otherwise: The program stands still, with no error.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    """
    dependent, other = device.stream(), device.stream()
    enqueue_work(device, other, 373)
    _depend(device, dependent, other)
    gate = held(device, other)
    enqueue_work(device, dependent, 374)
    what = "a stream that depends on another, which is held back later on,"
    expect_passed_meanwhile(device, marked(device, dependent), what)
    gate.open()


@suite.check("SE-250", level=ROBUST, severity=WARNING)
def a_stream_is_destroyed_with_work(device: DeviceGround) -> None:
    """The work of a stream is completed even if the stream is destroyed before.

    Otherwise: The last results of a stream are lost.
    Remedy: Let destroy_stream wait, or let the queue end by itself.
    Source: host recommendation
    """
    memory, stream, other = device.filled(bytes(37900)), device.stream(), device.stream()
    for number in range(100):
        part, source = memory.part(number * 379, 379), device.buffer(b"\x5a" * 379)
        prepared(device.subject.memcpy_htod(stream, part, source, 379), "memcpy_htod")
    device.destroy(stream)
    enqueue_work(device, other, 380)
    prepared(device.subject.synchronize_all_activity(), "synchronize_all_activity")
    expect_bytes(device.content(memory), b"\x5a" * 37900, "what a destroyed stream has copied")


@suite.check("SE-251", "host_callback")
def the_host_waits_for_all_streams(device: DeviceGround) -> None:
    """synchronize_all_activity waits for all streams.

    Otherwise: TensorFlow copies results to the host behind it: they are not there yet.
    Remedy: Wait for each stream of the device.
    Source: TensorFlow 2.21, observed
    """
    streams = [device.stream() for _ in range(3)]
    gate = held(device, streams[1])
    for stream in streams:
        enqueue_work(device, stream, 383)
    call = device.subject.synchronize_all_activity
    expect_waits(gate, call, "synchronize_all_activity").must_be_ok()


@suite.check("SE-252")
def waiting_for_no_stream(device: DeviceGround) -> None:
    """synchronize_all_activity succeeds where no stream is.

    Otherwise: TensorFlow calls it before each copy to the host, whatever was used so far.
    Remedy: Return OK where there is nothing to wait for.
    Source: TensorFlow 2.21, observed
    """
    device.subject.synchronize_all_activity().must_be_ok()
