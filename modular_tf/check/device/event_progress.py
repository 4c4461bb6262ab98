"""Following events: whether a stream gets to a mark, and that it does not get there too early."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modular_tf.check.device.ground import prepared
from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Event, Stream

_PASSED_SECONDS = 5.0
"""How long the kit waits for a mark that has nothing to wait for; plugins need microseconds."""

_HELD_SECONDS = 0.03
"""How long a mark is watched that must not be passed. A plugin that keeps the order passes the
check however long or short this is."""

_NAP_SECONDS = 0.001


def marked(ground: DeviceGround, stream: Stream) -> Event:
    """Return a new event that stands for what the stream holds now."""
    event = ground.event()
    prepared(ground.subject.record_event(stream, event), "record_event")
    return event


def status_of(ground: DeviceGround, event: Event) -> int:
    """Return what get_event_status says."""
    return int(ground.subject.get_event_status(event).must_be_ok())


def is_passed(ground: DeviceGround, event: Event) -> bool:
    """Return whether an event is COMPLETE."""
    return status_of(ground, event) == EventStatus.COMPLETE


def gets_passed(ground: DeviceGround, event: Event) -> bool:
    """Wait until an event is COMPLETE, for some time."""
    end = time.monotonic() + _PASSED_SECONDS
    while not is_passed(ground, event):
        if time.monotonic() > end:
            return False
        time.sleep(_NAP_SECONDS)
    return True


def expect_passed(ground: DeviceGround, event: Event, what: str) -> None:
    """Demand that an event becomes COMPLETE.

    Raises:
        Deviation: It does not.
    """
    if not gets_passed(ground, event):
        raise Deviation(
            f"{what} is not complete, although no work is left before it",
            expected="SE_EVENT_COMPLETE",
            found=f"{shown_status(status_of(ground, event))} after {_PASSED_SECONDS:.0f} s",
        )


def expect_passed_meanwhile(ground: DeviceGround, event: Event, what: str) -> None:
    """Demand that an event becomes COMPLETE while other streams are held back.

    Raises:
        Deviation: It does not.
        Blocked: Nor does one of a stream that has nothing to do with the others.
    """
    if gets_passed(ground, event):
        return
    if not is_passed(ground, marked(ground, ground.stream())):
        raise Blocked("every stream waits while one is blocked")
    expect_passed(ground, event, what)


def expect_held(ground: DeviceGround, event: Event, what: str) -> None:
    """Demand that an event is not COMPLETE, while work in front of it is held back.

    Raises:
        Deviation: It is.
    """
    end = time.monotonic() + _HELD_SECONDS
    while time.monotonic() < end:
        if is_passed(ground, event):
            raise Deviation(
                f"{what} is complete, although work before it is still blocked",
                expected="SE_EVENT_PENDING",
                found="SE_EVENT_COMPLETE",
            )
        time.sleep(_NAP_SECONDS)


def shown_status(status: int) -> str:
    """Return the name of an SE_EventStatus, or its number where it has none."""
    try:
        return f"SE_EVENT_{EventStatus(status).name}"
    except ValueError:
        return f"event status {status}, which is none"
