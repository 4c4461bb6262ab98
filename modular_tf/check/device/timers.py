"""Checks of timers. What is compared is causal: no check depends on how fast anything is."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, WORKS, Suite
from modular_tf.check.device.enqueued_work import enqueue_work
from modular_tf.check.device.held_stream import held
from modular_tf.check.expectation import Blocked, Unsupported, expect

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Stream, Timer

suite = Suite("device", "timers", level=ROBUST, source="device.h")

_NEEDS = ("create_timer", "destroy_timer", "start_timer", "stop_timer", "nanoseconds")
_WITH_CALLBACKS = (*_NEEDS, "host_callback")
_MILLISECOND = 1_000_000
_CLOCKS_APART = 0.1
"""By how much two clocks may differ over such a time."""


def _start(device: DeviceGround, stream: Stream, n_bytes: int) -> Timer:
    """Start a new timer behind a little work."""
    timer = device.timer()
    enqueue_work(device, stream, n_bytes)
    device.subject.start_timer(stream, timer).must_be_ok()
    return timer


def _stop(device: DeviceGround, stream: Stream, timer: Timer) -> None:
    device.subject.stop_timer(stream, timer).must_be_ok()


def _read(device: DeviceGround, stream: Stream, timer: Timer) -> int:
    device.done(stream)
    answer = device.subject.nanoseconds(timer)
    answer.must_be_ok()
    return int(answer.value)


def _keep_busy(device: DeviceGround, stream: Stream, milliseconds: int) -> threading.Event:
    """Keep a stream busy for so long or longer, and return what is set then."""
    over = threading.Event()

    def work() -> None:
        time.sleep(milliseconds / 1000)
        over.set()

    device.call_back(stream, work)
    return over


def _pass_time(device: DeviceGround, stream: Stream, milliseconds: int) -> None:
    """Let so long or longer pass for a stream, which is idle where its callbacks do not work."""
    try:
        _keep_busy(device, stream, milliseconds)
    except (Blocked, Unsupported):
        time.sleep(milliseconds / 1000)


def _expect_at_most(found: int, elapsed: int) -> None:
    most = int(elapsed * (1 + _CLOCKS_APART)) + _MILLISECOND
    expect(
        found <= most,
        "a timer shows more time than has passed",
        expected=f"at most {most} ns",
        found=f"{found} ns",
    )


@suite.check("SE-273", *_NEEDS, level=WORKS)
def a_timer_shows_no_more_than_has_passed(device: DeviceGround) -> None:
    """A timer shows no more time than has passed.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Count nanoseconds. Where the end came before the start by rounding, report 0.
    """
    begun, stream = time.monotonic_ns(), device.stream()
    timer = _start(device, stream, 441)
    _stop(device, stream, timer)
    found = _read(device, stream, timer)
    _expect_at_most(found, time.monotonic_ns() - begun)


@suite.check("SE-274", *_WITH_CALLBACKS, level=WORKS)
def a_timer_shows_what_the_work_took(device: DeviceGround) -> None:
    """A timer shows at least the time that the work between start and stop took.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Count nanoseconds. Read the clock when the stream gets there, not in the call.
    """
    stream = device.stream()
    timer = _start(device, stream, 443)
    over = _keep_busy(device, stream, 5)
    _stop(device, stream, timer)
    found, least = _read(device, stream, timer), int(5 * _MILLISECOND * (1 - _CLOCKS_APART))
    if not over.is_set():
        raise Blocked("the stream was done before its callback was")
    expect(
        found >= least,
        "a timer shows less time than the work took",
        expected=f"at least {least} ns",
        found=f"{found} ns",
    )


@suite.check("SE-275", *_WITH_CALLBACKS)
def a_timer_measures_anew(device: DeviceGround) -> None:
    """A timer that is started again measures anew.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Let start_timer forget what was measured before.
    """
    stream = device.stream()
    timer = _start(device, stream, 445)
    _pass_time(device, stream, 100)
    _stop(device, stream, timer)
    _read(device, stream, timer)
    begun = time.monotonic_ns()
    device.subject.start_timer(stream, timer).must_be_ok()
    _stop(device, stream, timer)
    found = _read(device, stream, timer)
    _expect_at_most(found, time.monotonic_ns() - begun)


@suite.check("SE-276", *_WITH_CALLBACKS)
def a_timer_round_another(device: DeviceGround) -> None:
    """A timer round another one shows no less than that.

    Otherwise: Those who choose the fastest algorithm by the timer choose the wrong one.
    Remedy: Give each timer its own marks.
    """
    stream = device.stream()
    outer = _start(device, stream, 447)
    inner = _start(device, stream, 448)
    _pass_time(device, stream, 2)
    _stop(device, stream, inner)
    _stop(device, stream, outer)
    around, within = _read(device, stream, outer), device.subject.nanoseconds(inner).value
    expect(
        around >= within,
        "a timer round another one shows less",
        expected=f"at least {within} ns",
        found=f"{around} ns",
    )


@suite.check("SE-277", *_WITH_CALLBACKS)
def a_timer_is_destroyed_early(device: DeviceGround) -> None:
    """A timer may be destroyed while its stream has not got to it.

    Otherwise: The stream writes into freed memory, and the process crashes.
    Remedy: Keep alive what the stream has yet to write, until it has.
    """
    stream = device.stream()
    gate = held(device, stream)
    timer = _start(device, stream, 449)
    _stop(device, stream, timer)
    device.destroy(timer)
    gate.open()
    device.subject.block_host_until_done(stream).must_be_ok()
