"""Checks of events.

What holds an event back is a callback that waits; so no check depends on how fast anything is.
Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, WARNING, WORKS, Suite
from modular_tf.check.device.enqueued_work import enqueue_work
from modular_tf.check.device.event_progress import (
    expect_held,
    expect_passed,
    expect_passed_meanwhile,
    marked,
    shown_status,
    status_of,
)
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.device.held_stream import expect_prompt, expect_waits, held
from modular_tf.check.expectation import expect
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround, Gate
    from modular_tf.check.device.subject import Event, Stream

suite = Suite("device", "events", level=ROBUST, source="device.h")

_NEEDS = ("create_event", "record_event", "get_event_status")
_HOLDS = (*_NEEDS, "host_callback")
_MANY = 2000
_POLLS = 200


def _marked_behind(device: DeviceGround, stream: Stream, n_bytes: int) -> Event:
    """Return an event that is recorded behind such work."""
    enqueue_work(device, stream, n_bytes)
    return marked(device, stream)


def _held_event(device: DeviceGround, stream: Stream, n_bytes: int) -> tuple[Gate, Event]:
    """Return an event on a stream that is held back in front of it."""
    gate = held(device, stream)
    return gate, _marked_behind(device, stream, n_bytes)


def _queued_event(device: DeviceGround, stream: Stream, n_bytes: int) -> tuple[Gate, Event]:
    """Return the same, where the check has something to say of streams that run at once too."""
    gate = device.gate(stream)
    return gate, _marked_behind(device, stream, n_bytes)


def _waiting(device: DeviceGround, event: Event) -> Event:
    """Return an event on a new stream that waits for another one, which it must do."""
    stream = device.stream()
    device.subject.wait_for_event(stream, event).must_be_ok()
    return marked(device, stream)


def _expect_complete(device: DeviceGround, event: Event, message: str) -> None:
    """Demand that an event is COMPLETE now."""
    status = status_of(device, event)
    expect(
        status == EventStatus.COMPLETE,
        message,
        expected="SE_EVENT_COMPLETE",
        found=shown_status(status),
    )


@suite.check("SE-253", *_NEEDS, level=WORKS)
def an_event_completes(device: DeviceGround) -> None:
    """An event becomes COMPLETE when its stream has passed it.

    Otherwise: TensorFlow polls the event for ever, and holds what depends on it.
    Remedy: Report SE_EVENT_COMPLETE when the work in front of the event is done.
    Source: TensorFlow 2.21, observed
    """
    stream, event = device.stream(), device.event()
    enqueue_work(device, stream, 401)
    device.subject.record_event(stream, event).must_be_ok()
    expect_passed(device, event, "an event behind a copy")


@suite.check("SE-254", *_HOLDS, level=WORKS)
def an_event_is_pending(device: DeviceGround) -> None:
    """An event is PENDING while work in front of it is outstanding.

    Otherwise: TensorFlow gives buffers back behind events: the device still uses them.
    Remedy: Report SE_EVENT_COMPLETE only when all work in front of the event is done.
    Source: TensorFlow 2.21, observed
    """
    gate, event = _held_event(device, device.stream(), 403)
    expect_held(device, event, "an event")
    gate.open()
    expect_passed(device, event, "an event")


@suite.check("SE-255", *_HOLDS, level=WORKS)
def no_event_is_unknown(device: DeviceGround) -> None:
    """The status of a recorded event is PENDING or COMPLETE, never UNKNOWN or ERROR.

    Otherwise: TensorFlow aborts the whole process.
    Remedy: Report SE_EVENT_PENDING while nothing else is known.
    Source: TensorFlow 2.21, observed
    """
    gate, event = _queued_event(device, device.stream(), 405)
    for look in range(_POLLS):
        if look == _POLLS // 2:
            gate.open()
        status = status_of(device, event)
        allowed = (EventStatus.PENDING, EventStatus.COMPLETE)
        expect(
            status in allowed,
            f"the status of a recorded event was {shown_status(status)}",
            expected="SE_EVENT_PENDING or SE_EVENT_COMPLETE",
            found=shown_status(status),
        )


@suite.check("SE-256", *_HOLDS, level=WORKS)
def a_complete_event_stays_so(device: DeviceGround) -> None:
    """An event that was COMPLETE stays so until it is recorded again.

    Otherwise: Those who poll later wait for work that was done long ago.
    Remedy: Keep the known status; do not ask the stream, which continues.
    """
    stream = device.stream()
    event = _marked_behind(device, stream, 407)
    expect_passed(device, event, "an event")
    gate = device.gate(stream)
    for _ in range(_POLLS):
        _expect_complete(device, event, "an event that was COMPLETE is so no more")
    gate.open()


@suite.check("SE-257", *_NEEDS, level=WORKS)
def a_complete_event_means_that_bytes_are_there(device: DeviceGround) -> None:
    """Behind a COMPLETE event the bytes of copies to the host are there.

    Otherwise: Results are read before they have arrived.
    Remedy: Report SE_EVENT_COMPLETE only when the host can see what was copied.
    Source: TensorFlow 2.21, observed
    """
    stream, data = device.stream(), device.bytes(409)
    memory = device.filled(data)
    for _ in range(20):
        back = device.buffer(409)
        prepared(device.subject.memcpy_dtoh(stream, back, memory, 409), "memcpy_dtoh")
        expect_passed(device, marked(device, stream), "an event behind a copy")
        expect_bytes(back.content(), data, "a host buffer, behind a COMPLETE event,")


@suite.check("SE-258", *_NEEDS, severity=WARNING)
def an_event_that_was_not_recorded(device: DeviceGround) -> None:
    """The status of an event that was never recorded is COMPLETE.

    Otherwise: A host that polls it waits for ever, or takes the work for failed.
    Remedy: There is nothing outstanding: report SE_EVENT_COMPLETE.
    Source: host recommendation

    TensorFlow never asks; others do.
    """
    _expect_complete(device, device.event(), "an event that was never recorded is not COMPLETE")


@suite.check("SE-259", "wait_for_event")
def waiting_for_an_event_that_was_not_recorded(device: DeviceGround) -> None:
    """Waiting for an event that was never recorded holds up nothing.

    Otherwise: The program stands still, with no error.
    Remedy: There is nothing to wait for: do nothing, and return OK.
    """
    after = _waiting(device, device.event())
    expect_passed(device, after, "a stream that waits for an event that was never recorded")


@suite.check("SE-260", "wait_for_event", *_HOLDS, level=WORKS)
def a_stream_waits_for_an_event(device: DeviceGround) -> None:
    """Work behind wait_for_event waits for the event.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let the stream wait for the mark where the event was recorded.
    """
    stream, other, data = device.stream(), device.stream(), device.bytes(411)
    source, target = device.filled(bytes(411)), device.filled(bytes(411))
    gate = held(device, other)
    prepared(device.subject.memcpy_htod(other, source, device.buffer(data), 411), "memcpy_htod")
    event = _marked_behind(device, other, 411)
    device.subject.wait_for_event(stream, event).must_be_ok()
    prepared(device.subject.memcpy_dtod(stream, target, source, 411), "memcpy_dtod")
    expect_held(device, marked(device, stream), "a stream that waits for an event")
    gate.open()
    device.done(stream)
    expect_bytes(device.content(target), data, "what was copied behind wait_for_event")


@suite.check("SE-261", "wait_for_event", *_HOLDS, level=WORKS, severity=WARNING)
def waiting_for_an_event_does_not_block(device: DeviceGround) -> None:
    """wait_for_event does not block its caller.

    Otherwise: The host stands still where only the stream should wait.
    Remedy: Enqueue the wait on the stream.
    """
    gate, event = _held_event(device, device.stream(), 413)
    stream = device.stream()
    call = lambda: device.subject.wait_for_event(stream, event)  # noqa: E731
    expect_prompt(gate, call, "wait_for_event").must_be_ok()


@suite.check("SE-262", *_HOLDS, level=WORKS)
def an_event_is_recorded_again(device: DeviceGround) -> None:
    """An event that is recorded again is PENDING again until its stream gets there.

    Otherwise: TensorFlow uses its events again: TensorFlow gives buffers back behind events: the
    device still uses them.
    Remedy: An event stands for the place where it was recorded last.
    Source: TensorFlow 2.21, observed
    """
    stream = device.stream()
    event = marked(device, stream)
    expect_passed(device, event, "an event")
    gate = held(device, stream)
    enqueue_work(device, stream, 415)
    device.subject.record_event(stream, event).must_be_ok()
    expect_held(device, event, "an event that was recorded again")
    gate.open()
    expect_passed(device, event, "an event that was recorded again")


@suite.check("SE-263", "wait_for_event", *_HOLDS)
def recording_again_disturbs_nobody(device: DeviceGround) -> None:
    """Recording an event again does not disturb those who wait for its former place.

    Otherwise: The program stands still, with no error.
    Remedy: Let those who wait keep the place that they wait for, not the event.
    """
    stream = device.stream()
    first, event = _held_event(device, stream, 417)
    waiting = device.stream()
    device.subject.wait_for_event(waiting, event).must_be_ok()
    second = device.gate(stream)
    device.subject.record_event(stream, event).must_be_ok()
    first.open()
    what = "a stream that waits for the place where an event was recorded first"
    expect_passed_meanwhile(device, marked(device, waiting), what)
    second.open()


@suite.check("SE-264", "block_host_for_event", *_HOLDS, level=WORKS)
def the_host_waits_for_an_event(device: DeviceGround) -> None:
    """block_host_for_event waits until the event is passed.

    Otherwise: The host reads results that are not there yet.
    Remedy: Wait for the mark where the event was recorded.
    """
    gate, event = _held_event(device, device.stream(), 419)
    call = lambda: device.subject.block_host_for_event(event)  # noqa: E731
    expect_waits(gate, call, "block_host_for_event").must_be_ok()


@suite.check("SE-265", "block_host_for_event", *_HOLDS, severity=WARNING)
def the_host_waits_for_nothing_behind_an_event(device: DeviceGround) -> None:
    """block_host_for_event does not wait for work behind the event.

    Otherwise: The program stands still, with no error.
    Remedy: Wait for the mark of the event, not for its stream.
    """
    stream = device.stream()
    event = _marked_behind(device, stream, 421)
    gate = held(device, stream)
    call = lambda: device.subject.block_host_for_event(event)  # noqa: E731
    expect_prompt(gate, call, "block_host_for_event").must_be_ok()


@suite.check("SE-266", "wait_for_event", *_HOLDS)
def an_event_is_destroyed_while_it_is_pending(device: DeviceGround) -> None:
    """An event may be destroyed while it is pending; those who wait for it still do.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Let those who wait keep the mark alive.
    """
    gate, event = _held_event(device, device.stream(), 423)
    after = _waiting(device, event)
    device.destroy(event)
    expect_held(device, after, "a stream that waits for an event that was destroyed meanwhile")
    gate.open()
    expect_passed(device, after, "a stream that waits for an event that was destroyed meanwhile")


@suite.check("SE-267", *_HOLDS)
def many_events(device: DeviceGround) -> None:
    """2000 events can be pending at once.

    Otherwise: TensorFlow makes as many as it has work outstanding: it fails under load.
    Remedy: Take events from the heap, not from a fixed table.
    Source: TensorFlow 2.21, observed
    """
    stream = device.stream()
    gate = device.gate(stream)
    events = []
    many = int(device.target.options.get("many", _MANY))
    for _ in range(many):
        answer = device.subject.create_event()
        answer.must_be_ok()
        device.adopt("event", answer.value)
        events.append(answer.value)
        device.subject.record_event(stream, answer.value).must_be_ok()
    gate.open()
    for number, event in enumerate(events):
        expect_passed(device, event, f"event {number} of {many}")


@suite.check("SE-268", "wait_for_event", *_HOLDS)
def many_streams_wait_for_one_event(device: DeviceGround) -> None:
    """Any number of streams may wait for one event.

    Otherwise: Work runs before what it needs is there: results are wrong now and then.
    Remedy: Wake all who wait when the event is passed, and keep no single waiter.
    """
    gate, event = _held_event(device, device.stream(), 425)
    after = [_waiting(device, event) for _ in range(8)]
    for number, one in enumerate(after):
        expect_held(device, one, f"stream {number} of 8 that wait for one event")
    gate.open()
    for number, one in enumerate(after):
        expect_passed(device, one, f"stream {number} of 8 that wait for one event")


@suite.check("SE-269", "wait_for_event", *_NEEDS)
def two_streams_wait_for_each_other(device: DeviceGround) -> None:
    """Two streams that wait for events of each other go on.

    Otherwise: The program stands still, with no error.
    Remedy: A wait is for the place where the event was recorded, not for its stream.
    """
    one, two = device.stream(), device.stream()
    of_one, of_two = marked(device, one), marked(device, two)
    device.subject.wait_for_event(one, of_two).must_be_ok()
    device.subject.wait_for_event(two, of_one).must_be_ok()
    for stream in (one, two):
        expect_passed(device, marked(device, stream), "a stream of two that wait for each other")


@suite.check("SE-270", *_HOLDS)
def events_are_passed_in_order(device: DeviceGround) -> None:
    """Where an event is COMPLETE, the earlier events of its stream are too.

    Otherwise: TensorFlow looks at the oldest event of a stream first, and holds what lies behind
    it.
    Remedy: Pass the events of a stream in order.
    Source: TensorFlow 2.21, observed
    """
    stream = device.stream()
    gate, first = _queued_event(device, stream, 427)
    last = _marked_behind(device, stream, 429)
    gate.open()
    expect_passed(device, last, "an event")
    _expect_complete(device, first, "an event is not COMPLETE, though a later one is")


@suite.check("SE-271", "wait_for_event", *_NEEDS)
def a_stream_waits_for_itself(device: DeviceGround) -> None:
    """A stream that waits for an event of its own continues.

    Otherwise: The program stands still, with no error.
    Remedy: What is in front of the event is before later work anyway: do nothing.
    """
    stream = device.stream()
    event = marked(device, stream)
    device.subject.wait_for_event(stream, event).must_be_ok()
    expect_passed(device, marked(device, stream), "a stream that waits for an event of its own")


@suite.check("SE-272", *_HOLDS)
def an_event_goes_to_another_stream(device: DeviceGround) -> None:
    """An event that is recorded on another stream stands for that stream.

    Otherwise: Waiting ends too late or too early, as events go from stream to stream.
    Remedy: An event stands for the place where it was recorded last.
    """
    gate, event = _held_event(device, device.stream(), 431)
    device.subject.record_event(device.stream(), event).must_be_ok()
    expect_passed_meanwhile(device, event, "an event that was recorded on a free stream at last")
    gate.open()
