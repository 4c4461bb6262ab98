"""Checks of events.

What holds an event back is a callback that waits; so no check depends on how fast anything is.
Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, WARNING, WORKS, Suite
from modular_tf.check.device.streams import expect_order
from modular_tf.check.device.workspace import expect_bytes, prepared, shown_status
from modular_tf.check.expectation import expect
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from modular_tf.check.device.operations import Event, Stream
    from modular_tf.check.device.waiting import Gate
    from modular_tf.check.device.workspace import Workspace

suite = Suite("device", "events", level=ROBUST, source="device.h")

_NEEDS = ("create_event", "record_event", "get_event_status")
_HOLDS = (*_NEEDS, "host_callback")
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
    status = device.status_of(event)
    expect(
        status == EventStatus.COMPLETE,
        message,
        expected="SE_EVENT_COMPLETE",
        found=shown_status(status),
    )


@suite.check("SE-253", *_NEEDS, level=WORKS)
def an_event_completes(device: Workspace) -> None:
    """An event becomes COMPLETE when its stream has passed it.

    Otherwise: TensorFlow polls the event for ever, and holds what depends on it.
    Remedy: Report SE_EVENT_COMPLETE when the work in front of the event is done.
    Source: TensorFlow 2.21, observed
    """
    device.must_pass(device.marked(device.stream(), 401), "an event behind a copy")


@suite.check("SE-254", *_HOLDS, level=WORKS)
def an_event_is_pending(device: Workspace) -> None:
    """An event is PENDING while work in front of it is outstanding.

    Otherwise: TensorFlow gives buffers back behind events: the device still uses them.
    Remedy: Report SE_EVENT_COMPLETE only when all work in front of the event is done.
    Source: TensorFlow 2.21, observed
    """
    gate, event = _held_event(device, 403)
    device.must_wait(gate, event, "an event")


@suite.check("SE-255", *_HOLDS, level=WORKS)
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
        status = device.status_of(event)
        expect(
            status in (EventStatus.PENDING, EventStatus.COMPLETE),
            f"the status of a recorded event was {shown_status(status)}",
            expected="SE_EVENT_PENDING or SE_EVENT_COMPLETE",
            found=shown_status(status),
        )


@suite.check("SE-256", *_HOLDS, level=WORKS)
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


@suite.check("SE-257", *_NEEDS, level=WORKS)
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


@suite.check("SE-258", *_NEEDS, severity=WARNING)
def an_event_that_was_not_recorded(device: Workspace) -> None:
    """The status of an event that was never recorded is COMPLETE.

    Otherwise: A host that polls it waits for ever, or takes the work for failed.
    Remedy: There is nothing outstanding: report SE_EVENT_COMPLETE.
    Source: host recommendation

    TensorFlow never asks; others do.
    """
    _expect_complete(device, device.event(), "an event that was never recorded is not COMPLETE")


@suite.check("SE-259", "wait_for_event")
def waiting_for_an_event_that_was_not_recorded(device: Workspace) -> None:
    """Waiting for an event that was never recorded holds up nothing.

    Otherwise: The program stands still, with no error.
    Remedy: There is nothing to wait for: do nothing, and return OK.
    """
    what = "a stream that waits for an event that was never recorded"
    device.must_pass(_waiting(device, device.event()), what)


@suite.check("SE-260", "wait_for_event", *_HOLDS, level=WORKS)
def a_stream_waits_for_an_event(device: Workspace) -> None:
    """Work behind wait_for_event waits for the event.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let the stream wait for the mark where the event was recorded.
    """

    def wait(dependent: Stream, other: Stream) -> None:
        device.wait_for_event(dependent, device.marked(other)).must_be_ok()

    expect_order(device, 411, wait)


@suite.check("SE-261", "wait_for_event", *_HOLDS, level=WORKS, severity=WARNING)
def waiting_for_an_event_does_not_block(device: Workspace) -> None:
    """wait_for_event does not block its caller.

    Otherwise: The host stands still where only the stream should wait.
    Remedy: Enqueue the wait on the stream.
    """
    (gate, event), stream = _held_event(device, 413), device.stream()
    gate.must_not_block(lambda: device.wait_for_event(stream, event))


@suite.check("SE-262", *_HOLDS, level=WORKS)
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


@suite.check("SE-263", "wait_for_event", *_HOLDS)
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


@suite.check("SE-264", "block_host_for_event", *_HOLDS, level=WORKS)
def the_host_waits_for_an_event(device: Workspace) -> None:
    """block_host_for_event waits until the event is passed.

    Otherwise: The host reads results that are not there yet.
    Remedy: Wait for the mark where the event was recorded.
    """
    gate, event = _held_event(device, 419)
    gate.must_block(lambda: device.block_host_for_event(event))


@suite.check("SE-265", "block_host_for_event", *_HOLDS, severity=WARNING)
def the_host_waits_for_nothing_behind_an_event(device: Workspace) -> None:
    """block_host_for_event does not wait for work behind the event.

    Otherwise: The program stands still, with no error.
    Remedy: Wait for the mark of the event, not for its stream.
    """
    stream = device.stream()
    event = device.marked(stream, 421)
    gate = device.held(stream)
    gate.must_not_block(lambda: device.block_host_for_event(event))


@suite.check("SE-266", "wait_for_event", *_HOLDS)
def an_event_is_destroyed_while_it_is_pending(device: Workspace) -> None:
    """An event may be destroyed while it is pending; those who wait for it still do.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let those who wait keep the mark alive.
    """
    gate, event = _held_event(device, 423)
    after = _waiting(device, event)
    device.destroy(event)
    device.must_wait(gate, after, "a stream that waits for an event that was destroyed meanwhile")


@suite.check("SE-267", *_HOLDS)
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


@suite.check("SE-268", "wait_for_event", *_HOLDS)
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


@suite.check("SE-269", "wait_for_event", *_NEEDS)
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


@suite.check("SE-270", *_HOLDS)
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


@suite.check("SE-271", "wait_for_event", *_NEEDS)
def a_stream_waits_for_itself(device: Workspace) -> None:
    """A stream that waits for an event of its own continues.

    Otherwise: The program stands still, with no error.
    Remedy: What is in front of the event is before later work anyway: do nothing.
    """
    stream = device.stream()
    event = device.marked(stream)
    device.wait_for_event(stream, event).must_be_ok()
    device.must_pass(device.marked(stream), "a stream that waits for an event of its own")


@suite.check("SE-272", *_HOLDS)
def an_event_goes_to_another_stream(device: Workspace) -> None:
    """An event that is recorded on another stream stands for that stream.

    Otherwise: Waiting ends too late or too early, as events go from stream to stream.
    Remedy: An event stands for the place where it was recorded last.
    """
    gate, event = _held_event(device, 431)
    device.record_event(device.stream(), event).must_be_ok()
    device.must_pass_meanwhile(event, "an event that was recorded on a free stream at last")
    gate.open()
