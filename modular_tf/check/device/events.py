"""Checks of events.

What holds an event back is a callback that waits; so no check depends on how fast anything is.
Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
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
from modular_tf.check.level import Level
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround, Gate
    from modular_tf.check.device.subject import Event, Stream

CHECKS = CheckList("device", "events")

_NEEDS = ("create_event", "record_event", "get_event_status")
_HOLDS = (*_NEEDS, "host_callback")
_MANY = 2000
_POLLS = 200


def _marked_behind(ground: DeviceGround, stream: Stream, n_bytes: int) -> Event:
    """Return an event that is recorded behind such work."""
    enqueue_work(ground, stream, n_bytes)
    return marked(ground, stream)


def _held_event(ground: DeviceGround, stream: Stream, n_bytes: int) -> tuple[Gate, Event]:
    """Return an event on a stream that is held back in front of it."""
    gate = held(ground, stream)
    return gate, _marked_behind(ground, stream, n_bytes)


def _queued_event(ground: DeviceGround, stream: Stream, n_bytes: int) -> tuple[Gate, Event]:
    """Return the same, where the check has something to say of streams that run at once too."""
    gate = ground.gate(stream)
    return gate, _marked_behind(ground, stream, n_bytes)


def _waiting(ground: DeviceGround, event: Event) -> Event:
    """Return an event on a new stream that waits for another one, which it must do."""
    stream = ground.stream()
    expect_ok(ground.subject.wait_for_event(stream, event), "wait_for_event")
    return marked(ground, stream)


def _expect_complete(ground: DeviceGround, event: Event, message: str) -> None:
    """Demand that an event is COMPLETE now."""
    status = status_of(ground, event)
    expect(
        status == EventStatus.COMPLETE,
        message,
        expected="SE_EVENT_COMPLETE",
        found=shown_status(status),
    )


@CHECKS.check("SE-253", Level.WORKS, needs=_NEEDS)
def an_event_completes(ground: DeviceGround) -> None:
    """On a stream with a little work."""
    stream, event = ground.stream(), ground.event()
    enqueue_work(ground, stream, 401)
    expect_ok(ground.subject.record_event(stream, event), "record_event")
    expect_passed(ground, event, "an event behind a copy")


@CHECKS.check("SE-254", Level.WORKS, needs=_HOLDS)
def an_event_is_pending(ground: DeviceGround) -> None:
    """While the stream is held back in front of it, and COMPLETE afterwards."""
    gate, event = _held_event(ground, ground.stream(), 403)
    expect_held(ground, event, "an event")
    gate.open()
    expect_passed(ground, event, "an event")


@CHECKS.check("SE-255", Level.WORKS, needs=_HOLDS)
def no_event_is_unknown(ground: DeviceGround) -> None:
    """Looked at before and after its stream gets there."""
    gate, event = _queued_event(ground, ground.stream(), 405)
    for look in range(_POLLS):
        if look == _POLLS // 2:
            gate.open()
        status = status_of(ground, event)
        allowed = (EventStatus.PENDING, EventStatus.COMPLETE)
        expect(
            status in allowed,
            f"the status of a recorded event was {shown_status(status)}",
            expected="SE_EVENT_PENDING or SE_EVENT_COMPLETE",
            found=shown_status(status),
        )


@CHECKS.check("SE-256", Level.WORKS, needs=_HOLDS)
def a_complete_event_stays_so(ground: DeviceGround) -> None:
    """While its stream is held back behind it."""
    stream = ground.stream()
    event = _marked_behind(ground, stream, 407)
    expect_passed(ground, event, "an event")
    gate = ground.gate(stream)
    for _ in range(_POLLS):
        _expect_complete(ground, event, "an event that was COMPLETE is so no more")
    gate.open()


@CHECKS.check("SE-257", Level.WORKS, needs=_NEEDS)
def a_complete_event_means_that_bytes_are_there(ground: DeviceGround) -> None:
    """Of a copy to the host, many times."""
    stream, data = ground.stream(), ground.bytes(409)
    memory = ground.filled(data)
    for _ in range(20):
        back = ground.buffer(409)
        prepared(ground.subject.memcpy_dtoh(stream, back, memory, 409), "memcpy_dtoh")
        expect_passed(ground, marked(ground, stream), "an event behind a copy")
        expect_bytes(back.content(), data, "a host buffer, behind a COMPLETE event,")


@CHECKS.check("SE-258", Level.ROBUST, needs=_NEEDS)
def an_event_that_was_not_recorded(ground: DeviceGround) -> None:
    """TensorFlow never asks; others do."""
    _expect_complete(ground, ground.event(), "an event that was never recorded is not COMPLETE")


@CHECKS.check("SE-259", Level.ROBUST, needs=("wait_for_event",))
def waiting_for_an_event_that_was_not_recorded(ground: DeviceGround) -> None:
    """Tried with work behind the wait, which must finish."""
    after = _waiting(ground, ground.event())
    expect_passed(ground, after, "a stream that waits for an event that was never recorded")


@CHECKS.check("SE-260", Level.WORKS, needs=("wait_for_event", *_HOLDS))
def a_stream_waits_for_an_event(ground: DeviceGround) -> None:
    """Its own event is not passed, and it sees what was written in front of the other."""
    stream, other, data = ground.stream(), ground.stream(), ground.bytes(411)
    source, target = ground.filled(bytes(411)), ground.filled(bytes(411))
    gate = held(ground, other)
    prepared(ground.subject.memcpy_htod(other, source, ground.buffer(data), 411), "memcpy_htod")
    event = _marked_behind(ground, other, 411)
    expect_ok(ground.subject.wait_for_event(stream, event), "wait_for_event")
    prepared(ground.subject.memcpy_dtod(stream, target, source, 411), "memcpy_dtod")
    expect_held(ground, marked(ground, stream), "a stream that waits for an event")
    gate.open()
    ground.done(stream)
    expect_bytes(ground.content(target), data, "what was copied behind wait_for_event")


@CHECKS.check("SE-261", Level.WORKS, needs=("wait_for_event", *_HOLDS))
def waiting_for_an_event_does_not_block(ground: DeviceGround) -> None:
    """It is called while the event cannot be passed."""
    gate, event = _held_event(ground, ground.stream(), 413)
    stream = ground.stream()
    call = lambda: ground.subject.wait_for_event(stream, event)  # noqa: E731
    expect_ok(expect_prompt(gate, call, "wait_for_event"), "wait_for_event")


@CHECKS.check("SE-262", Level.WORKS, needs=_HOLDS)
def an_event_is_recorded_again(ground: DeviceGround) -> None:
    """It was COMPLETE, and is PENDING again."""
    stream = ground.stream()
    event = marked(ground, stream)
    expect_passed(ground, event, "an event")
    gate = held(ground, stream)
    enqueue_work(ground, stream, 415)
    expect_ok(ground.subject.record_event(stream, event), "record_event of a recorded event")
    expect_held(ground, event, "an event that was recorded again")
    gate.open()
    expect_passed(ground, event, "an event that was recorded again")


@CHECKS.check("SE-263", Level.ROBUST, needs=("wait_for_event", *_HOLDS))
def recording_again_disturbs_nobody(ground: DeviceGround) -> None:
    """Who waits for the former place goes on, while the new one is held back."""
    stream = ground.stream()
    first, event = _held_event(ground, stream, 417)
    waiting = ground.stream()
    expect_ok(ground.subject.wait_for_event(waiting, event), "wait_for_event")
    second = ground.gate(stream)
    expect_ok(ground.subject.record_event(stream, event), "record_event of a recorded event")
    first.open()
    what = "a stream that waits for the place where an event was recorded first"
    expect_passed_meanwhile(ground, marked(ground, waiting), what)
    second.open()


@CHECKS.check("SE-264", Level.WORKS, needs=("block_host_for_event", *_HOLDS))
def the_host_waits_for_an_event(ground: DeviceGround) -> None:
    """It is still waiting when the stream is let go."""
    gate, event = _held_event(ground, ground.stream(), 419)
    call = lambda: ground.subject.block_host_for_event(event)  # noqa: E731
    expect_ok(expect_waits(gate, call, "block_host_for_event"), "block_host_for_event")


@CHECKS.check("SE-265", Level.ROBUST, needs=("block_host_for_event", *_HOLDS))
def the_host_waits_for_nothing_behind_an_event(ground: DeviceGround) -> None:
    """The stream is held back behind the event."""
    stream = ground.stream()
    event = _marked_behind(ground, stream, 421)
    gate = held(ground, stream)
    call = lambda: ground.subject.block_host_for_event(event)  # noqa: E731
    expect_ok(expect_prompt(gate, call, "block_host_for_event"), "block_host_for_event")


@CHECKS.check("SE-266", Level.ROBUST, needs=("wait_for_event", *_HOLDS))
def an_event_is_destroyed_while_it_is_pending(ground: DeviceGround) -> None:
    """A stream that waits for it still does, and goes on."""
    gate, event = _held_event(ground, ground.stream(), 423)
    after = _waiting(ground, event)
    ground.destroy(event)
    expect_held(ground, after, "a stream that waits for an event that was destroyed meanwhile")
    gate.open()
    expect_passed(ground, after, "a stream that waits for an event that was destroyed meanwhile")


@CHECKS.check("SE-267", Level.ROBUST, needs=_HOLDS)
def many_events(ground: DeviceGround) -> None:
    """All are pending at once, where streams can be held, and all are passed."""
    stream = ground.stream()
    gate = ground.gate(stream)
    events = []
    many = int(ground.target.options.get("many", _MANY))
    for number in range(many):
        answer = ground.subject.create_event()
        expect_ok(answer, f"create_event, while {number} are pending,")
        ground.adopt("event", answer.value)
        events.append(answer.value)
        expect_ok(ground.subject.record_event(stream, answer.value), "record_event")
    gate.open()
    for number, event in enumerate(events):
        expect_passed(ground, event, f"event {number} of {many}")


@CHECKS.check("SE-268", Level.ROBUST, needs=("wait_for_event", *_HOLDS))
def many_streams_wait_for_one_event(ground: DeviceGround) -> None:
    """Eight of them, none of which goes on too early, and all go on."""
    gate, event = _held_event(ground, ground.stream(), 425)
    after = [_waiting(ground, event) for _ in range(8)]
    for number, one in enumerate(after):
        expect_held(ground, one, f"stream {number} of 8 that wait for one event")
    gate.open()
    for number, one in enumerate(after):
        expect_passed(ground, one, f"stream {number} of 8 that wait for one event")


@CHECKS.check("SE-269", Level.ROBUST, needs=("wait_for_event", *_NEEDS))
def two_streams_wait_for_each_other(ground: DeviceGround) -> None:
    """For events that were recorded before."""
    one, two = ground.stream(), ground.stream()
    of_one, of_two = marked(ground, one), marked(ground, two)
    expect_ok(ground.subject.wait_for_event(one, of_two), "wait_for_event")
    expect_ok(ground.subject.wait_for_event(two, of_one), "wait_for_event of each other")
    for stream in (one, two):
        expect_passed(ground, marked(ground, stream), "a stream of two that wait for each other")


@CHECKS.check("SE-270", Level.ROBUST, needs=_HOLDS)
def events_are_passed_in_order(ground: DeviceGround) -> None:
    """The earlier one is asked right after the later one was COMPLETE."""
    stream = ground.stream()
    gate, first = _queued_event(ground, stream, 427)
    last = _marked_behind(ground, stream, 429)
    gate.open()
    expect_passed(ground, last, "an event")
    _expect_complete(ground, first, "an event is not COMPLETE, though a later one is")


@CHECKS.check("SE-271", Level.ROBUST, needs=("wait_for_event", *_NEEDS))
def a_stream_waits_for_itself(ground: DeviceGround) -> None:
    """Tried with an event that the same stream recorded."""
    stream = ground.stream()
    event = marked(ground, stream)
    expect_ok(ground.subject.wait_for_event(stream, event), "wait_for_event of the stream's own")
    expect_passed(ground, marked(ground, stream), "a stream that waits for an event of its own")


@CHECKS.check("SE-272", Level.ROBUST, needs=_HOLDS)
def an_event_goes_to_another_stream(ground: DeviceGround) -> None:
    """It was recorded on a stream that is held back, and then on one that is not."""
    gate, event = _held_event(ground, ground.stream(), 431)
    expect_ok(ground.subject.record_event(ground.stream(), event), "record_event on another stream")
    expect_passed_meanwhile(ground, event, "an event that was recorded on a free stream at last")
    gate.open()
