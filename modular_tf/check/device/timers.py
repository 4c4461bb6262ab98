"""Checks of timers. What is compared is causal: no check depends on how fast anything is."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.device.enqueued_work import enqueue_work
from modular_tf.check.device.held_stream import held
from modular_tf.check.expectation import Blocked, Unsupported, expect
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Stream, Timer

CHECKS = CheckList("device", "timers")

_NEEDS = ("create_timer", "destroy_timer", "start_timer", "stop_timer", "nanoseconds")
_WITH_CALLBACKS = (*_NEEDS, "host_callback")
_MILLISECOND = 1_000_000
_CLOCKS_APART = 0.1
"""By how much two clocks may differ over such a time."""


def _start(ground: DeviceGround, stream: Stream, n_bytes: int) -> Timer:
    """Start a new timer behind a little work."""
    timer = ground.timer()
    enqueue_work(ground, stream, n_bytes)
    expect_ok(ground.subject.start_timer(stream, timer), "start_timer")
    return timer


def _stop(ground: DeviceGround, stream: Stream, timer: Timer) -> None:
    expect_ok(ground.subject.stop_timer(stream, timer), "stop_timer")


def _read(ground: DeviceGround, stream: Stream, timer: Timer) -> int:
    ground.done(stream)
    answer = ground.subject.nanoseconds(timer)
    expect_ok(answer, "nanoseconds")
    return int(answer.value)


def _keep_busy(ground: DeviceGround, stream: Stream, milliseconds: int) -> threading.Event:
    """Keep a stream busy for so long or longer, and return what is set then."""
    over = threading.Event()

    def work() -> None:
        time.sleep(milliseconds / 1000)
        over.set()

    ground.call_back(stream, work)
    return over


def _pass_time(ground: DeviceGround, stream: Stream, milliseconds: int) -> None:
    """Let so long or longer pass for a stream, which is idle where its callbacks do not work."""
    try:
        _keep_busy(ground, stream, milliseconds)
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


@CHECKS.check("SE-273", Level.WORKS, needs=_NEEDS)
def a_timer_shows_no_more_than_has_passed(ground: DeviceGround) -> None:
    """Round no work: it may be next to nothing, and no negative number."""
    begun, stream = time.monotonic_ns(), ground.stream()
    timer = _start(ground, stream, 441)
    _stop(ground, stream, timer)
    found = _read(ground, stream, timer)
    _expect_at_most(found, time.monotonic_ns() - begun)


@CHECKS.check("SE-274", Level.WORKS, needs=_WITH_CALLBACKS)
def a_timer_shows_what_the_work_took(ground: DeviceGround) -> None:
    """Tried with a callback that sleeps 5 ms."""
    stream = ground.stream()
    timer = _start(ground, stream, 443)
    over = _keep_busy(ground, stream, 5)
    _stop(ground, stream, timer)
    found, least = _read(ground, stream, timer), int(5 * _MILLISECOND * (1 - _CLOCKS_APART))
    if not over.is_set():
        raise Blocked("the stream was done before its callback was")
    expect(
        found >= least,
        "a timer shows less time than the work took",
        expected=f"at least {least} ns",
        found=f"{found} ns",
    )


@CHECKS.check("SE-275", Level.ROBUST, needs=_WITH_CALLBACKS)
def a_timer_measures_anew(ground: DeviceGround) -> None:
    """Tried with long work at first, then with none."""
    stream = ground.stream()
    timer = _start(ground, stream, 445)
    _pass_time(ground, stream, 100)
    _stop(ground, stream, timer)
    _read(ground, stream, timer)
    begun = time.monotonic_ns()
    expect_ok(ground.subject.start_timer(stream, timer), "start_timer, the second time,")
    _stop(ground, stream, timer)
    found = _read(ground, stream, timer)
    _expect_at_most(found, time.monotonic_ns() - begun)


@CHECKS.check("SE-276", Level.ROBUST, needs=_WITH_CALLBACKS)
def a_timer_round_another(ground: DeviceGround) -> None:
    """Tried with two timers on one stream."""
    stream = ground.stream()
    outer = _start(ground, stream, 447)
    inner = _start(ground, stream, 448)
    _pass_time(ground, stream, 2)
    _stop(ground, stream, inner)
    _stop(ground, stream, outer)
    around, within = _read(ground, stream, outer), ground.subject.nanoseconds(inner).value
    expect(
        around >= within,
        "a timer round another one shows less",
        expected=f"at least {within} ns",
        found=f"{around} ns",
    )


@CHECKS.check("SE-277", Level.ROBUST, needs=_WITH_CALLBACKS)
def a_timer_is_destroyed_early(ground: DeviceGround) -> None:
    """The stream has not got to its start."""
    stream = ground.stream()
    gate = held(ground, stream)
    timer = _start(ground, stream, 449)
    _stop(ground, stream, timer)
    ground.destroy(timer)
    gate.open()
    answer = ground.subject.block_host_until_done(stream)
    expect_ok(answer, "block_host_until_done, with a timer that was destroyed,")
