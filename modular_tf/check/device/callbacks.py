"""Checks of host callbacks.

Each check copies a number of bytes of its own, by which a device can tell it from the others.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.device.enqueued_work import enqueue_work
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.device.held_stream import expect_waits, held
from modular_tf.check.expectation import expect, expect_equal

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Stream

suite = Suite("device", "callbacks", source="device.h")

_STREAMS = 8
_EACH = 50


def _stream(device: DeviceGround, n_bytes: int) -> Stream:
    """Return a stream that has copied so many bytes."""
    stream = device.stream()
    enqueue_work(device, stream, n_bytes)
    return stream


@suite.check("SE-278", "host_callback")
def a_callback_is_taken(device: DeviceGround) -> None:
    """host_callback returns non-zero when it has taken the callback.

    Otherwise: TensorFlow takes TF_OK, which is 0, for a failure; the work of the stream fails.
    Remedy: Return 1, not a status code.
    Source: TensorFlow 2.21, observed
    """
    answer = device.subject.host_callback(_stream(device, 461), lambda: None)
    expect(
        answer.ok,
        "host_callback rejects the callback",
        expected="a number that is not 0",
        found=answer.message,
    )


@suite.check("SE-279", "host_callback")
def each_callback_is_called_once(device: DeviceGround) -> None:
    """A callback that was taken is called once.

    Otherwise: What TensorFlow does when the stream gets there never happens, or happens twice.
    Remedy: Call each callback once, whatever else is on the stream.
    """
    stream, calls = _stream(device, 463), [0] * _EACH

    def count(number: int) -> None:
        calls[number] += 1

    for number in range(_EACH):
        device.call_back(stream, partial(count, number))
    device.done(stream)
    prepared(device.subject.synchronize_all_activity(), "synchronize_all_activity")
    wrong = {number: n for number, n in enumerate(calls) if n != 1}
    expect(
        not wrong,
        f"{len(wrong)} of {_EACH} callbacks were not called once",
        expected="each is called once",
        found=", ".join(f"number {number} {n} times" for number, n in list(wrong.items())[:5]),
    )


@suite.check("SE-280", "host_callback")
def callbacks_in_order(device: DeviceGround) -> None:
    """The callbacks of a stream are called in order.

    Otherwise: Those who count on the order of a stream are wrong.
    Remedy: Run callbacks by one thread per stream, or one behind the other.
    """
    stream = _stream(device, 465)
    seen: list[int] = []
    gate = device.gate(stream)
    for number in range(_EACH):
        device.call_back(stream, partial(seen.append, number))
    gate.open()
    device.done(stream)
    expect_equal(seen, list(range(_EACH)), "the order of callbacks")


@suite.check("SE-281", "host_callback")
def a_callback_sees_earlier_work(device: DeviceGround) -> None:
    """A callback is called when the work in front of it is done.

    Otherwise: The callback sees, or frees, what the device still works on.
    Remedy: Enqueue the callback on the stream.
    """
    stream, data, seen = device.stream(), device.bytes(467), bytearray()
    memory, back = device.filled(data), device.buffer(467)
    gate = device.gate(stream)
    prepared(device.subject.memcpy_dtoh(stream, back, memory, 467), "memcpy_dtoh")
    device.call_back(stream, lambda: seen.extend(back.view))
    gate.open()
    device.done(stream)
    expect_bytes(bytes(seen), data, "what a callback saw of a copy in front of it")


@suite.check("SE-282", "host_callback")
def later_work_waits_for_a_callback(device: DeviceGround) -> None:
    """Work behind a callback waits until it has returned.

    Otherwise: The device uses what the callback has not prepared yet.
    Remedy: Go on with the stream when the callback has returned.
    """
    stream, data, memory = device.stream(), device.bytes(473), device.memory(473)
    host = device.buffer(473)
    gate = device.gate(stream)

    def write() -> None:
        host.view[:] = data

    device.call_back(stream, write)
    prepared(device.subject.memcpy_htod(stream, memory, host, 473), "memcpy_htod")
    gate.open()
    device.done(stream)
    expect_bytes(device.content(memory), data, "what a copy behind a callback has taken")


@suite.check("SE-283", "host_callback", level=ROBUST, severity=WARNING)
def enqueueing_does_not_wait(device: DeviceGround) -> None:
    """host_callback does not wait for the callback.

    Otherwise: The thread that feeds the stream stands still while the callback runs.
    Remedy: Call it from a thread of the plugin's.
    """
    gate = device.gate(_stream(device, 479))
    gate.require_callback()
    expect(
        not gate.is_inline,
        "host_callback runs the callback before it returns",
        expected="a thread of the plugin's calls it",
        found="the caller's thread did",
    )


@suite.check("SE-284", "host_callback", level=ROBUST, severity=WARNING)
def a_failed_callback_shows(device: DeviceGround) -> None:
    """A callback that fails shows in the status of its stream, or of who waits for it.

    Otherwise: The failure is lost, and results that it spoiled are taken for good.
    Remedy: Keep the first status that is not OK, for get_stream_status and block_host_until_done.
    """
    stream, subject = _stream(device, 487), device.subject
    failure = (int(Code.DATA_LOSS), "a callback of the kit that fails")
    device.call_back(stream, lambda: failure)
    waited = subject.block_host_until_done(stream)
    status = subject.get_stream_status(stream)
    expect(
        Code.DATA_LOSS in {waited.code, status.code},
        "the status that a callback has set is lost",
        expected="DATA_LOSS, of block_host_until_done or of get_stream_status",
        found=f"codes {waited.code} and {status.code}",
    )


@suite.check("SE-285", "host_callback", level=ROBUST)
def callbacks_of_many_streams(device: DeviceGround) -> None:
    """Callbacks of many streams are all called.

    Otherwise: What TensorFlow does when the stream gets there never happens, or happens twice.
    Remedy: Let the queue of callbacks grow; drop none.
    """
    streams, calls = [_stream(device, 497) for _ in range(_STREAMS)], [0] * _STREAMS

    def count(number: int) -> None:  # one stream calls one at a time
        calls[number] += 1

    for _ in range(_EACH):
        for number, stream in enumerate(streams):
            work = partial(count, number)
            device.call_back(stream, work)
    for stream in streams:
        device.done(stream)
    expect_equal(calls, [_EACH] * _STREAMS, "how many callbacks of each stream were called")


@suite.check("SE-286", "host_callback", level=ROBUST, severity=WARNING)
def a_callback_enqueues_work(device: DeviceGround) -> None:
    """A callback may enqueue work on another stream.

    Otherwise: Programs that continue on the device where the host was needed fail.
    Remedy: Hold no lock of the device while a callback runs.
    Source: host recommendation
    """
    stream, other, data = device.stream(), device.stream(), device.bytes(491)
    memory, source = device.filled(bytes(491)), device.buffer(data)
    answers = []

    def enqueue() -> None:
        answers.append(device.subject.memcpy_htod(other, memory, source, 491))

    device.call_back(stream, enqueue)
    device.done(stream)
    expect_equal(len(answers), 1, "how often the callback was called")
    answers[0].must_be_ok()
    expect_passed(device, marked(device, other), "a stream that a callback has given work to")
    expect_bytes(device.content(memory), data, "what a callback has had copied")


@suite.check("SE-287", "host_callback")
def waiting_waits_for_callbacks(device: DeviceGround) -> None:
    """Waiting for a stream waits for its callbacks too.

    Otherwise: The callback sees, or frees, what the device still works on.
    Remedy: Count a callback as work of its stream until it has returned.
    """
    stream = _stream(device, 493)
    gate = held(device, stream)
    call = lambda: device.subject.block_host_until_done(stream)  # noqa: E731
    expect_waits(gate, call, "block_host_until_done").must_be_ok()
