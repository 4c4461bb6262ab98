"""The OpenCL device when OpenCL fails, and what it owes OpenCL in the end.

A library that is preloaded stands in for OpenCL's functions; see opencl_ledger.c.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.contrib.opencl_plugin import ON_POCL, TWO_DEVICES
from tests.contrib.outcome import INVALID_ARGUMENT, OK, RESOURCE_EXHAUSTED
from tests.contrib.plugin_process import PluginProcess
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    Starter = Callable[..., AbstractContextManager[PluginProcess]]

ERROR, COMPLETE = 1, 3
UNAVAILABLE, INTERNAL = 14, 13
OUT_OF_RESOURCES = "CL_OUT_OF_RESOURCES (-5)"


@pytest.fixture(scope="session")
def ledger() -> Path:
    """The library to preload."""
    made = compile_object(Path(__file__).with_name("opencl_ledger.c"))
    return link_library("libopencl_ledger.so", [made], ["-ldl"])


@pytest.fixture
def start(ledger: Path, opencl_library: Path) -> Starter:
    """Start a process whose OpenCL behaves as the variables say; it must end in order."""

    @contextmanager
    def started(**variables: str) -> Iterator[PluginProcess]:
        env = {**ON_POCL, "LD_PRELOAD": str(ledger), **variables}
        process = PluginProcess("device", opencl_library, env=env)
        yield process
        assert process.close() == 0

    return started


def _ledger_of(file: Path) -> dict[str, tuple[int, int]]:
    lines = (line.split() for line in file.read_text().splitlines())
    return {kind: (int(taken), int(given)) for kind, taken, given in lines}


def _work(device: PluginProcess) -> None:
    """One of everything."""
    one, two = (device.create("stream").value for _ in range(2))
    event, timer = device.create("event").value, device.create("timer").value
    memory, host = device.allocate(100)[0], device.pinned(bytes(100))
    device.call("start_timer", one, timer)
    for _ in range(3):
        device.call("memcpy_htod", one, memory, host, (100,))
        device.call("mem_zero", one, memory, (100,))
        device.call("record_event", one, event)
        device.call("wait_for_event", two, event)
        device.note(two, "called")
        device.call("create_stream_dependency", one, two)
    device.call("stop_timer", one, timer)
    device.call("sync_memcpy_dtoh", host, memory, (100,))
    assert device.nanoseconds(timer) > 0
    assert device.call("synchronize_all_activity").code == OK
    assert device.call("block_host_for_event", event).code == OK
    device.unpin(host, 100)
    device.deallocate(memory)
    device.plain_memory("unified", 100)
    device.destroy("timer", timer)
    device.destroy("event", event)
    for stream in (one, two):
        device.destroy("stream", stream)


def test_everything_taken_is_given_back(start: Starter, tmp_path: Path) -> None:
    file = tmp_path / "ledger"
    with start(OPENCL_LEDGER=str(file), **TWO_DEVICES) as device:
        _work(device)
        device.switch(1)
        _work(device)
        device.allocate(64)  # left to the device's end, as is the next
        device.pinned(bytes(64))
        device.end()
    counts = _ledger_of(file)
    assert {kind: taken - given for kind, (taken, given) in counts.items()} == dict.fromkeys(
        ("context", "queue", "buffer", "event", "shared", "mapping"), 0
    )
    assert all(taken > 0 for taken, _ in counts.values()), counts


def test_streams_end_while_work_waits(start: Starter, tmp_path: Path) -> None:
    """Destroyed from inside a callback: OpenCL and the thread that is left finish the rest."""
    file = tmp_path / "ledger"
    with start(OPENCL_LEDGER=str(file)) as device:
        stream, other = (device.create("stream").value for _ in range(2))
        gate = device.hold(stream)
        device.destroy_inside(stream)
        for _ in range(3):
            device.note(stream, "behind")
        device.call("create_stream_dependency", other, stream)
        device.release(gate)
        assert device.call("block_host_until_done", other).code == OK
        device.destroy("stream", other)
        device.end()
        assert device.log() == ["behind"] * 3
    assert (taken_given := _ledger_of(file)["event"])[0] == taken_given[1]


def test_place_on_the_bus(start: Starter) -> None:
    with start(OPENCL_PCI="1") as device:
        assert device.facts()["pci_bus_id"] == b"0001:02:03.4"


@pytest.mark.parametrize("function", ["clCreateContext", "clCreateCommandQueueWithProperties"])
def test_device_that_cannot_be_made(start: Starter, function: str) -> None:
    with start(OPENCL_FAIL=f"{function}=-5") as device:
        made = device.facts()["made"][0]
        assert made[:2] == (RESOURCE_EXHAUSTED, f"{function}: {OUT_OF_RESOURCES}")


def test_driver_without_shared_memory_has_no_devices(start: Starter) -> None:
    with start(OPENCL_FAIL="clGetDeviceInfo=-30") as device:
        assert device.device_count() == (OK, "", 0)


@pytest.mark.parametrize("named", ["", ON_POCL["MTF_OPENCL_PLATFORM"]])
def test_driver_that_fails_is_named(start: Starter, named: str) -> None:
    with start(OPENCL_FAIL="clGetDeviceIDs=-2", MTF_OPENCL_PLATFORM=named) as device:
        assert device.start().code == OK
        outcome = device.device_count()
        assert (outcome.code, outcome.value) == (UNAVAILABLE, 0)
        assert "clGetDeviceIDs: CL_DEVICE_NOT_AVAILABLE (-2)" in outcome.message


@pytest.mark.parametrize(
    ("function", "slot", "arguments"),
    [
        ("clEnqueueSVMMemcpy", "memcpy_htod", ["stream", "memory", "buffer", (8,)]),
        ("clEnqueueSVMMemcpy", "memcpy_dtoh", ["stream", "buffer", "memory", (8,)]),
        ("clEnqueueSVMMemcpy", "memcpy_dtod", ["stream", "memory", "memory", (8,)]),
        ("clEnqueueSVMMemcpy", "sync_memcpy_htod", ["memory", "buffer", (8,)]),
        ("clEnqueueSVMMemcpy", "sync_memcpy_dtoh", ["buffer", "memory", (8,)]),
        ("clEnqueueSVMMemcpy", "sync_memcpy_dtod", ["memory", "memory", (8,)]),
        ("clEnqueueSVMMemFill", "mem_zero", ["stream", "memory", (8,)]),
        ("clEnqueueSVMMemFill", "memset", ["stream", "memory", (1,), (8,)]),
        ("clEnqueueSVMMemFill", "memset32", ["stream", "memory", (1,), (8,)]),
        ("clEnqueueMarkerWithWaitList", "record_event", ["stream", "event"]),
        ("clEnqueueMarkerWithWaitList", "start_timer", ["stream", "timer"]),
        ("clEnqueueMarkerWithWaitList", "stop_timer", ["stream", "timer"]),
        ("clEnqueueMarkerWithWaitList", "create_stream_dependency", ["stream", "stream"]),
        ("clEnqueueMarkerWithWaitList", "block_host_until_done", ["stream"]),
        ("clEnqueueMarkerWithWaitList", "synchronize_all_activity", []),
        ("clWaitForEvents", "block_host_until_done", ["stream"]),
        ("clWaitForEvents", "synchronize_all_activity", []),
        ("clFlush", "mem_zero", ["stream", "memory", (8,)]),
        ("clFlush", "record_event", ["stream", "event"]),
    ],
)
def test_failing_function(start: Starter, function: str, slot: str, arguments: list[str]) -> None:
    with start(OPENCL_FAIL=f"{function}=-5") as device:
        things = {name: device.create(name).value for name in ("stream", "event", "timer")}
        things |= {"memory": device.allocate(8)[0], "buffer": device.host_buffer(bytes(8))}
        passed = [things.get(name, name) for name in arguments]
        outcome = device.call(slot, *passed)
        assert outcome[:2] == (RESOURCE_EXHAUSTED, f"{function}: {OUT_OF_RESOURCES}")


def test_callback_without_a_gate_is_refused(start: Starter) -> None:
    with start(OPENCL_FAIL="clCreateUserEvent=-6") as device:
        stream = device.create("stream").value
        assert device.note(stream, "never") == 0
        assert device.call("block_host_until_done", stream).code == OK
        assert device.log() == []


@pytest.mark.parametrize(
    "function",
    ["clSetEventCallback", "clEnqueueBarrierWithWaitList", "clEnqueueMarkerWithWaitList"],
)
def test_callback_that_is_not_taken_holds_nobody(start: Starter, function: str) -> None:
    with start(OPENCL_FAIL=f"{function}=-5") as device:
        stream, memory = device.create("stream").value, device.allocate(8)[0]
        assert device.note(stream, "never") == 0
        assert device.call("mem_zero", stream, memory, (8,)).code == OK
        device.destroy("stream", stream)
        assert device.log() == []


def test_callback_that_is_refused_never_runs(start: Starter) -> None:
    with start(OPENCL_FAIL="clFlush=-5") as device:
        stream = device.create("stream").value
        assert device.note(stream, "never") == 0
        device.destroy("stream", stream)
        assert device.log() == []


def test_memory_that_is_not_to_be_had(start: Starter) -> None:
    with start(OPENCL_FAIL="clSVMAlloc=-4") as device:
        assert device.allocate(8)[1] == 0
        assert device.plain_memory_address("unified", 8) is None
        assert device.statistics()["bytes_in_use"] == 0


@pytest.mark.parametrize("function", ["clCreateBuffer", "clEnqueueMapBuffer"])
def test_host_memory_that_is_not_to_be_had(start: Starter, tmp_path: Path, function: str) -> None:
    file = tmp_path / "ledger"
    with start(OPENCL_FAIL=f"{function}=-12", OPENCL_LEDGER=str(file)) as device:
        assert device.plain_memory_address("host", 8) is None
    taken, given = _ledger_of(file)["buffer"]
    assert taken == given


@pytest.mark.parametrize("slot", ["memcpy_htod", "memset"])
def test_command_that_fails_later_fails_its_stream(start: Starter, slot: str) -> None:
    function = {"memcpy_htod": "clEnqueueSVMMemcpy", "memset": "clEnqueueSVMMemFill"}[slot]
    with start(OPENCL_FAIL_LATER=f"{function}=-5") as device:
        stream, other = (device.create("stream").value for _ in range(2))
        operand = device.host_buffer(bytes(8)) if slot == "memcpy_htod" else (1,)
        memory = device.allocate(8)[0]
        assert device.call(slot, stream, memory, operand, (8,)).code == OK
        for question in ("get_stream_status", "block_host_until_done"):
            outcome = device.call(question, stream)
            assert outcome.code == RESOURCE_EXHAUSTED
            assert OUT_OF_RESOURCES in outcome.message
        assert device.call("get_stream_status", other).code == OK


def test_event_that_fails(start: Starter) -> None:
    with start(OPENCL_FAIL_LATER="clEnqueueMarkerWithWaitList=-5") as device:
        stream, other = (device.create("stream").value for _ in range(2))
        event, timer = device.create("event").value, device.create("timer").value
        assert device.event_status(event) == COMPLETE
        device.call("record_event", stream, event)
        assert device.event_status(event) == ERROR
        assert OUT_OF_RESOURCES in device.call("block_host_for_event", event).message
        device.call("wait_for_event", other, event)
        assert device.call("get_stream_status", stream).code == RESOURCE_EXHAUSTED
        device.call("start_timer", stream, timer)
        device.call("stop_timer", stream, timer)
        assert device.nanoseconds(timer) == 0


def test_event_that_cannot_be_asked(start: Starter) -> None:
    with start(OPENCL_FAIL="clGetEventInfo=-58") as device:
        stream, event = device.create("stream").value, device.create("event").value
        device.call("record_event", stream, event)
        assert device.event_status(event) == 0
        outcome = device.call("get_stream_status", stream)
        assert outcome[:2] == (INVALID_ARGUMENT, "clGetEventInfo: CL_INVALID_EVENT (-58)")


def test_time_that_is_not_to_be_had(start: Starter) -> None:
    with start(OPENCL_FAIL="clGetEventProfilingInfo=-7") as device:
        stream, timer = device.create("stream").value, device.create("timer").value
        device.call("start_timer", stream, timer)
        device.call("stop_timer", stream, timer)
        assert device.nanoseconds(timer) == 0


def test_error_without_a_name(start: Starter) -> None:
    with start(OPENCL_FAIL="clEnqueueSVMMemcpy=-9999") as device:
        memory, buffer = device.allocate(8)[0], device.host_buffer(bytes(8))
        outcome = device.call("sync_memcpy_htod", memory, buffer, (8,))
        assert outcome[:2] == (INTERNAL, "clEnqueueSVMMemcpy: OpenCL error -9999")
