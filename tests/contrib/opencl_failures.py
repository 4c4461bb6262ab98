"""The OpenCL device while OpenCL fails: a program, into which opencl_ledger.c is preloaded.

Arguments: the plugin, and `events` for what leaves work that is never done. What is not as it
should be raises. Otherwise everything was given back in the end.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from functools import partial

from modular_tf.abi.status_codes import Code
from modular_tf.check.device.by_slots import SlotMemory
from modular_tf.check.device.session import DeviceSession
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from modular_tf.device.streams.event import EventStatus
from tests.contrib.opencl_plugin import PLATFORM
from tests.contrib.raw_plugins import raw_device, raw_library

LIBRARY = sys.argv[1]
OUT_OF_RESOURCES = "CL_OUT_OF_RESOURCES (-5)"
CALLS = [
    ("clEnqueueSVMMemcpy", "memcpy_htod", ("stream", "memory", "buffer", 8)),
    ("clEnqueueSVMMemcpy", "memcpy_dtoh", ("stream", "buffer", "memory", 8)),
    ("clEnqueueSVMMemcpy", "memcpy_dtod", ("stream", "memory", "memory", 8)),
    ("clEnqueueSVMMemcpy", "sync_memcpy_htod", ("memory", "buffer", 8)),
    ("clEnqueueSVMMemcpy", "sync_memcpy_dtoh", ("buffer", "memory", 8)),
    ("clEnqueueSVMMemcpy", "sync_memcpy_dtod", ("memory", "memory", 8)),
    ("clEnqueueSVMMemFill", "mem_zero", ("stream", "memory", 8)),
    ("clEnqueueSVMMemFill", "memset", ("stream", "memory", 1, 8)),
    ("clEnqueueSVMMemFill", "memset32", ("stream", "memory", 1, 8)),
    ("clEnqueueMarkerWithWaitList", "record_event", ("stream", "event")),
    ("clEnqueueMarkerWithWaitList", "start_timer", ("stream", "timer")),
    ("clEnqueueMarkerWithWaitList", "stop_timer", ("stream", "timer")),
    ("clEnqueueMarkerWithWaitList", "create_stream_dependency", ("stream", "stream")),
    ("clEnqueueMarkerWithWaitList", "block_host_until_done", ("stream",)),
    ("clEnqueueMarkerWithWaitList", "synchronize_all_activity", ()),
    ("clWaitForEvents", "block_host_until_done", ("stream",)),
    ("clWaitForEvents", "synchronize_all_activity", ()),
    ("clFlush", "mem_zero", ("stream", "memory", 8)),
    ("clFlush", "record_event", ("stream", "event")),
]


@contextmanager
def environment(**variables):
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update({name: before[name] for name in variables if name in before})


def failing(function, error=-5):
    """Have each call of a function of OpenCL's fail."""
    return environment(OPENCL_FAIL=f"{function}={error}")


def failing_later(function):
    """Have each command of a function accepted, and fail then."""
    return environment(OPENCL_FAIL_LATER=f"{function}=-5")


def code_and_message(answer):
    return answer.code, answer.message


def find_devices():
    """Look for devices: what fails is tried again."""
    with environment(MTF_OPENCL_PLATFORM="Elsewhere"):
        answer = raw_library(LIBRARY).platform.device_count()
    assert (answer.code, answer.value) == (Code.NOT_FOUND, 0), answer
    assert "MTF_OPENCL_PLATFORM names 'Elsewhere'" in answer.message, answer
    assert f"'{PLATFORM}'" in answer.message, answer
    for named in ("", PLATFORM):
        with failing("clGetDeviceIDs", -2), environment(MTF_OPENCL_PLATFORM=named):
            answer = raw_library(LIBRARY).platform.device_count()
        assert (answer.code, answer.value) == (Code.UNAVAILABLE, 0), answer
        assert "clGetDeviceIDs: CL_DEVICE_NOT_AVAILABLE (-2)" in answer.message, answer
    platform = raw_library(LIBRARY).platform
    assert platform.device_count().value == 2
    for ordinal in (2, -1):
        answer = platform.create_device(ordinal)
        assert answer.code == Code.INVALID_ARGUMENT, answer
        assert "found 2" in answer.message, answer
    for function in ("clCreateContext", "clCreateCommandQueueWithProperties"):
        with failing(function):
            answer = platform.create_device(0)
        assert answer.code == Code.RESOURCE_EXHAUSTED, answer
        assert f"{function}: {OUT_OF_RESOURCES}" in answer.message, answer


def report_facts():
    with raw_device(LIBRARY, 1) as device:
        facts = device.facts()
        flags = ("supports_unified_memory", "use_bfc_allocator", "force_memory_growth")
        assert [device.slots.tables.platform.value(flag) for flag in flags] == [1, 1, 1]
        assert (facts.ordinal, facts.pci_bus_id) == (1, None), facts
        assert facts.hardware_name.startswith("pthread"), facts
        assert facts.vendor, facts
        assert (facts.numa_node, facts.memory_bandwidth, facts.gflops) == (-1, -1, -1), facts
        total = device.device_memory_usage().value[1]
        device.memory(1 << 20)
        assert device.device_memory_usage().value == (total - (1 << 20), total)
        assert device.get_allocator_stats().value.bytes_limit == total
    with environment(OPENCL_PCI="1"), raw_device(LIBRARY) as device:
        assert device.facts().pci_bus_id == "0001:02:03.4"


def share_between_devices():
    """A copy on the second device waits for work of the first one, and reads its memory."""
    with raw_device(LIBRARY) as one, raw_device(LIBRARY, 1) as two:
        data, memory, result = one.bytes(4096), one.memory(4096), two.buffer(4096)
        first, second, other = one.stream(), two.stream(), two.memory(4096)
        gate = one.held(first)
        one.memcpy_htod(first, memory, one.buffer(data), 4096)
        two.create_stream_dependency(second, first).must_be_ok()
        two.memcpy_dtod(second, other, memory, 4096).must_be_ok()
        two.memcpy_dtoh(second, result, other, 4096).must_be_ok()
        assert result.content() == bytes(4096)
        gate.open()
        two.done(second)
        assert result.content() == data


def fail_calls(device):
    for function, slot, names in CALLS:
        things = {
            "stream": device.stream(), "event": device.event(), "timer": device.timer(),
            "memory": device.memory(8), "buffer": device.buffer(8),
        }  # fmt: skip
        with failing(function):
            answer = getattr(device, slot)(*(things.get(name, name) for name in names))
        expected = Code.RESOURCE_EXHAUSTED, f"{function}: {OUT_OF_RESOURCES}"
        assert code_and_message(answer) == expected, (function, slot, answer)
    with failing("clEnqueueSVMMemcpy", -9999):
        answer = device.sync_memcpy_htod(device.memory(8), device.buffer(8), 8)
    assert code_and_message(answer) == (Code.INTERNAL, "clEnqueueSVMMemcpy: OpenCL error -9999")


def refuse_callbacks(device):
    """A callback that is refused never runs, and holds nobody."""
    functions = (
        "clCreateUserEvent",
        "clSetEventCallback",
        "clEnqueueBarrierWithWaitList",
        "clEnqueueMarkerWithWaitList",
        "clFlush",
    )
    log = []
    for function in functions:
        stream = device.create_stream().value
        with failing(function):
            assert device.host_callback(stream, lambda: log.append("called")).returned == 0
            if function != "clFlush":
                device.mem_zero(stream, device.memory(8), 8).must_be_ok()
            device.destroy_stream(stream)
    assert log == []


def lack_memory(device):
    with failing("clSVMAlloc", -4):
        assert device.allocate(8).value is None
        assert device.unified_memory_allocate(8).value is None
    for function in ("clCreateBuffer", "clEnqueueMapBuffer"):
        with failing(function, -12):
            assert device.host_memory_allocate(8).value is None
    assert device.get_allocator_stats().value.bytes_in_use == 0


def fail_commands_later(device):
    """A command that fails fails its stream, and no other."""
    source, memory = device.buffer(8), device.memory(8)
    for function, slot, operand in (
        ("clEnqueueSVMMemcpy", device.memcpy_htod, source),
        ("clEnqueueSVMMemFill", device.memset, 1),
    ):
        stream, other = device.stream(), device.stream()
        with failing_later(function):
            slot(stream, memory, operand, 8).must_be_ok()
            for answer in (device.get_stream_status(stream), device.block_host_until_done(stream)):
                assert answer.code == Code.RESOURCE_EXHAUSTED, answer
                assert OUT_OF_RESOURCES in answer.message, answer
            device.get_stream_status(other).must_be_ok()


def fail_events():
    """And leave streams to the end of the process, one with its thread for callbacks."""
    device = DeviceSession(Target(LIBRARY, "device", Pass.RAW)).access
    log, stream = [], device.create_stream().value
    for number in range(50):
        assert device.host_callback(stream, partial(log.append, number)).returned
    device.block_host_until_done(stream).must_be_ok()
    assert log == list(range(50))
    stream, other = device.create_stream().value, device.create_stream().value
    event, timer = device.create_event().value, device.create_timer().value
    assert device.get_event_status(event).value == EventStatus.COMPLETE
    with failing_later("clEnqueueMarkerWithWaitList"):
        device.record_event(stream, event)
        assert device.get_event_status(event).value == EventStatus.ERROR
        assert OUT_OF_RESOURCES in device.block_host_for_event(event).message
        device.wait_for_event(other, event)
        assert device.get_stream_status(stream).code == Code.RESOURCE_EXHAUSTED
        device.start_timer(stream, timer)
        device.stop_timer(stream, timer)
        assert device.nanoseconds(timer).value == 0
    stream = device.create_stream().value
    with failing("clGetEventInfo", -58):
        device.record_event(stream, event)
        assert device.get_event_status(event).value == EventStatus.UNKNOWN
        expected = Code.INVALID_ARGUMENT, "clGetEventInfo: CL_INVALID_EVENT (-58)"
        assert code_and_message(device.get_stream_status(stream)) == expected
    stream = device.create_stream().value
    with failing("clGetEventProfilingInfo", -7):
        device.start_timer(stream, timer)
        device.stop_timer(stream, timer)
        assert device.nanoseconds(timer).value == 0


def refuse_operands(device):
    """Memory that is missing, and ranges that overlap, by OpenCL's own names of the error."""
    device.deallocate(SlotMemory(4096, 8))  # not the device's: left alone
    stream, memory = device.stream(), device.memory(64)
    missing = device.mem_zero(stream, SlotMemory(0, 8), 8)
    overlap = device.memcpy_dtod(stream, memory.part(8, 16), memory, 16)
    assert [code_and_message(answer) for answer in (missing, overlap)] == [
        (Code.INVALID_ARGUMENT, "clEnqueueSVMMemFill: CL_INVALID_VALUE (-30)"),
        (Code.INVALID_ARGUMENT, "clEnqueueSVMMemcpy: CL_MEM_COPY_OVERLAP (-8)"),
    ]
    device.done(stream)


def leave_to_the_end(device):
    """What nobody gives back goes with the device."""
    device.access.allocate(64)
    device.access.host_memory_allocate(64)
    with device.unified_block(8).view as view:
        view[:] = bytes(8)


if sys.argv[2:] == ["events"]:
    fail_events()
else:
    find_devices()
    report_facts()
    share_between_devices()
    for case in (
        fail_calls,
        refuse_callbacks,
        lack_memory,
        fail_commands_later,
        refuse_operands,
        leave_to_the_end,
    ):
        with raw_device(LIBRARY) as one:
            case(one)
print("survived")
