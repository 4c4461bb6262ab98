"""Checks of host callbacks.

Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.device.enqueued_work import enqueue_work
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.device.held_stream import expect_waits, held
from modular_tf.check.expectation import expect, expect_equal
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Stream

CHECKS = CheckList("device", "callbacks")

_NEEDS = ("host_callback",)
_STREAMS = 8
_EACH = 50


def _stream(ground: DeviceGround, n_bytes: int) -> Stream:
    """Return a stream that has copied so many bytes."""
    stream = ground.stream()
    enqueue_work(ground, stream, n_bytes)
    return stream


@CHECKS.check("SE-278", Level.WORKS, needs=_NEEDS)
def a_callback_is_taken(ground: DeviceGround) -> None:
    """The answer is the truth value of the C function."""
    answer = ground.subject.host_callback(_stream(ground, 461), lambda: None)
    expect(
        answer.ok,
        "host_callback rejects the callback",
        expected="a number that is not 0",
        found=answer.message,
    )


@CHECKS.check("SE-279", Level.WORKS, needs=_NEEDS)
def each_callback_is_called_once(ground: DeviceGround) -> None:
    """Tried with 50 callbacks on one stream."""
    stream, calls = _stream(ground, 463), [0] * _EACH

    def count(number: int) -> None:
        calls[number] += 1

    for number in range(_EACH):
        ground.call_back(stream, partial(count, number))
    ground.done(stream)
    prepared(ground.subject.synchronize_all_activity(), "synchronize_all_activity")
    wrong = {number: n for number, n in enumerate(calls) if n != 1}
    expect(
        not wrong,
        f"{len(wrong)} of {_EACH} callbacks were not called once",
        expected="each is called once",
        found=", ".join(f"number {number} {n} times" for number, n in list(wrong.items())[:5]),
    )


@CHECKS.check("SE-280", Level.WORKS, needs=_NEEDS)
def callbacks_in_order(ground: DeviceGround) -> None:
    """50, all enqueued before the first is called, where streams can be held."""
    stream = _stream(ground, 465)
    seen: list[int] = []
    gate = ground.gate(stream)
    for number in range(_EACH):
        ground.call_back(stream, partial(seen.append, number))
    gate.open()
    ground.done(stream)
    expect_equal(seen, list(range(_EACH)), "the order of callbacks")


@CHECKS.check("SE-281", Level.WORKS, needs=_NEEDS)
def a_callback_sees_earlier_work(ground: DeviceGround) -> None:
    """The bytes of a copy to the host, enqueued while the stream is busy."""
    stream, data, seen = ground.stream(), ground.bytes(467), bytearray()
    memory, back = ground.filled(data), ground.buffer(467)
    gate = ground.gate(stream)
    prepared(ground.subject.memcpy_dtoh(stream, back, memory, 467), "memcpy_dtoh")
    ground.call_back(stream, lambda: seen.extend(back.view))
    gate.open()
    ground.done(stream)
    expect_bytes(bytes(seen), data, "what a callback saw of a copy in front of it")


@CHECKS.check("SE-282", Level.WORKS, needs=_NEEDS)
def later_work_waits_for_a_callback(ground: DeviceGround) -> None:
    """The callback writes what a copy behind it takes."""
    stream, data, memory = ground.stream(), ground.bytes(473), ground.memory(473)
    host = ground.buffer(473)
    gate = ground.gate(stream)

    def write() -> None:
        host.view[:] = data

    ground.call_back(stream, write)
    prepared(ground.subject.memcpy_htod(stream, memory, host, 473), "memcpy_htod")
    gate.open()
    ground.done(stream)
    expect_bytes(ground.content(memory), data, "what a copy behind a callback has taken")


@CHECKS.check("SE-283", Level.ROBUST, needs=_NEEDS)
def enqueueing_does_not_wait(ground: DeviceGround) -> None:
    """The callback waits for what its caller does next."""
    gate = ground.gate(_stream(ground, 479))
    gate.require_callback()
    expect(
        not gate.is_inline,
        "host_callback runs the callback before it returns",
        expected="a thread of the plugin's calls it",
        found="the caller's thread did",
    )


@CHECKS.check("SE-284", Level.ROBUST, needs=_NEEDS)
def a_failed_callback_shows(ground: DeviceGround) -> None:
    """In what waits for the stream, or in its status."""
    stream, subject = _stream(ground, 487), ground.subject
    failure = (int(Code.DATA_LOSS), "a callback of the kit that fails")
    ground.call_back(stream, lambda: failure)
    waited = subject.block_host_until_done(stream)
    status = subject.get_stream_status(stream)
    expect(
        Code.DATA_LOSS in {waited.code, status.code},
        "the status that a callback has set is lost",
        expected="DATA_LOSS, of block_host_until_done or of get_stream_status",
        found=f"codes {waited.code} and {status.code}",
    )


@CHECKS.check("SE-285", Level.ROBUST, needs=_NEEDS)
def callbacks_of_many_streams(ground: DeviceGround) -> None:
    """Tried with 50 callbacks on each of eight streams, enqueued in turn."""
    streams, calls = [_stream(ground, 497) for _ in range(_STREAMS)], [0] * _STREAMS

    def count(number: int) -> None:  # one stream calls one at a time
        calls[number] += 1

    for _ in range(_EACH):
        for number, stream in enumerate(streams):
            work = partial(count, number)
            ground.call_back(stream, work)
    for stream in streams:
        ground.done(stream)
    expect_equal(calls, [_EACH] * _STREAMS, "how many callbacks of each stream were called")


@CHECKS.check("SE-286", Level.ROBUST, needs=_NEEDS)
def a_callback_enqueues_work(ground: DeviceGround) -> None:
    """On another stream, which does it."""
    stream, other, data = ground.stream(), ground.stream(), ground.bytes(491)
    memory, source = ground.filled(bytes(491)), ground.buffer(data)
    answers = []

    def enqueue() -> None:
        answers.append(ground.subject.memcpy_htod(other, memory, source, 491))

    ground.call_back(stream, enqueue)
    ground.done(stream)
    expect_equal(len(answers), 1, "how often the callback was called")
    expect_ok(answers[0], "memcpy_htod in a callback")
    expect_passed(ground, marked(ground, other), "a stream that a callback has given work to")
    expect_bytes(ground.content(memory), data, "what a callback has had copied")


@CHECKS.check("SE-287", Level.WORKS, needs=_NEEDS)
def waiting_waits_for_callbacks(ground: DeviceGround) -> None:
    """One that has begun, and does not end before the wait does."""
    stream = _stream(ground, 493)
    gate = held(ground, stream)
    call = lambda: ground.subject.block_host_until_done(stream)  # noqa: E731
    expect_ok(expect_waits(gate, call, "block_host_until_done"), "block_host_until_done")
