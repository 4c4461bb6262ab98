"""Checks of streams: their order, waiting for them, dependencies between them.

What holds a stream back is a callback that waits; so no check depends on how fast anything is.
Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.device.workspace import expect_bytes, prepared
from modular_tf.check.expectation import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.operations import Stream
    from modular_tf.check.device.workspace import Workspace

suite = Suite("device", "streams", source="device.h")

_HOLDS = ("host_callback", "create_event", "record_event", "get_event_status")
_DEPENDS = ("create_stream_dependency", *_HOLDS)
_IN_TURN = 200
_AT_ONCE = 64
_LONG = 1000


def expect_order(device: Workspace, n_bytes: int, wait: Callable[[Stream, Stream], None]) -> None:
    """Let a stream wait for another, which is held, and demand that its copies come after."""
    dependent, other, data = device.stream(), device.stream(), device.bytes(n_bytes)
    source, target = device.filled(bytes(n_bytes)), device.filled(bytes(n_bytes))
    gate = device.held(other)
    device.enqueue_work(other, n_bytes)
    prepared(device.memcpy_htod(other, source, device.buffer(data), n_bytes))
    wait(dependent, other)
    prepared(device.memcpy_dtod(dependent, target, source, n_bytes))
    device.must_be_held(device.marked(dependent), "a stream that waits for another")
    gate.open()
    device.done(dependent)
    device.must_hold(target, data, "what was copied behind work of another stream")


@suite.check("SE-235", "get_stream_status")
def a_new_stream_is_well(device: Workspace) -> None:
    """The status of a new stream is OK.

    Otherwise: The first operation of the device fails.
    Remedy: Set the status to TF_OK while nothing went wrong.
    """
    device.get_stream_status(device.stream()).must_be_ok()


@suite.check("SE-236", "block_host_until_done")
def waiting_for_nothing(device: Workspace) -> None:
    """Waiting for a stream without work returns at once, again and again.

    Otherwise: Programs that wait where there is nothing to wait for fail.
    Remedy: Return OK where the stream has no work.
    """
    stream = device.stream()
    for _ in range(2):
        device.block_host_until_done(stream).must_be_ok()


@suite.check("SE-237", "get_stream_status", *_HOLDS, severity=WARNING)
def a_status_does_not_wait(device: Workspace) -> None:
    """get_stream_status does not wait for the stream.

    Otherwise: Threads that only look stand still until the device is done.
    Remedy: Report what is known so far.
    """
    stream = device.stream()
    gate = device.held(stream)
    gate.must_not_block(lambda: device.get_stream_status(stream))


@suite.check("SE-238", level=ROBUST)
def streams_in_turn(device: Workspace) -> None:
    """200 streams can be made and destroyed, one after the other.

    Otherwise: A long-running program gets no stream any more.
    Remedy: Give back in destroy_stream all that create_stream took.
    """
    for _ in range(_IN_TURN):
        device.destroy_stream(device.create_stream().must_be_ok())


@suite.check("SE-239", level=ROBUST, severity=WARNING)
def streams_at_once(device: Workspace) -> None:
    """64 streams work at once.

    Otherwise: Programs with several devices and threads get no stream.
    Remedy: Share queues of the hardware between streams where they are few.
    Source: host recommendation
    """
    memory = device.filled(bytes(_AT_ONCE))
    for number in range(_AT_ONCE):
        stream = device.adopt("stream", device.create_stream().must_be_ok())
        part, source = memory.part(number, 1), device.buffer(bytes((number + 1,)))
        device.memcpy_htod(stream, part, source, 1).must_be_ok()
    prepared(device.synchronize_all_activity())
    expected = bytes(range(1, _AT_ONCE + 1))
    device.must_hold(memory, expected, f"what {_AT_ONCE} streams have copied")


@suite.check("SE-240", *_HOLDS, level=ROBUST, severity=WARNING)
def streams_are_independent(device: Workspace) -> None:
    """A stream continues while another one is blocked.

    Otherwise: Copies do not run beside computations, and a callback that waits stops the device.
    Remedy: Give each stream a queue of its own.
    """
    gate, other = device.held(device.stream()), device.stream()
    passed = device.gets_passed(device.marked(other, 353))
    gate.open()
    expect(passed, "a stream waits while another one is blocked", expected="it continues")


@suite.check("SE-241", "host_callback")
def copies_in_order(device: Workspace) -> None:
    """The copies of a stream happen in the order in which they were enqueued.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Start each piece of work when the one before it on the stream is done.
    """
    stream = device.stream()
    first, last = device.bytes(357), device.bytes(357)
    memory, taken = device.filled(bytes(357)), device.buffer(357)
    gate = device.gate(stream)
    prepared(device.memcpy_htod(stream, memory, device.buffer(first), 357))
    prepared(device.memcpy_dtoh(stream, taken, memory, 357))
    prepared(device.memcpy_htod(stream, memory, device.buffer(last), 357))
    gate.open()
    device.done(stream)
    expect_bytes(taken.content(), first, "what was read between two writes")
    device.must_hold(memory, last, "what was written last")


@suite.check("SE-242", "host_callback", level=ROBUST)
def a_long_queue(device: Workspace) -> None:
    """A stream takes a thousand pieces of work without losing one.

    Otherwise: What a program enqueues ahead of the device is lost.
    Remedy: Let the queue grow, or let the caller wait; drop nothing.
    """
    stream, memory = device.stream(), device.filled(bytes(_LONG))
    expected = bytes(number % 250 + 1 for number in range(_LONG))
    gate = device.gate(stream)
    for number in range(_LONG):
        part, source = memory.part(number, 1), device.buffer(expected[number : number + 1])
        device.memcpy_htod(stream, part, source, 1).must_be_ok()
    gate.open()
    device.done(stream)
    device.must_hold(memory, expected, f"what {_LONG} copies have copied")


@suite.check("SE-243", "host_callback")
def the_host_waits_for_a_stream(device: Workspace) -> None:
    """block_host_until_done waits until the work of the stream is done.

    Otherwise: The host reads results that are not there yet.
    Remedy: Wait for a mark at the end of the stream.
    """
    stream = device.stream()
    gate = device.held(stream)
    device.enqueue_work(stream, 359)
    gate.must_block(lambda: device.block_host_until_done(stream))


@suite.check("SE-244", *_DEPENDS)
def a_stream_depends_on_another(device: Workspace) -> None:
    """Work behind create_stream_dependency waits for what the other stream held.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    Source: TensorFlow 2.21, observed
    """

    def wait(dependent: Stream, other: Stream) -> None:
        device.create_stream_dependency(dependent, other).must_be_ok()

    expect_order(device, 361, wait)


@suite.check("SE-245", *_DEPENDS, severity=WARNING)
def a_dependency_does_not_block(device: Workspace) -> None:
    """create_stream_dependency does not block its caller.

    Otherwise: TensorFlow makes one before each copy: the host then waits for the device each time.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    """
    dependent, other = device.stream(), device.stream()
    gate = device.held(other)
    device.enqueue_work(other, 363)
    gate.must_not_block(lambda: device.create_stream_dependency(dependent, other))


@suite.check("SE-246", "create_stream_dependency", level=ROBUST)
def a_stream_depends_on_itself(device: Workspace) -> None:
    """A stream that is made dependent on itself continues.

    Otherwise: The program stands still, with no error.
    Remedy: What the stream holds is before its later work anyway: do nothing.
    """
    stream = device.stream()
    device.enqueue_work(stream, 367)
    device.create_stream_dependency(stream, stream).must_be_ok()
    device.must_pass(device.marked(stream, 368), "a stream that depends on itself")


@suite.check("SE-247", *_DEPENDS, level=ROBUST)
def a_chain_of_streams(device: Workspace) -> None:
    """Dependencies hold along a chain of streams.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let a mark wait for the waits before it too.
    """
    streams = [device.stream() for _ in range(8)]
    gate = device.held(streams[0])
    for other, dependent in pairwise(streams):
        device.create_stream_dependency(dependent, other).must_be_ok()
    what = "the last of eight streams that depend on each other in a row"
    device.must_wait(gate, device.marked(streams[-1]), what)


@suite.check("SE-248", "create_stream_dependency", level=ROBUST)
def two_streams_depend_on_each_other(device: Workspace) -> None:
    """Two streams that depend on each other go on.

    Otherwise: The program stands still, with no error.
    Remedy: A dependency is on what the other stream holds now, not on what comes later.
    """
    one, two = device.stream(), device.stream()
    device.enqueue_work(one, 371)
    device.enqueue_work(two, 372)
    device.create_stream_dependency(one, two).must_be_ok()
    device.create_stream_dependency(two, one).must_be_ok()
    for stream in (one, two):
        device.must_pass(device.marked(stream), "a stream of two that depend on each other")


@suite.check("SE-249", *_DEPENDS, level=ROBUST)
def a_dependency_is_on_earlier_work(device: Workspace) -> None:
    """A dependency does not wait for what the other stream is given later.

    Otherwise: The program stands still, with no error.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    """
    dependent, other = device.stream(), device.stream()
    device.enqueue_work(other, 373)
    device.create_stream_dependency(dependent, other).must_be_ok()
    gate = device.held(other)
    what = "a stream that depends on another, which is held back later on,"
    device.must_pass_meanwhile(device.marked(dependent, 374), what)
    gate.open()


@suite.check("SE-250", level=ROBUST, severity=WARNING)
def a_stream_is_destroyed_with_work(device: Workspace) -> None:
    """The work of a stream is completed even if the stream is destroyed before.

    Otherwise: The last results of a stream are lost.
    Remedy: Let destroy_stream wait, or let the queue end by itself.
    Source: host recommendation
    """
    memory, stream, other = device.filled(bytes(37900)), device.stream(), device.stream()
    for number in range(100):
        part, source = memory.part(number * 379, 379), device.buffer(b"\x5a" * 379)
        prepared(device.memcpy_htod(stream, part, source, 379))
    device.destroy(stream)
    device.enqueue_work(other, 380)
    prepared(device.synchronize_all_activity())
    device.must_hold(memory, b"\x5a" * 37900, "what a destroyed stream has copied")


@suite.check("SE-251", "host_callback")
def the_host_waits_for_all_streams(device: Workspace) -> None:
    """synchronize_all_activity waits for all streams.

    Otherwise: TensorFlow copies results to the host behind it: they are not there yet.
    Remedy: Wait for each stream of the device.
    Source: TensorFlow 2.21, observed
    """
    streams = [device.stream() for _ in range(3)]
    gate = device.held(streams[1])
    for stream in streams:
        device.enqueue_work(stream, 383)
    gate.must_block(device.synchronize_all_activity)


@suite.check("SE-252")
def waiting_for_no_stream(device: Workspace) -> None:
    """synchronize_all_activity succeeds where no stream is.

    Otherwise: TensorFlow calls it before each copy to the host, whatever was used so far.
    Remedy: Return OK where there is nothing to wait for.
    Source: TensorFlow 2.21, observed
    """
    device.synchronize_all_activity().must_be_ok()
