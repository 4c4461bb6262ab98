"""Checks of statuses, and of what is left after something failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.expectation import Unsupported, expect, expect_equal
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.raw_subject import RawDeviceSubject
    from modular_tf.check.device.subject import Answer

CHECKS = CheckList("device", "errors")

_LAST_CODE = 16


class _Nowhere:
    """The host's side of a copy of no bytes."""

    address = 0
    view = memoryview(b"")
    memory = None


@CHECKS.check("SE-222", Level.ROBUST, needs=("get_allocator_stats",))
def work_takes_no_memory(ground: DeviceGround) -> None:
    """Copies, streams and events between two looks."""
    memory, host, subject = ground.filled(bytes(373)), ground.buffer(373), ground.subject
    before = subject.get_allocator_stats()
    if before.code == Code.UNAVAILABLE:
        raise Unsupported(before.message)
    prepared(before, "get_allocator_stats")
    for _ in range(10):
        stream = ground.stream()
        prepared(subject.memcpy_htod(stream, memory, host, 373), "memcpy_htod")
        expect_passed(ground, marked(ground, stream), "an event")
    after = subject.get_allocator_stats()
    prepared(after, "get_allocator_stats")
    what = "bytes_in_use after work that allocates nothing"
    expect_equal(after.value.bytes_in_use, before.value.bytes_in_use, what)


def _successes(ground: DeviceGround) -> Iterator[tuple[str, Callable[[], Answer]]]:
    """Give calls that must succeed, one of each slot that has a status."""
    subject, memory, other = ground.subject, ground.filled(bytes(499)), ground.filled(bytes(499))
    stream, second, event, host = (
        ground.stream(),
        ground.stream(),
        ground.event(),
        ground.buffer(499),
    )
    yield "memcpy_htod", lambda: subject.memcpy_htod(stream, memory, host, 499)
    yield "memcpy_dtoh", lambda: subject.memcpy_dtoh(stream, host, memory, 499)
    yield "memcpy_dtod", lambda: subject.memcpy_dtod(stream, other, memory, 499)
    yield "sync_memcpy_htod", lambda: subject.sync_memcpy_htod(memory, host, 499)
    yield "sync_memcpy_dtoh", lambda: subject.sync_memcpy_dtoh(host, memory, 499)
    yield "sync_memcpy_dtod", lambda: subject.sync_memcpy_dtod(other, memory, 499)
    yield "mem_zero", lambda: subject.mem_zero(stream, memory, 499)
    yield "memset", lambda: subject.memset(stream, memory, 1, 499)
    yield "memset32", lambda: subject.memset32(stream, memory, 1, 496)
    yield "create_stream_dependency", lambda: subject.create_stream_dependency(second, stream)
    yield "record_event", lambda: subject.record_event(stream, event)
    yield "wait_for_event", lambda: subject.wait_for_event(second, event)
    yield "block_host_for_event", lambda: subject.block_host_for_event(event)
    yield "block_host_until_done", lambda: subject.block_host_until_done(stream)
    yield "get_stream_status", lambda: subject.get_stream_status(stream)
    yield "synchronize_all_activity", subject.synchronize_all_activity


@CHECKS.check("SE-288", Level.ROBUST, passes=RAW)
def success_sets_ok(ground: DeviceGround) -> None:
    """Every slot is given a status that says UNKNOWN."""
    subject: RawDeviceSubject = ground.subject  # type: ignore[assignment]  # (of the raw pass)
    left = []
    for slot, call in _successes(ground):
        if subject.has(slot):
            with subject.poisoned():
                answer = call()
            if answer.code == Code.UNKNOWN:
                left.append(slot)
    expect(
        not left,
        "success leaves a status as it was",
        expected="status OK",
        found=f"UNKNOWN, as it was before, by {', '.join(left)}",
    )


def _refused(ground: DeviceGround) -> Answer:
    """Return the answer to a call that a plugin has reason to refuse.

    Raises:
        Unsupported: It does not.
    """
    answer = ground.subject.memset32(ground.stream(), ground.memory(64), 1, 10)
    if answer.ok:
        raise Unsupported("no call that the kit knows makes this device fail")
    return answer


@CHECKS.check("SE-289", Level.ROBUST, needs=("memset32",), passes=RAW)
def failures_say_something(ground: DeviceGround) -> None:
    """memset32 of 10 bytes, where it is refused."""
    answer = _refused(ground)
    expect(
        1 <= answer.code <= _LAST_CODE,
        "a failure has an unknown code",
        expected=f"1 to {_LAST_CODE}",
        found=str(answer.code),
    )
    expect(answer.message.strip(), "a failure has no message", found=f"code {answer.code}")


@CHECKS.check("SE-290", Level.ROBUST, needs=("memset32",))
def a_refusal_ends_nothing(ground: DeviceGround) -> None:
    """The stream that was refused something does other work."""
    stream, memory, subject = ground.stream(), ground.filled(bytes(503)), ground.subject
    subject.memset32(stream, memory, 1, 6)
    filled = subject.memset(stream, memory, 0xC3, 503)
    expect_ok(filled, "memset on a stream that has refused something")
    done = subject.block_host_until_done(stream)
    expect_ok(done, "block_host_until_done of a stream that has refused something")
    expect_bytes(ground.content(memory), b"\xc3" * 503, "a memory, after memset,")


@CHECKS.check("SE-291", Level.ROBUST, needs=("host_callback",))
def a_failure_stays_with_its_stream(ground: DeviceGround) -> None:
    """A callback fails on one stream, and another one is well."""
    stream, other, subject = ground.stream(), ground.stream(), ground.subject
    failure = (int(Code.ABORTED), "a callback of the kit that fails")
    ground.call_back(stream, lambda: failure)
    subject.block_host_until_done(stream)
    data, memory = ground.bytes(509), ground.memory(509)
    copied = subject.memcpy_htod(other, memory, ground.buffer(data), 509)
    expect_ok(copied, "memcpy_htod on another stream")
    expect_ok(subject.block_host_until_done(other), "block_host_until_done of another stream")
    expect_ok(subject.get_stream_status(other), "get_stream_status of another stream")
    expect_bytes(ground.content(memory), data, "the target of memcpy_htod on another stream")


@CHECKS.check("SE-292", Level.ROBUST, passes=RAW)
def copies_of_no_bytes_from_nowhere(ground: DeviceGround) -> None:
    """Tried with NULL and 0 bytes."""
    stream, memory, subject = ground.stream(), ground.memory(64), ground.subject
    nowhere = _Nowhere()
    expect_ok(subject.memcpy_htod(stream, memory, nowhere, 0), "memcpy_htod of 0 bytes from NULL")
    expect_ok(subject.memcpy_dtoh(stream, nowhere, memory, 0), "memcpy_dtoh of 0 bytes to NULL")
    expect_ok(subject.sync_memcpy_htod(memory, nowhere, 0), "sync_memcpy_htod of 0 bytes from NULL")
    expect_ok(subject.sync_memcpy_dtoh(nowhere, memory, 0), "sync_memcpy_dtoh of 0 bytes to NULL")
    ground.done(stream)
