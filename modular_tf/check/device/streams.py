"""Checks of streams, events, timers and host callbacks.

What holds a stream back is a callback that waits; so no check depends on how fast anything is.
Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import ROBUST, WARNING, WORKS, Suite
from modular_tf.check.device.workspace import expect_bytes, prepared, shown_status
from modular_tf.check.expectation import (
    Blocked,
    Unsupported,
    expect,
    expect_at_least,
    expect_at_most,
    expect_equal,
    expect_in,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.operations import Event, Stream, Timer
    from modular_tf.check.device.waiting import Gate
    from modular_tf.check.device.workspace import Workspace

streams = Suite("device", "streams", source="device.h")

_EVENTS = ("create_event", "record_event", "get_event_status")
_HOLDS = ("host_callback", *_EVENTS)
_DEPENDS = ("create_stream_dependency", *_HOLDS)
_IN_TURN = 200
_AT_ONCE = 64
_LONG = 1000


def _expect_order(device: Workspace, n_bytes: int, wait: Callable[[Stream, Stream], None]) -> None:
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


@streams.check("SE-235", "get_stream_status")
def a_new_stream_is_well(device: Workspace) -> None:
    """The status of a new stream is OK.

    Otherwise: The first operation of the device fails.
    Remedy: Set the status to TF_OK while nothing went wrong.
    """
    device.get_stream_status(device.stream()).must_be_ok()


@streams.check("SE-236", "block_host_until_done")
def waiting_for_nothing(device: Workspace) -> None:
    """Waiting for a stream without work returns at once, again and again.

    Otherwise: Programs that wait where there is nothing to wait for fail.
    Remedy: Return OK where the stream has no work.
    """
    stream = device.stream()
    for _ in range(2):
        device.block_host_until_done(stream).must_be_ok()


@streams.check("SE-237", "get_stream_status", *_HOLDS, severity=WARNING)
def a_status_does_not_wait(device: Workspace) -> None:
    """get_stream_status does not wait for the stream.

    Otherwise: Threads that only look stand still until the device is done.
    Remedy: Report what is known so far.
    """
    stream = device.stream()
    gate = device.held(stream)
    gate.must_not_block(lambda: device.get_stream_status(stream))


@streams.check("SE-238", level=ROBUST)
def streams_in_turn(device: Workspace) -> None:
    """200 streams can be made and destroyed, one after the other.

    Otherwise: A long-running program gets no stream any more.
    Remedy: Give back in destroy_stream all that create_stream took.
    """
    for _ in range(_IN_TURN):
        device.destroy_stream(device.create_stream().must_be_ok())


@streams.check("SE-239", level=ROBUST, severity=WARNING)
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


@streams.check("SE-240", *_HOLDS, level=ROBUST, severity=WARNING)
def streams_are_independent(device: Workspace) -> None:
    """A stream continues while another one is blocked.

    Otherwise: Copies do not run beside computations, and a callback that waits stops the device.
    Remedy: Give each stream a queue of its own.
    """
    gate, other = device.held(device.stream()), device.stream()
    passed = device.gets_passed(device.marked(other, 353))
    gate.open()
    expect(passed, "a stream waits while another one is blocked", expected="it continues")


@streams.check("SE-241", "host_callback")
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


@streams.check("SE-242", "host_callback", level=ROBUST)
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


@streams.check("SE-243", "host_callback")
def the_host_waits_for_a_stream(device: Workspace) -> None:
    """block_host_until_done waits until the work of the stream is done.

    Otherwise: The host reads results that are not there yet.
    Remedy: Wait for a mark at the end of the stream.
    """
    stream = device.stream()
    gate = device.held(stream)
    device.enqueue_work(stream, 359)
    gate.must_block(lambda: device.block_host_until_done(stream))


@streams.check("SE-244", *_DEPENDS)
def a_stream_depends_on_another(device: Workspace) -> None:
    """Work behind create_stream_dependency waits for what the other stream held.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    Source: TensorFlow 2.21, observed
    """

    def wait(dependent: Stream, other: Stream) -> None:
        device.create_stream_dependency(dependent, other).must_be_ok()

    _expect_order(device, 361, wait)


@streams.check("SE-245", *_DEPENDS, severity=WARNING)
def a_dependency_does_not_block(device: Workspace) -> None:
    """create_stream_dependency does not block its caller.

    Otherwise: TensorFlow makes one before each copy: the host then waits for the device each time.
    Remedy: Let the dependent stream wait for a mark at the end of what the other holds now.
    """
    dependent, other = device.stream(), device.stream()
    gate = device.held(other)
    device.enqueue_work(other, 363)
    gate.must_not_block(lambda: device.create_stream_dependency(dependent, other))


@streams.check("SE-246", "create_stream_dependency", level=ROBUST)
def a_stream_depends_on_itself(device: Workspace) -> None:
    """A stream that is made dependent on itself continues.

    Otherwise: The program stands still, with no error.
    Remedy: What the stream holds is before its later work anyway: do nothing.
    """
    stream = device.stream()
    device.enqueue_work(stream, 367)
    device.create_stream_dependency(stream, stream).must_be_ok()
    device.must_pass(device.marked(stream, 368), "a stream that depends on itself")


@streams.check("SE-247", *_DEPENDS, level=ROBUST)
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


@streams.check("SE-248", "create_stream_dependency", level=ROBUST)
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


@streams.check("SE-249", *_DEPENDS, level=ROBUST)
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


@streams.check("SE-250", level=ROBUST, severity=WARNING)
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


@streams.check("SE-251", "host_callback")
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


@streams.check("SE-252")
def waiting_for_no_stream(device: Workspace) -> None:
    """synchronize_all_activity succeeds where no stream is.

    Otherwise: TensorFlow calls it before each copy to the host, whatever was used so far.
    Remedy: Return OK where there is nothing to wait for.
    Source: TensorFlow 2.21, observed
    """
    device.synchronize_all_activity().must_be_ok()


events = Suite("device", "events", level=ROBUST, source="device.h")

_MANY = 2000
_POLLS = 200


def _held_event(device: Workspace, n_bytes: int) -> tuple[Gate, Event]:
    """Return an event behind such a copy, on a new stream that is held back in front of both."""
    stream = device.stream()
    return device.held(stream), device.marked(stream, n_bytes)


def _waiting(device: Workspace, event: Event) -> Event:
    """Return an event on a new stream that waits for another one, which it must do."""
    stream = device.stream()
    device.wait_for_event(stream, event).must_be_ok()
    return device.marked(stream)


def _expect_complete(device: Workspace, event: Event, message: str) -> None:
    """Demand that an event is COMPLETE now."""
    found, expected = shown_status(device.status_of(event)), "SE_EVENT_COMPLETE"
    expect(found == expected, message, expected=expected, found=found)


@events.check("SE-253", *_EVENTS, level=WORKS)
def an_event_completes(device: Workspace) -> None:
    """An event becomes COMPLETE when its stream has passed it.

    Otherwise: TensorFlow polls the event for ever, and holds what depends on it.
    Remedy: Report SE_EVENT_COMPLETE when the work in front of the event is done.
    Source: TensorFlow 2.21, observed
    """
    stream, event = device.stream(401), device.event()
    device.record_event(stream, event).must_be_ok()
    device.must_pass(event, "an event behind a copy")


@events.check("SE-254", *_HOLDS, level=WORKS)
def an_event_is_pending(device: Workspace) -> None:
    """An event is PENDING while work in front of it is outstanding.

    Otherwise: TensorFlow gives buffers back behind events: the device still uses them.
    Remedy: Report SE_EVENT_COMPLETE only when all work in front of the event is done.
    Source: TensorFlow 2.21, observed
    """
    gate, event = _held_event(device, 403)
    device.must_wait(gate, event, "an event")


@events.check("SE-255", *_HOLDS, level=WORKS)
def no_event_is_unknown(device: Workspace) -> None:
    """The status of a recorded event is PENDING or COMPLETE, never UNKNOWN or ERROR.

    Otherwise: TensorFlow aborts the whole process.
    Remedy: Report SE_EVENT_PENDING while nothing else is known.
    Source: TensorFlow 2.21, observed
    """
    stream = device.stream()
    gate, event = device.gate(stream), device.marked(stream, 405)
    for look in range(_POLLS):
        if look == _POLLS // 2:
            gate.open()
        shown = shown_status(device.status_of(event))
        expect_in(shown, ("SE_EVENT_PENDING", "SE_EVENT_COMPLETE"), "a recorded event's status")


@events.check("SE-256", *_HOLDS, level=WORKS)
def a_complete_event_stays_so(device: Workspace) -> None:
    """An event that was COMPLETE stays so until it is recorded again.

    Otherwise: Those who poll later wait for work that was done long ago.
    Remedy: Keep the known status; do not ask the stream, which continues.
    """
    stream = device.stream()
    event = device.marked(stream, 407)
    device.must_pass(event, "an event")
    gate = device.gate(stream)
    for _ in range(_POLLS):
        _expect_complete(device, event, "an event that was COMPLETE is so no more")
    gate.open()


@events.check("SE-257", *_EVENTS, level=WORKS)
def a_complete_event_means_that_bytes_are_there(device: Workspace) -> None:
    """Behind a COMPLETE event the bytes of copies to the host are there.

    Otherwise: Results are read before they have arrived.
    Remedy: Report SE_EVENT_COMPLETE only when the host can see what was copied.
    Source: TensorFlow 2.21, observed
    """
    stream, data = device.stream(), device.bytes(409)
    memory = device.filled(data)
    for _ in range(20):
        back = device.buffer(409)
        prepared(device.memcpy_dtoh(stream, back, memory, 409))
        device.must_pass(device.marked(stream), "an event behind a copy")
        expect_bytes(back.content(), data, "a host buffer, behind a COMPLETE event,")


@events.check("SE-258", *_EVENTS, severity=WARNING)
def an_event_that_was_not_recorded(device: Workspace) -> None:
    """The status of an event that was never recorded is COMPLETE.

    Otherwise: A host that polls it waits for ever, or takes the work for failed.
    Remedy: There is nothing outstanding: report SE_EVENT_COMPLETE.
    Source: host recommendation

    TensorFlow never asks; others do.
    """
    _expect_complete(device, device.event(), "an event that was never recorded is not COMPLETE")


@events.check("SE-259", "wait_for_event")
def waiting_for_an_event_that_was_not_recorded(device: Workspace) -> None:
    """Waiting for an event that was never recorded holds up nothing.

    Otherwise: The program stands still, with no error.
    Remedy: There is nothing to wait for: do nothing, and return OK.
    """
    what = "a stream that waits for an event that was never recorded"
    device.must_pass(_waiting(device, device.event()), what)


@events.check("SE-260", "wait_for_event", *_HOLDS, level=WORKS)
def a_stream_waits_for_an_event(device: Workspace) -> None:
    """Work behind wait_for_event waits for the event.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let the stream wait for the mark where the event was recorded.
    """

    def wait(dependent: Stream, other: Stream) -> None:
        device.wait_for_event(dependent, device.marked(other)).must_be_ok()

    _expect_order(device, 411, wait)


@events.check("SE-261", "wait_for_event", *_HOLDS, level=WORKS, severity=WARNING)
def waiting_for_an_event_does_not_block(device: Workspace) -> None:
    """wait_for_event does not block its caller.

    Otherwise: The host stands still where only the stream should wait.
    Remedy: Enqueue the wait on the stream.
    """
    (gate, event), stream = _held_event(device, 413), device.stream()
    gate.must_not_block(lambda: device.wait_for_event(stream, event))


@events.check("SE-262", *_HOLDS, level=WORKS)
def an_event_is_recorded_again(device: Workspace) -> None:
    """An event that is recorded again is PENDING again until its stream gets there.

    Otherwise: TensorFlow uses its events again: TensorFlow gives buffers back behind events: the
    device still uses them.
    Remedy: An event stands for the place where it was recorded last.
    Source: TensorFlow 2.21, observed
    """
    stream = device.stream()
    event = device.marked(stream)
    device.must_pass(event, "an event")
    gate = device.held(stream)
    device.enqueue_work(stream, 415)
    device.record_event(stream, event).must_be_ok()
    device.must_wait(gate, event, "an event that was recorded again")


@events.check("SE-263", "wait_for_event", *_HOLDS)
def recording_again_disturbs_nobody(device: Workspace) -> None:
    """Recording an event again does not disturb those who wait for its former place.

    Otherwise: The program stands still, with no error.
    Remedy: Let those who wait keep the place that they wait for, not the event.
    """
    stream, waiting = device.stream(), device.stream()
    first, event = device.held(stream), device.marked(stream, 417)
    device.wait_for_event(waiting, event).must_be_ok()
    second = device.gate(stream)
    device.record_event(stream, event).must_be_ok()
    first.open()
    what = "a stream that waits for the place where an event was recorded first"
    device.must_pass_meanwhile(device.marked(waiting), what)
    second.open()


@events.check("SE-264", "block_host_for_event", *_HOLDS, level=WORKS)
def the_host_waits_for_an_event(device: Workspace) -> None:
    """block_host_for_event waits until the event is passed.

    Otherwise: The host reads results that are not there yet.
    Remedy: Wait for the mark where the event was recorded.
    """
    gate, event = _held_event(device, 419)
    gate.must_block(lambda: device.block_host_for_event(event))


@events.check("SE-265", "block_host_for_event", *_HOLDS, severity=WARNING)
def the_host_waits_for_nothing_behind_an_event(device: Workspace) -> None:
    """block_host_for_event does not wait for work behind the event.

    Otherwise: The program stands still, with no error.
    Remedy: Wait for the mark of the event, not for its stream.
    """
    stream = device.stream()
    event = device.marked(stream, 421)
    gate = device.held(stream)
    gate.must_not_block(lambda: device.block_host_for_event(event))


@events.check("SE-266", "wait_for_event", *_HOLDS)
def an_event_is_destroyed_while_it_is_pending(device: Workspace) -> None:
    """An event may be destroyed while it is pending; those who wait for it still do.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let those who wait keep the mark alive.
    """
    gate, event = _held_event(device, 423)
    after = _waiting(device, event)
    device.destroy(event)
    device.must_wait(gate, after, "a stream that waits for an event that was destroyed meanwhile")


@events.check("SE-267", *_HOLDS)
def many_events(device: Workspace) -> None:
    """2000 events can be pending at once.

    Otherwise: TensorFlow makes as many as it has work outstanding: it fails under load.
    Remedy: Take events from the heap, not from a fixed table.
    Source: TensorFlow 2.21, observed
    """
    stream = device.stream()
    gate = device.gate(stream)
    many = device.target.options.many or _MANY
    events = [device.adopt("event", device.create_event().must_be_ok()) for _ in range(many)]
    for event in events:
        device.record_event(stream, event).must_be_ok()
    gate.open()
    for number, event in enumerate(events):
        device.must_pass(event, f"event {number} of {many}")


@events.check("SE-268", "wait_for_event", *_HOLDS)
def many_streams_wait_for_one_event(device: Workspace) -> None:
    """Any number of streams may wait for one event.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Wake all who wait when the event is passed, and keep no single waiter.
    """
    gate, event = _held_event(device, 425)
    after = [_waiting(device, event) for _ in range(8)]
    for number, one in enumerate(after):
        device.must_be_held(one, f"stream {number} of 8 that wait for one event")
    gate.open()
    for number, one in enumerate(after):
        device.must_pass(one, f"stream {number} of 8 that wait for one event")


@events.check("SE-269", "wait_for_event", *_EVENTS)
def two_streams_wait_for_each_other(device: Workspace) -> None:
    """Two streams that wait for events of each other go on.

    Otherwise: The program stands still, with no error.
    Remedy: A wait is for the place where the event was recorded, not for its stream.
    """
    one, two = device.stream(), device.stream()
    of_one, of_two = device.marked(one), device.marked(two)
    device.wait_for_event(one, of_two).must_be_ok()
    device.wait_for_event(two, of_one).must_be_ok()
    for stream in (one, two):
        device.must_pass(device.marked(stream), "a stream of two that wait for each other")


@events.check("SE-270", *_HOLDS)
def events_are_passed_in_order(device: Workspace) -> None:
    """Where an event is COMPLETE, the earlier events of its stream are too.

    Otherwise: TensorFlow looks at the oldest event of a stream first, and holds what lies behind
    it.
    Remedy: Pass the events of a stream in order.
    Source: TensorFlow 2.21, observed
    """
    stream = device.stream()
    gate = device.gate(stream)
    first, last = device.marked(stream, 427), device.marked(stream, 429)
    gate.open()
    device.must_pass(last, "an event")
    _expect_complete(device, first, "an event is not COMPLETE, though a later one is")


@events.check("SE-271", "wait_for_event", *_EVENTS)
def a_stream_waits_for_itself(device: Workspace) -> None:
    """A stream that waits for an event of its own continues.

    Otherwise: The program stands still, with no error.
    Remedy: What is in front of the event is before later work anyway: do nothing.
    """
    stream = device.stream()
    event = device.marked(stream)
    device.wait_for_event(stream, event).must_be_ok()
    device.must_pass(device.marked(stream), "a stream that waits for an event of its own")


@events.check("SE-272", *_HOLDS)
def an_event_goes_to_another_stream(device: Workspace) -> None:
    """An event that is recorded on another stream stands for that stream.

    Otherwise: Waiting ends too late or too early, as events go from stream to stream.
    Remedy: An event stands for the place where it was recorded last.
    """
    gate, event = _held_event(device, 431)
    device.record_event(device.stream(), event).must_be_ok()
    device.must_pass_meanwhile(event, "an event that was recorded on a free stream at last")
    gate.open()


timers = Suite("device", "timers", level=ROBUST, source="device.h")

_TIMERS = ("create_timer", "destroy_timer", "start_timer", "stop_timer", "nanoseconds")
_WITH_CALLBACKS = (*_TIMERS, "host_callback")
_MILLISECOND = 1_000_000
_CLOCKS_APART = 0.1
"""By how much two clocks may differ over such a time."""


def _start(device: Workspace, stream: Stream, n_bytes: int) -> Timer:
    """Start a new timer behind a little work."""
    timer = device.timer()
    device.enqueue_work(stream, n_bytes)
    device.start_timer(stream, timer).must_be_ok()
    return timer


def _read(device: Workspace, stream: Stream, timer: Timer) -> int:
    device.done(stream)
    return int(device.nanoseconds(timer).must_be_ok())


def _keep_busy(device: Workspace, stream: Stream, milliseconds: int) -> threading.Event:
    """Keep a stream busy for so long or longer, and return what is set then."""
    over = threading.Event()

    def work() -> None:
        time.sleep(milliseconds / 1000)
        over.set()

    device.call_back(stream, work)
    return over


def _pass_time(device: Workspace, stream: Stream, milliseconds: int) -> None:
    """Let so long or longer pass for a stream, which is idle where its callbacks do not work."""
    try:
        _keep_busy(device, stream, milliseconds)
    except (Blocked, Unsupported):
        time.sleep(milliseconds / 1000)


def _expect_passed(found: int, elapsed: int) -> None:
    most = int(elapsed * (1 + _CLOCKS_APART)) + _MILLISECOND
    expect_at_most(found, most, "a timer shows more time than has passed", " ns")


@timers.check("SE-273", *_TIMERS, level=WORKS)
def a_timer_shows_no_more_than_has_passed(device: Workspace) -> None:
    """A timer shows no more time than has passed.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Count nanoseconds. Where the end came before the start by rounding, report 0.
    """
    begun, stream = time.monotonic_ns(), device.stream()
    timer = _start(device, stream, 441)
    device.stop_timer(stream, timer).must_be_ok()
    found = _read(device, stream, timer)
    _expect_passed(found, time.monotonic_ns() - begun)


@timers.check("SE-274", *_WITH_CALLBACKS, level=WORKS)
def a_timer_shows_what_the_work_took(device: Workspace) -> None:
    """A timer shows at least the time that the work between start and stop took.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Count nanoseconds. Read the clock when the stream gets there, not in the call.
    """
    stream = device.stream()
    timer = _start(device, stream, 443)
    over = _keep_busy(device, stream, 5)
    device.stop_timer(stream, timer).must_be_ok()
    found, least = _read(device, stream, timer), int(5 * _MILLISECOND * (1 - _CLOCKS_APART))
    if not over.is_set():
        raise Blocked("the stream was done before its callback was")
    expect_at_least(found, least, "a timer shows less time than the work took", " ns")


@timers.check("SE-275", *_WITH_CALLBACKS)
def a_timer_measures_anew(device: Workspace) -> None:
    """A timer that is started again measures anew.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Let start_timer forget what was measured before.
    """
    stream = device.stream()
    timer = _start(device, stream, 445)
    _pass_time(device, stream, 100)
    device.stop_timer(stream, timer).must_be_ok()
    _read(device, stream, timer)
    begun = time.monotonic_ns()
    device.start_timer(stream, timer).must_be_ok()
    device.stop_timer(stream, timer).must_be_ok()
    found = _read(device, stream, timer)
    _expect_passed(found, time.monotonic_ns() - begun)


@timers.check("SE-276", *_WITH_CALLBACKS)
def a_timer_round_another(device: Workspace) -> None:
    """A timer round another one shows no less than that.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Give each timer its own marks.
    """
    stream = device.stream()
    outer = _start(device, stream, 447)
    inner = _start(device, stream, 448)
    _pass_time(device, stream, 2)
    device.stop_timer(stream, inner).must_be_ok()
    device.stop_timer(stream, outer).must_be_ok()
    around, within = _read(device, stream, outer), device.nanoseconds(inner).value
    expect_at_least(around, within, "a timer round another one shows less", " ns")


@timers.check("SE-277", *_WITH_CALLBACKS)
def a_timer_is_destroyed_early(device: Workspace) -> None:
    """A timer may be destroyed while its stream has not got to it.

    Otherwise: The stream writes into freed memory, and the process crashes.
    Remedy: Keep alive what the stream has yet to write, until it has.
    """
    stream = device.stream()
    gate = device.held(stream)
    timer = _start(device, stream, 449)
    device.stop_timer(stream, timer).must_be_ok()
    device.destroy(timer)
    gate.open()
    device.block_host_until_done(stream).must_be_ok()


callbacks = Suite("device", "callbacks", source="device.h")

_STREAMS = 8
_EACH = 50


@callbacks.check("SE-278", "host_callback")
def a_callback_is_taken(device: Workspace) -> None:
    """host_callback returns non-zero when it has taken the callback.

    Otherwise: TensorFlow takes TF_OK, which is 0, for a failure; the work of the stream fails.
    Remedy: Return 1, not a status code.
    Source: TensorFlow 2.21, observed
    """
    answer = device.host_callback(device.stream(461), lambda: None)
    message = "host_callback rejects the callback"
    expect(answer.ok, message, expected="a number that is not 0", found=answer.message)


@callbacks.check("SE-279", "host_callback")
def each_callback_is_called_once(device: Workspace) -> None:
    """A callback that was taken is called once.

    Otherwise: What TensorFlow does when the stream gets there never happens, or happens twice.
    Remedy: Call each callback once, whatever else is on the stream.
    """
    stream, calls = device.stream(463), [0] * _EACH

    def count(number: int) -> None:
        calls[number] += 1

    for number in range(_EACH):
        device.call_back(stream, partial(count, number))
    device.done(stream)
    prepared(device.synchronize_all_activity())
    wrong = {number: n for number, n in enumerate(calls) if n != 1}
    expect(
        not wrong,
        f"{len(wrong)} of {_EACH} callbacks were not called once",
        expected="each is called once",
        found=", ".join(f"number {number} {n} times" for number, n in list(wrong.items())[:5]),
    )


@callbacks.check("SE-280", "host_callback")
def callbacks_in_order(device: Workspace) -> None:
    """The callbacks of a stream are called in order.

    Otherwise: Those who count on the order of a stream are wrong.
    Remedy: Run callbacks by one thread per stream, or one behind the other.
    """
    stream = device.stream(465)
    seen: list[int] = []
    gate = device.gate(stream)
    for number in range(_EACH):
        device.call_back(stream, partial(seen.append, number))
    gate.open()
    device.done(stream)
    expect_equal(seen, list(range(_EACH)), "the order of callbacks")


@callbacks.check("SE-281", "host_callback")
def a_callback_sees_earlier_work(device: Workspace) -> None:
    """A callback is called when the work in front of it is done.

    Otherwise: The callback sees, or frees, what the device still works on.
    Remedy: Enqueue the callback on the stream.
    """
    stream, data, seen = device.stream(), device.bytes(467), bytearray()
    memory, back = device.filled(data), device.buffer(467)
    gate = device.gate(stream)
    prepared(device.memcpy_dtoh(stream, back, memory, 467))
    device.call_back(stream, lambda: seen.extend(back.view))
    gate.open()
    device.done(stream)
    expect_bytes(bytes(seen), data, "what a callback saw of a copy in front of it")


@callbacks.check("SE-282", "host_callback")
def later_work_waits_for_a_callback(device: Workspace) -> None:
    """Work behind a callback waits until it has returned.

    Otherwise: The device uses what the callback has not prepared yet.
    Remedy: Go on with the stream when the callback has returned.
    """
    stream, data = device.stream(), device.bytes(473)
    memory, host = device.memory(473), device.buffer(473)
    gate = device.gate(stream)

    def write() -> None:
        host.view[:] = data

    device.call_back(stream, write)
    prepared(device.memcpy_htod(stream, memory, host, 473))
    gate.open()
    device.done(stream)
    device.must_hold(memory, data, "what a copy behind a callback has taken")


@callbacks.check("SE-283", "host_callback", level=ROBUST, severity=WARNING)
def enqueueing_does_not_wait(device: Workspace) -> None:
    """host_callback does not wait for the callback.

    Otherwise: The thread that feeds the stream stands still while the callback runs.
    Remedy: Call it from a thread of the plugin's.
    """
    gate = device.gate(device.stream(479))
    gate.require_callback()
    expect(
        not gate.is_inline,
        "host_callback runs the callback before it returns",
        expected="a thread of the plugin's calls it",
        found="the caller's thread did",
    )


@callbacks.check("SE-284", "host_callback", level=ROBUST, severity=WARNING)
def a_failed_callback_shows(device: Workspace) -> None:
    """A callback that fails shows in the status of its stream, or of who waits for it.

    Otherwise: The failure is lost, and results that it spoiled are taken for good.
    Remedy: Keep the first status that is not OK, for get_stream_status and block_host_until_done.
    """
    stream = device.stream(487)
    failure = (int(Code.DATA_LOSS), "a callback of the kit that fails")
    device.call_back(stream, lambda: failure)
    waited = device.block_host_until_done(stream)
    status = device.get_stream_status(stream)
    expect(
        Code.DATA_LOSS in {waited.code, status.code},
        "the status that a callback has set is lost",
        expected="DATA_LOSS, of block_host_until_done or of get_stream_status",
        found=f"codes {waited.code} and {status.code}",
    )


@callbacks.check("SE-285", "host_callback", level=ROBUST)
def callbacks_of_many_streams(device: Workspace) -> None:
    """Callbacks of many streams are all called.

    Otherwise: What TensorFlow does when the stream gets there never happens, or happens twice.
    Remedy: Let the queue of callbacks grow; drop none.
    """
    streams, calls = [device.stream(497) for _ in range(_STREAMS)], [0] * _STREAMS

    def count(number: int) -> None:  # one stream calls one at a time
        calls[number] += 1

    for _ in range(_EACH):
        for number, stream in enumerate(streams):
            device.call_back(stream, partial(count, number))
    for stream in streams:
        device.done(stream)
    expect_equal(calls, [_EACH] * _STREAMS, "how many callbacks of each stream were called")


@callbacks.check("SE-286", "host_callback", level=ROBUST, severity=WARNING)
def a_callback_enqueues_work(device: Workspace) -> None:
    """A callback may enqueue work on another stream.

    Otherwise: Programs that continue on the device where the host was needed fail.
    Remedy: Hold no lock of the device while a callback runs.
    Source: host recommendation
    """
    stream, other, data = device.stream(), device.stream(), device.bytes(491)
    memory, source = device.filled(bytes(491)), device.buffer(data)
    answers = []

    def enqueue() -> None:
        answers.append(device.memcpy_htod(other, memory, source, 491))

    device.call_back(stream, enqueue)
    device.done(stream)
    expect_equal(len(answers), 1, "how often the callback was called")
    answers[0].must_be_ok()
    device.must_pass(device.marked(other), "a stream that a callback has given work to")
    device.must_hold(memory, data, "what a callback has had copied")


@callbacks.check("SE-287", "host_callback")
def waiting_waits_for_callbacks(device: Workspace) -> None:
    """Waiting for a stream waits for its callbacks too.

    Otherwise: The callback sees, or frees, what the device still works on.
    Remedy: Count a callback as work of its stream until it has returned.
    """
    stream = device.stream(493)
    gate = device.held(stream)
    gate.must_block(lambda: device.block_host_until_done(stream))
