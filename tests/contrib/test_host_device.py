"""The host device: what it says of itself, and its memory."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import pytest

from tests.contrib.outcome import FAILED_PRECONDITION, INVALID_ARGUMENT, OK
from tests.contrib.plugin_process import PluginProcess, installed_plugin

ALIGNMENT = 256
COMPLETE = 3


def _meminfo(key: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def test_structs_are_filled(device: PluginProcess) -> None:
    facts = device.facts()
    assert facts["null"] == []
    assert {outcome.code for outcome in facts["made"]} == {OK}
    assert (facts["name"], facts["type"], facts["flags"]) == (b"HOST_CPU", b"CPU", (1, 0, 1))
    assert facts["sizes"] == {
        "platform": 35,
        "fns": 88,
        "device": 56,
        "device_fns": 40,
        "executor": 288,
        "timer_fns": 24,
    }
    device.end()


def test_names_come_from_the_machine(device: PluginProcess) -> None:
    facts = device.facts()
    cpuinfo = Path("/proc/cpuinfo").read_text()
    model = facts["hardware_name"].decode()
    assert model in cpuinfo or model == platform.machine()
    assert facts["vendor"] is None or facts["vendor"].decode() in cpuinfo
    assert facts["pci_bus_id"] is None


def test_ordinal_is_kept() -> None:
    process = PluginProcess(
        "device", installed_plugin("host_device"), "3", env={"MTF_HOST_DEVICE_COUNT": "4"}
    )
    assert process.facts()["ordinal"] == 3
    assert process.close() == 0


def test_numa_node_is_the_only_one_or_unknown(device: PluginProcess) -> None:
    online = Path("/sys/devices/system/node/online")
    nodes = online.read_text().strip() if online.exists() else ""
    assert device.measure("get_numa_node") == (int(nodes) if nodes.isdigit() else -1)


@pytest.mark.parametrize("slot", ["get_memory_bandwidth", "get_gflops"])
def test_speeds_are_measured_once(device: PluginProcess, slot: str) -> None:
    first = device.measure(slot)
    assert first > 0
    assert device.measure(slot) == first


@pytest.mark.parametrize(
    ("wish", "code", "number"),
    [
        ("", OK, 1),
        ("0", OK, 0),
        ("3", OK, 3),
        ("1024", OK, 1024),
        ("1025", INVALID_ARGUMENT, 0),
        ("-1", INVALID_ARGUMENT, 0),
        ("2x", INVALID_ARGUMENT, 0),
        ("99999999999999", INVALID_ARGUMENT, 0),
    ],
)
def test_count_from_the_environment(wish: str, code: int, number: int) -> None:
    process = PluginProcess(
        "device", installed_plugin("host_device"), env={"MTF_HOST_DEVICE_COUNT": wish}
    )
    outcome = process.device_count()
    assert (outcome.code, outcome.value) == (code, number)
    assert ("MTF_HOST_DEVICE_COUNT" in outcome.message) == (code != OK)
    assert process.close() == 0


def test_older_host_is_refused() -> None:
    """Its platform struct ends before the field that TensorFlow 2.9 added."""
    process = PluginProcess("device", installed_plugin("host_device"), "0", "34")
    outcome = process.start()
    assert outcome.code == FAILED_PRECONDITION
    assert "2.9" in outcome.message
    assert process.close() == 0


@pytest.mark.parametrize("size", [0, 1, 4, 255, 256, 257, 1 << 20, (4 << 20) + 1])
def test_memory_is_aligned_and_counted(device: PluginProcess, size: int) -> None:
    memory, address = device.allocate(size)
    assert address != 0
    assert address % ALIGNMENT == 0
    assert device.statistics()["bytes_in_use"] == size
    device.deallocate(memory)
    assert device.statistics()["bytes_in_use"] == 0


def test_statistics(device: PluginProcess) -> None:
    sizes = [100, 300, 200]
    memories = [device.allocate(size)[0] for size in sizes]
    for memory in memories[1:]:
        device.deallocate(memory)
    device.allocate(50)
    expected = {
        "struct_size": 96,
        "num_allocs": 4,
        "bytes_in_use": 150,
        "peak_bytes_in_use": 600,
        "largest_alloc_size": 300,
    }
    assert {name: value for name, value in device.statistics().items() if value} == expected


def test_a_large_block_is_used_again_for_the_same_size(device: PluginProcess) -> None:
    size = 64 << 20
    memory, address = device.allocate(size)
    device.deallocate(memory)
    assert device.statistics()["bytes_in_use"] == 0

    other, elsewhere = device.allocate(size // 2)
    again, address_again = device.allocate(size)

    assert address_again == address
    assert not address <= elsewhere < address + size
    assert device.statistics()["bytes_in_use"] == size + size // 2
    device.deallocate(other)
    device.deallocate(again)
    assert device.statistics()["bytes_in_use"] == 0


@pytest.mark.parametrize("size", [(1 << 64) - 1, 1 << 62])
def test_impossible_allocation_gives_null(device: PluginProcess, size: int) -> None:
    assert device.allocate(size)[1] == 0
    assert device.statistics()["num_allocs"] == 0


@pytest.mark.parametrize("address", [None, 4096])
def test_foreign_address_is_left_alone(device: PluginProcess, address: int | None) -> None:
    device.deallocate_address(address)
    assert device.statistics()["bytes_in_use"] == 0


@pytest.mark.parametrize("kind", ["host", "unified"])
def test_host_and_unified_memory(device: PluginProcess, kind: str) -> None:
    assert device.plain_memory(kind, 1 << 16) % ALIGNMENT == 0
    assert device.statistics()["num_allocs"] == 0


def test_usage_is_the_machine_s(device: PluginProcess) -> None:
    known, free, total = device.usage()
    assert known == 1
    assert total == _meminfo("MemTotal")
    assert 0 < free <= total


def test_allocation_from_many_threads(device: PluginProcess) -> None:
    results = device.parallel([[("allocate", 64)] * 200] * 4)
    addresses = [address for result in results for _, address in result]
    assert len(set(addresses)) == 800
    assert device.statistics()["bytes_in_use"] == 800 * 64


def _threads(process: PluginProcess) -> int:
    return len(list(Path(f"/proc/{process.pid}/task").iterdir()))


def test_destroyed_streams_leave_no_threads(device: PluginProcess) -> None:
    before = _threads(device)
    streams = [device.create("stream").value for _ in range(8)]
    assert _threads(device) == before + 8
    for stream in streams:
        device.destroy("stream", stream)
    deadline = time.monotonic() + 30  # the kernel lists a thread a little longer than it lives
    while _threads(device) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert _threads(device) == before


SHORT = b"does not need a thread"


def test_short_work_on_an_idle_stream_is_done_at_once(device: PluginProcess) -> None:
    """Nothing has waited for the stream when the host looks."""
    stream, event = device.create("stream").value, device.create("event").value
    memory, result = device.allocate(len(SHORT))[0], device.host_buffer(bytes(len(SHORT)))
    size = (len(SHORT),)
    device.call("memcpy_htod", stream, memory, device.host_buffer(SHORT), size)
    device.call("memcpy_dtoh", stream, result, memory, size)
    assert device.host_bytes(result) == SHORT
    device.call("memset", stream, memory, (0,), size)
    device.call("sync_memcpy_dtoh", result, memory, size)
    assert device.host_bytes(result) == bytes(len(SHORT))
    assert device.call("record_event", stream, event).code == OK
    assert device.event_status(event) == COMPLETE


@pytest.mark.parametrize("size", [1, 1 << 16, (1 << 16) + 1, 1 << 20])
def test_work_of_any_length_keeps_the_order(device: PluginProcess, size: int) -> None:
    """Short and long by turns, on a stream that is idle and busy by turns."""
    stream, memory = device.create("stream").value, device.allocate(1 << 20)[0]
    result = device.host_buffer(bytes(1 << 20))
    for value in range(1, 101):
        device.call("memset", stream, memory, (value,), (1 << 20,))
        device.call("memset", stream, memory, (value + 1,), (size,))
        device.call("memcpy_dtoh", stream, result, memory, (1,))
    device.call("memcpy_dtoh", stream, result, memory, (1 << 20,))
    assert device.call("synchronize_all_activity").code == OK
    assert device.host_bytes(result) == b"\x65" * size + b"\x64" * ((1 << 20) - size)
