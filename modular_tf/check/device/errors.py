"""Checks of statuses, and of what is left after something failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import RAW, ROBUST, WARNING, Suite
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.expectation import Unsupported, expect, expect_equal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.raw_subject import RawDeviceSubject
    from modular_tf.check.device.subject import Answer

suite = Suite("device", "errors", level=ROBUST, source="device.h")

_LAST_CODE = 16


class _Nowhere:
    """The host's side of a copy of no bytes."""

    address = 0
    view = memoryview(b"")
    memory = None


@suite.check("SE-222", "get_allocator_stats", severity=WARNING)
def work_takes_no_memory(device: DeviceGround) -> None:
    """Copies, streams and events leave the memory in use as it was.

    Otherwise: The figures that users plan memory by grow without reason.
    Remedy: Count device memory in allocate and deallocate only.
    """
    memory, host, subject = device.filled(bytes(373)), device.buffer(373), device.subject
    before = subject.get_allocator_stats()
    if before.code == Code.UNAVAILABLE:
        raise Unsupported(before.message)
    prepared(before, "get_allocator_stats")
    for _ in range(10):
        stream = device.stream()
        prepared(subject.memcpy_htod(stream, memory, host, 373), "memcpy_htod")
        expect_passed(device, marked(device, stream), "an event")
    after = subject.get_allocator_stats()
    prepared(after, "get_allocator_stats")
    what = "bytes_in_use after work that allocates nothing"
    expect_equal(after.value.bytes_in_use, before.value.bytes_in_use, what)


def _successes(device: DeviceGround) -> Iterator[tuple[str, Callable[[], Answer]]]:
    """Give calls that must succeed, one of each slot that has a status."""
    subject, memory, other = device.subject, device.filled(bytes(499)), device.filled(bytes(499))
    stream, second, event, host = (
        device.stream(),
        device.stream(),
        device.event(),
        device.buffer(499),
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


@suite.check("SE-288", ways=RAW, severity=WARNING)
def success_sets_ok(device: DeviceGround) -> None:
    """An operation that succeeds sets its status to OK, whatever was in it.

    Otherwise: A host that uses a status again takes a success for the failure before.
    Remedy: Call TF_SetStatus(status, TF_OK, "") at the end of each function.
    Source: status.h
    """
    subject: RawDeviceSubject = device.subject  # type: ignore[assignment]  # (of the raw pass)
    left = []
    for slot, call in _successes(device):
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


def _refused(device: DeviceGround) -> Answer:
    """Return the answer to a call that a plugin has reason to refuse.

    Raises:
        Unsupported: It does not.
    """
    answer = device.subject.memset32(device.stream(), device.memory(64), 1, 10)
    if answer.ok:
        raise Unsupported("no call that the kit knows makes this device fail")
    return answer


@suite.check("SE-289", "memset32", ways=RAW, severity=WARNING)
def failures_say_something(device: DeviceGround) -> None:
    """A failure has a code from 1 to 16, and a message.

    Otherwise: Users see an empty error, or an unknown number.
    Remedy: Set one of the TF_Code numbers, and say in words what is wrong.
    Source: status.h
    """
    answer = _refused(device)
    expect(
        1 <= answer.code <= _LAST_CODE,
        "a failure has an unknown code",
        expected=f"1 to {_LAST_CODE}",
        found=str(answer.code),
    )
    expect(answer.message.strip(), "a failure has no message", found=f"code {answer.code}")


@suite.check("SE-290", "memset32")
def a_refusal_ends_nothing(device: DeviceGround) -> None:
    """After an operation that was refused the stream and the device go on.

    Otherwise: One mistake of one program ends the work of all others on the device.
    Remedy: Check arguments before anything is enqueued.
    Source: TensorFlow 2.21, observed
    """
    stream, memory, subject = device.stream(), device.filled(bytes(503)), device.subject
    subject.memset32(stream, memory, 1, 6)
    subject.memset(stream, memory, 0xC3, 503).must_be_ok()
    subject.block_host_until_done(stream).must_be_ok()
    expect_bytes(device.content(memory), b"\xc3" * 503, "a memory, after memset,")


@suite.check("SE-291", "host_callback")
def a_failure_stays_with_its_stream(device: DeviceGround) -> None:
    """A failure on one stream does not show on another.

    Otherwise: Programs fail for what others did.
    Remedy: Keep failures with the stream.
    """
    stream, other, subject = device.stream(), device.stream(), device.subject
    failure = (int(Code.ABORTED), "a callback of the kit that fails")
    device.call_back(stream, lambda: failure)
    subject.block_host_until_done(stream)
    data, memory = device.bytes(509), device.memory(509)
    subject.memcpy_htod(other, memory, device.buffer(data), 509).must_be_ok()
    subject.block_host_until_done(other).must_be_ok()
    subject.get_stream_status(other).must_be_ok()
    expect_bytes(device.content(memory), data, "the target of memcpy_htod on another stream")


@suite.check("SE-292", ways=RAW, severity=WARNING)
def copies_of_no_bytes_from_nowhere(device: DeviceGround) -> None:
    """Copies of no bytes take NULL on the host's side.

    Otherwise: Empty arrays have no address: programs with them fail or crash.
    Remedy: Return OK where the size is 0, before any pointer is looked at.
    Source: host recommendation
    """
    stream, memory, subject = device.stream(), device.memory(64), device.subject
    nowhere = _Nowhere()
    subject.memcpy_htod(stream, memory, nowhere, 0).must_be_ok()
    subject.memcpy_dtoh(stream, nowhere, memory, 0).must_be_ok()
    subject.sync_memcpy_htod(memory, nowhere, 0).must_be_ok()
    subject.sync_memcpy_dtoh(nowhere, memory, 0).must_be_ok()
    device.done(stream)
