"""Streams of the device plugins: order, dependencies, events, timers, callbacks, copies and fills.

`hold` puts a callback into a stream that waits for `release`, so that the tests decide what has
happened, not the scheduler.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.contrib.outcome import INVALID_ARGUMENT, OK

if TYPE_CHECKING:
    from tests.contrib.plugin_process import PluginProcess

PENDING, COMPLETE = 2, 3
PATTERN = bytes(range(256)) * 40


def _done(device: PluginProcess, stream: int) -> None:
    assert device.call("block_host_until_done", stream).code == OK


@pytest.fixture(params=["host_device", "opencl_device"])
def device(request: pytest.FixtureRequest) -> PluginProcess:
    """A device of either plugin."""
    process: PluginProcess = request.getfixturevalue(request.param)
    return process


@pytest.fixture
def stream(device: PluginProcess) -> int:
    """A stream that the process's end takes with it."""
    number: int = device.create("stream").value
    return number


@pytest.fixture
def other(device: PluginProcess) -> int:
    """A second one."""
    number: int = device.create("stream").value
    return number


def test_callbacks_run_in_order(device: PluginProcess, stream: int) -> None:
    answers = [device.note(stream, str(number)) for number in range(200)]
    _done(device, stream)
    assert device.log() == [str(number) for number in range(200)]
    assert all(answers), "host_callback says non-zero for success"


def test_enqueueing_does_not_wait(device: PluginProcess, stream: int) -> None:
    gate = device.hold(stream)
    device.note(stream, "behind")
    assert device.log() == []
    device.release(gate)
    _done(device, stream)
    assert device.log() == ["behind"]


def test_streams_are_independent(device: PluginProcess, stream: int, other: int) -> None:
    gate = device.hold(stream)
    device.note(other, "other")
    _done(device, other)
    assert device.log() == ["other"]
    device.release(gate)


def test_dependency(device: PluginProcess, stream: int, other: int) -> None:
    gate = device.hold(stream)
    device.note(stream, "first")
    assert device.call("create_stream_dependency", other, stream).code == OK
    device.note(other, "second")
    device.note(stream, "not waited for")
    event = device.create("event").value
    device.call("record_event", other, event)
    assert device.event_status(event) == PENDING
    device.release(gate)
    _done(device, other)
    _done(device, stream)
    log = device.log()
    assert log.index("first") < log.index("second")
    assert sorted(log) == ["first", "not waited for", "second"]


def test_dependency_on_itself_and_on_an_idle_stream(
    device: PluginProcess, stream: int, other: int
) -> None:
    for dependency in (stream, other):
        assert device.call("create_stream_dependency", stream, dependency).code == OK
    device.note(stream, "on")
    _done(device, stream)
    assert device.log() == ["on"]


def test_event_status(device: PluginProcess, stream: int) -> None:
    event = device.create("event").value
    assert device.event_status(event) == COMPLETE, "never recorded: nothing is outstanding"
    gate = device.hold(stream)
    assert device.call("record_event", stream, event).code == OK
    assert device.event_status(event) == PENDING
    device.release(gate)
    assert device.call("block_host_for_event", event).code == OK
    assert device.event_status(event) == COMPLETE


def test_event_orders_streams(device: PluginProcess, stream: int, other: int) -> None:
    event = device.create("event").value
    gate = device.hold(stream)
    device.note(stream, "first")
    device.call("record_event", stream, event)
    assert device.call("wait_for_event", other, event).code == OK
    device.note(other, "second")
    device.release(gate)
    _done(device, other)
    assert device.log() == ["first", "second"]


def test_event_recorded_again(device: PluginProcess, stream: int, other: int) -> None:
    """Who waits for the earlier record is not held up by the later one."""
    event = device.create("event").value
    device.call("record_event", stream, event)
    device.call("wait_for_event", other, event)
    gate = device.hold(stream)
    device.call("record_event", stream, event)
    device.note(other, "through")
    _done(device, other)
    assert device.log() == ["through"]
    assert device.event_status(event) == PENDING
    device.release(gate)
    device.call("block_host_for_event", event)


def test_destroyed_event_still_releases_its_waiters(
    device: PluginProcess, stream: int, other: int
) -> None:
    event = device.create("event").value
    gate = device.hold(stream)
    device.call("record_event", stream, event)
    device.call("wait_for_event", other, event)
    device.note(other, "released")
    device.destroy("event", event)
    device.release(gate)
    _done(device, other)
    assert device.log() == ["released"]


def test_unrecorded_event_holds_nobody(device: PluginProcess, stream: int) -> None:
    event = device.create("event").value
    assert device.call("wait_for_event", stream, event).code == OK
    assert device.call("block_host_for_event", event).code == OK
    _done(device, stream)


def test_synchronize_waits_for_all(device: PluginProcess, stream: int, other: int) -> None:
    gates = [device.hold(number) for number in (stream, other)]
    for number in (stream, other):
        device.note(number, "done")
    for gate in gates:
        device.release(gate)
    assert device.call("synchronize_all_activity").code == OK
    assert device.log() == ["done", "done"]


def test_destroying_a_stream_runs_what_is_queued(device: PluginProcess, stream: int) -> None:
    gate = device.hold(stream)
    device.note(stream, "last words")
    device.release(gate)
    device.destroy("stream", stream)
    assert device.log() == ["last words"]


def test_callback_may_destroy_its_own_stream(
    device: PluginProcess, stream: int, other: int
) -> None:
    """It fails after that, which must not touch what is gone."""
    gate = device.hold(stream)
    device.destroy_inside(stream)
    device.note(stream, "behind")
    device.call("create_stream_dependency", other, stream)
    device.release(gate)
    _done(device, other)
    assert device.log() == ["behind"]


def test_failing_callback_fails_the_stream(device: PluginProcess, stream: int, other: int) -> None:
    assert device.call("get_stream_status", stream).code == OK
    device.fail(stream, 9, "first")
    device.fail(stream, 10, "second")
    device.note(stream, "later work runs")
    assert device.call("block_host_until_done", stream)[:2] == (9, "first")
    assert device.call("get_stream_status", stream)[:2] == (9, "first")
    assert device.call("get_stream_status", other).code == OK
    assert device.log() == ["later work runs"]


def test_timer(device: PluginProcess, stream: int) -> None:
    timer = device.create("timer").value
    assert device.nanoseconds(timer) == 0
    assert device.call("start_timer", stream, timer).code == OK
    assert device.nanoseconds(timer) == 0
    for number in range(10):
        device.note(stream, str(number))
    assert device.call("stop_timer", stream, timer).code == OK
    first = device.nanoseconds(timer)
    assert first > 0
    assert device.log() == [str(number) for number in range(10)], "it waits for the stream"
    assert device.nanoseconds(timer) == first


def test_timer_destroyed_before_the_stream_gets_there(device: PluginProcess, stream: int) -> None:
    timer = device.create("timer").value
    gate = device.hold(stream)
    device.call("start_timer", stream, timer)
    device.call("stop_timer", stream, timer)
    device.destroy("timer", timer)
    device.release(gate)
    _done(device, stream)


@pytest.mark.parametrize("on_stream", [True, False])
def test_copies_round_trip(device: PluginProcess, stream: int, on_stream: bool) -> None:
    source, target = device.host_buffer(PATTERN), device.host_buffer(bytes(len(PATTERN)))
    memories = [device.allocate(len(PATTERN))[0] for _ in range(2)]
    size = (len(PATTERN),)
    steps = [
        ("memcpy_htod", memories[0], source),
        ("memcpy_dtod", memories[1], memories[0]),
        ("memcpy_dtoh", target, memories[1]),
    ]
    for slot, to, from_ in steps:
        if on_stream:
            assert device.call(slot, stream, to, from_, size).code == OK
        else:
            assert device.call(f"sync_{slot}", to, from_, size).code == OK
    _done(device, stream)
    assert device.host_bytes(target) == PATTERN


def test_a_gibibyte_goes_there_and_back(device: PluginProcess, stream: int) -> None:
    block = random.Random(1).randbytes((1 << 20) + 7)  # no power of two: a shift would be seen
    assert device.carries(stream, block, 1 << 30)


def test_copies_wait_for_their_stream(device: PluginProcess, stream: int) -> None:
    source, memory = device.host_buffer(PATTERN), device.allocate(len(PATTERN))[0]
    target, size = device.host_buffer(bytes(len(PATTERN))), (len(PATTERN),)
    device.call("sync_memcpy_htod", memory, source, size)
    gate = device.hold(stream)
    device.call("memcpy_dtoh", stream, target, memory, size)
    assert device.host_bytes(target) == bytes(len(PATTERN))
    device.release(gate)
    _done(device, stream)
    assert device.host_bytes(target) == PATTERN


@pytest.mark.parametrize(
    ("slot", "arguments", "expected"),
    [
        ("mem_zero", [(8,)], bytes(8) + PATTERN[8:]),
        ("memset", [(0xAB,), (6,)], b"\xab" * 6 + PATTERN[6:]),
        ("memset32", [(0x01020304,), (8,)], b"\x04\x03\x02\x01" * 2 + PATTERN[8:]),
        ("mem_zero", [(0,)], PATTERN),
        ("memset32", [(7,), (0,)], PATTERN),
    ],
)
def test_fills(
    device: PluginProcess, stream: int, slot: str, arguments: list[tuple[int]], expected: bytes
) -> None:
    memory, buffer = device.allocate(len(PATTERN))[0], device.host_buffer(PATTERN)
    device.call("sync_memcpy_htod", memory, buffer, (len(PATTERN),))
    assert device.call(slot, stream, memory, *arguments).code == OK
    _done(device, stream)
    device.call("sync_memcpy_dtoh", buffer, memory, (len(PATTERN),))
    assert device.host_bytes(buffer) == expected


def test_memset32_of_part_of_a_word_is_refused(device: PluginProcess, stream: int) -> None:
    memory, _ = device.allocate(16)
    assert device.call("memset32", stream, memory, (1,), (6,)).code == INVALID_ARGUMENT


def test_streams_fed_by_many_threads(device: PluginProcess, stream: int, other: int) -> None:
    rounds = 100
    jobs = [[("note", number, f"{job}")] * rounds for job, number in enumerate((stream, other) * 2)]
    device.parallel(jobs)
    assert device.call("synchronize_all_activity").code == OK
    log = device.log()
    assert {text: log.count(text) for text in "0123"} == dict.fromkeys("0123", rounds)
