"""What only the host device has: facts of the machine, its count of devices, its callbacks.

What every device has to do is the conformance kit's to try (tests/check).
"""

from __future__ import annotations

import ctypes
import platform
import threading
from pathlib import Path

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.device import entry_trial
from modular_tf.check.device.by_slots import SlotMemory
from modular_tf.check.device.operations import OPERATIONS
from tests.contrib.built_plugin import CHECKOUT, installed_plugin
from tests.contrib.raw_plugins import raw_device, raw_library
from tests.fixtures.compiler import compile_object, link_library

LIBRARY = installed_plugin("host_device")


@pytest.fixture
def device():
    with raw_device(LIBRARY) as made:
        yield made


def test_every_slot_is_there(device):
    assert [slot for slot in OPERATIONS if not device.slots.has(slot)] == []
    flags = ("supports_unified_memory", "use_bfc_allocator", "force_memory_growth")
    assert [device.slots.tables.platform.value(flag) for flag in flags] == [1, 0, 1]


def test_facts_are_those_of_the_machine(device):
    facts = device.facts()
    cpuinfo = Path("/proc/cpuinfo").read_text()
    online = Path("/sys/devices/system/node/online")
    nodes = online.read_text().strip() if online.exists() else ""
    memory = Path("/proc/meminfo").read_text().split("MemTotal:")[1].split()[0]
    free, total = device.device_memory_usage().value

    assert facts.hardware_name in cpuinfo or facts.hardware_name == platform.machine()
    assert facts.vendor is None or facts.vendor in cpuinfo
    assert facts.pci_bus_id is None
    assert facts.numa_node == (int(nodes) if nodes.isdigit() else -1)
    assert facts.memory_bandwidth > 0
    assert facts.gflops > 0
    assert 0 < free <= total == int(memory) * 1024


@pytest.mark.parametrize(
    ("wish", "count"),
    [("", 1), ("0", 0), ("1024", 1024), ("1025", None), ("2x", None)],
)
def test_the_environment_has_the_number_of_devices(monkeypatch, wish, count):
    monkeypatch.setenv("MTF_HOST_DEVICE_COUNT", wish)
    answer = raw_library(LIBRARY).platform.device_count()
    if count is None:
        assert (answer.code, answer.value) == (Code.INVALID_ARGUMENT, 0)
        assert "MTF_HOST_DEVICE_COUNT" in answer.message
    else:
        assert (answer.code, answer.value) == (Code.OK, count)


def test_an_older_host_is_refused(monkeypatch):
    """Its platform struct ends before the field that TensorFlow 2.9 added."""
    preset = entry_trial._preset
    monkeypatch.setattr(
        entry_trial, "_preset", lambda part: 34 if part == "platform" else preset(part)
    )
    answer = raw_library(LIBRARY).init().answer
    assert answer.code == Code.FAILED_PRECONDITION
    assert "2.9" in answer.message


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 1])
def test_short_and_long_work_by_turns_keeps_the_order(device, size):
    """On a stream that is idle and busy by turns."""
    whole = 1 << 20
    stream, memory, result = device.stream(), device.memory(whole), device.buffer(whole)
    for value in range(1, 31):
        device.memset(stream, memory, value, whole)
        device.memset(stream, memory, value + 1, size)
        device.memcpy_dtoh(stream, result, memory, 1)
    device.memcpy_dtoh(stream, result, memory, whole)
    device.done(stream)
    assert result.content() == b"\x1f" * size + b"\x1e" * (whole - size)


def test_a_callback_may_destroy_its_own_stream_and_fail(device):
    stream, other = device.create_stream().value, device.stream()
    gate, log = device.held(stream), []

    def destroy():
        device.destroy_stream(stream)
        return Code.INTERNAL, "after the end"

    device.call_back(stream, destroy)
    device.call_back(stream, lambda: log.append(threading.get_ident()))
    device.create_stream_dependency(other, stream).must_be_ok()
    gate.open()
    device.done(other)
    assert len(log) == 1


def test_the_first_failure_of_a_stream_stays_and_is_its_own(device):
    stream, other = device.stream(), device.stream()
    for failure in ((Code.FAILED_PRECONDITION, "first"), (Code.ABORTED, "second")):
        device.call_back(stream, lambda failure=failure: failure)
    for answer in (device.block_host_until_done(stream), device.get_stream_status(stream)):
        assert (answer.code, answer.message) == (Code.FAILED_PRECONDITION, "first")
    device.get_stream_status(other).must_be_ok()


def test_what_was_not_stopped_and_what_is_not_its_own_is_not_counted(device):
    stream, timer = device.stream(), device.timer()
    assert device.nanoseconds(timer).value == 0
    device.start_timer(stream, timer).must_be_ok()
    assert device.nanoseconds(timer).value == 0

    device.deallocate(SlotMemory(4096, 8))
    device.host_block(1 << 16)
    device.unified_block(1 << 16)
    stats = device.get_allocator_stats().value
    assert (stats.num_allocs, stats.bytes_in_use) == (0, 0)


def test_a_backend_may_throw_where_it_has_no_memory():
    """The template of both device plugins, with a backend that neither has."""
    source = Path(__file__).with_name("throwing_backend.cc")
    made = compile_object(source, header_folders=[CHECKOUT / "contrib" / "device_headers"])
    library = ctypes.CDLL(str(link_library("libthrowing_backend.so", [made], cxx=True)))

    assert library.slots_with_memory() == 0
