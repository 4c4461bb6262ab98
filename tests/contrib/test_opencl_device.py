"""The OpenCL device on PoCL: what it says of itself, its memory, its copies.

`test_device_streams` covers what streams, events, timers and callbacks must do on any device.
"""

from __future__ import annotations

import random
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.contrib.built_plugin import CHECKOUT
from tests.contrib.opencl_plugin import ON_POCL, PLATFORM, TWO_DEVICES
from tests.contrib.outcome import (
    FAILED_PRECONDITION,
    INVALID_ARGUMENT,
    NOT_FOUND,
    OK,
)
from tests.contrib.plugin_process import PluginProcess
from tests.fixtures.machine import DEVELOPER_ENVIRONMENT

if TYPE_CHECKING:
    from pathlib import Path

ALIGNMENT = 256


@pytest.fixture
def device(opencl_device: PluginProcess) -> PluginProcess:
    """The device of this file."""
    return opencl_device


@pytest.fixture
def stream(device: PluginProcess) -> int:
    """A stream that the process's end takes with it."""
    number: int = device.create("stream").value
    return number


def _data(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def _done(device: PluginProcess, stream: int) -> None:
    assert device.call("block_host_until_done", stream) == (OK, "", None)


def test_structs_are_filled(device: PluginProcess) -> None:
    facts = device.facts()
    assert facts["null"] == []
    assert {outcome.code for outcome in facts["made"]} == {OK}
    assert (facts["name"], facts["type"], facts["flags"]) == (b"OPENCL", b"OPENCL", (1, 1, 1))
    assert facts["sizes"] == {
        "platform": 35,
        "fns": 88,
        "device": 56,
        "device_fns": 40,
        "executor": 288,
        "timer_fns": 24,
    }
    device.end()


def test_names_come_from_the_driver(device: PluginProcess) -> None:
    facts = device.facts()
    assert facts["hardware_name"].startswith(b"pthread")
    assert facts["vendor"]
    assert facts["pci_bus_id"] is None


@pytest.mark.parametrize("slot", ["get_numa_node", "get_memory_bandwidth", "get_gflops"])
def test_what_opencl_does_not_tell_is_not_made_up(device: PluginProcess, slot: str) -> None:
    assert device.measure(slot) == -1


def test_memory_usage_is_the_driver_s_total_less_our_own(device: PluginProcess) -> None:
    known, free, total = device.usage()
    assert known == 1
    assert 0 < free == total
    device.allocate(1 << 20)
    assert device.usage() == (1, total - (1 << 20), total)
    assert device.statistics()["has_bytes_limit"] == 1
    assert device.statistics()["bytes_limit"] == total


# -- which devices there are ----------------------------------------------------------------------


def test_without_a_driver_there_are_no_devices(opencl_library: Path) -> None:
    none = {"OCL_ICD_VENDORS": "/dev/null/none"}
    process = PluginProcess("device", opencl_library, env=none)
    assert process.start().code == OK
    assert process.device_count() == (OK, "", 0)
    assert process.facts()["flags"][0] == 0
    [made, *_] = process.facts()["made"]
    assert (made.code, "found 0" in made.message) == (INVALID_ARGUMENT, True)
    assert process.close() == 0


def test_an_unknown_platform_is_an_error_that_names_those_there_are(opencl_library: Path) -> None:
    process = PluginProcess("device", opencl_library, env={"MTF_OPENCL_PLATFORM": "Elsewhere"})
    outcome = process.device_count()
    assert (outcome.code, outcome.value) == (NOT_FOUND, 0)
    assert "MTF_OPENCL_PLATFORM names 'Elsewhere'" in outcome.message
    assert f"'{PLATFORM}'" in outcome.message
    assert process.close() == 0


def test_devices_are_those_of_the_driver(opencl_library: Path) -> None:
    process = PluginProcess("device", opencl_library, "1", env=TWO_DEVICES)
    assert process.device_count() == (OK, "", 2)
    assert process.facts()["ordinal"] == 1
    for ordinal in (2, -1):
        outcome = process.switch(ordinal)
        assert outcome.code == INVALID_ARGUMENT
        assert "found 2" in outcome.message
    assert process.close() == 0


def test_older_host_is_refused(opencl_library: Path) -> None:
    process = PluginProcess("device", opencl_library, "0", "34", env=ON_POCL)
    outcome = process.start()
    assert outcome.code == FAILED_PRECONDITION
    assert "2.9" in outcome.message
    assert process.close() == 0


# -- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4, 255, 256, 257, 1 << 20, (4 << 20) + 1])
def test_memory_is_aligned_and_counted(device: PluginProcess, size: int) -> None:
    memory, address = device.allocate(size)
    assert address != 0
    assert address % ALIGNMENT == 0
    assert device.statistics()["bytes_in_use"] == size
    device.deallocate(memory)
    assert device.statistics()["bytes_in_use"] == 0


def test_statistics(device: PluginProcess) -> None:
    memories = [device.allocate(size)[0] for size in (100, 300, 200)]
    for memory in memories[1:]:
        device.deallocate(memory)
    device.allocate(50)
    expected = {
        "struct_size": 96,
        "num_allocs": 4,
        "bytes_in_use": 150,
        "peak_bytes_in_use": 600,
        "largest_alloc_size": 300,
        "has_bytes_limit": 1,
        "bytes_limit": device.usage()[2],
    }
    assert {name: value for name, value in device.statistics().items() if value} == expected


@pytest.mark.parametrize("size", [(1 << 64) - 1, (1 << 64) - ALIGNMENT, 1 << 62])
def test_impossible_allocation_gives_null(device: PluginProcess, size: int) -> None:
    assert device.allocate(size)[1] == 0
    assert device.statistics()["num_allocs"] == 0
    assert device.allocate(64)[1] != 0


@pytest.mark.parametrize("kind", ["host", "unified"])
def test_impossible_host_memory_is_null(device: PluginProcess, kind: str) -> None:
    assert device.plain_memory_address(kind, (1 << 64) - 1) is None


@pytest.mark.parametrize("address", [None, 4096])
def test_foreign_address_is_left_alone(device: PluginProcess, address: int | None) -> None:
    device.deallocate_address(address)
    device.free_plain("host", address)
    device.free_plain("unified", address)
    assert device.statistics()["bytes_in_use"] == 0


@pytest.mark.parametrize("kind", ["host", "unified"])
@pytest.mark.parametrize("size", [0, 1, 1 << 16])
def test_host_and_unified_memory(device: PluginProcess, kind: str, size: int) -> None:
    assert device.plain_memory(kind, size) % ALIGNMENT == 0
    assert device.statistics()["num_allocs"] == 0


def test_allocation_from_many_threads(device: PluginProcess) -> None:
    results = device.parallel([[("allocate", 64)] * 200] * 4)
    addresses = [address for result in results for _, address in result]
    assert len(set(addresses)) == 800
    assert device.statistics()["bytes_in_use"] == 800 * 64


# -- copies and fills -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 4096, (64 << 20) + 3])
@pytest.mark.parametrize("on_stream", [True, False])
def test_round_trips_are_identical(
    device: PluginProcess, stream: int, size: int, on_stream: bool
) -> None:
    data = _data(size)
    source, target = device.pinned(data), device.host_buffer(bytes(size))
    one, two = (device.allocate(size)[0] for _ in range(2))
    steps = [("htod", one, source), ("dtod", two, one), ("dtoh", target, two)]
    for direction, to, from_ in steps:
        slot = f"memcpy_{direction}"
        arguments = (slot, stream) if on_stream else (f"sync_{slot}",)
        assert device.call(*arguments, to, from_, (size,)) == (OK, "", None)
    _done(device, stream)
    assert device.host_bytes(target) == data
    assert device.unpin(source, size) == data


def test_addresses_inside_an_allocation(device: PluginProcess, stream: int) -> None:
    """As from an arena: pieces at odd places, each known by its address alone."""
    size, whole = 1 << 16, device.allocate(1 << 16)[0]
    expected = bytearray(size)
    assert device.call("mem_zero", stream, whole, (size,)).code == OK
    for offset, length in ((1, 7), (4096, 4096), (40001, 333), (size - 1, 1)):
        expected[offset : offset + length] = data = _data(length)
        part, source = device.part(whole, offset), device.host_buffer(data)
        assert device.call("memcpy_htod", stream, part, source, (length,)).code == OK
    assert device.call("memset", stream, device.part(whole, 513), (0xEE,), (5,)).code == OK
    expected[513:518] = b"\xee" * 5
    inner = device.part(whole, 20000), device.part(whole, 40001)
    assert device.call("memcpy_dtod", stream, *inner, (333,)).code == OK
    expected[20000:20333] = expected[40001:40334]
    result = device.host_buffer(bytes(size))
    assert device.call("memcpy_dtoh", stream, result, whole, (size,)).code == OK
    _done(device, stream)
    assert device.host_bytes(result) == bytes(expected)


def test_devices_share_events_and_addresses(opencl_library: Path) -> None:
    """A copy on the second device waits for work of the first one, and reads its memory."""
    process, data = PluginProcess("device", opencl_library, env=TWO_DEVICES), _data(4096)
    memory, first = process.allocate(4096)[0], process.create("stream").value
    gate = process.hold(first)
    process.call("memcpy_htod", first, memory, process.host_buffer(data), (4096,))
    assert process.switch(1).code == OK
    second, other = process.create("stream").value, process.allocate(4096)[0]
    assert process.call("create_stream_dependency", second, first).code == OK
    assert process.call("memcpy_dtod", second, other, memory, (4096,)).code == OK
    result = process.host_buffer(bytes(4096))
    assert process.call("memcpy_dtoh", second, result, other, (4096,)).code == OK
    assert process.host_bytes(result) == bytes(4096)
    process.release(gate)
    _done(process, second)
    assert process.host_bytes(result) == data
    assert process.close() == 0


@pytest.mark.parametrize("slot", ["memcpy_htod", "mem_zero", "memset", "memset32", "memcpy_dtod"])
def test_missing_memory_is_an_error_with_opencl_s_name(
    device: PluginProcess, stream: int, slot: str
) -> None:
    nothing = device.allocate((1 << 64) - 1)[0]
    operand = {
        "memcpy_htod": [device.host_buffer(bytes(8))],
        "memcpy_dtod": [device.allocate(8)[0]],
        "mem_zero": [],
    }.get(slot, [(1,)])
    outcome = device.call(slot, stream, nothing, *operand, (8,))
    assert outcome.code == INVALID_ARGUMENT
    assert "clEnqueueSVMMem" in outcome.message
    assert "CL_INVALID_VALUE (-30)" in outcome.message
    _done(device, stream)


def test_overlapping_copy_is_refused(device: PluginProcess, stream: int) -> None:
    memory = device.allocate(64)[0]
    outcome = device.call("memcpy_dtod", stream, device.part(memory, 8), memory, (16,))
    assert outcome[:2] == (INVALID_ARGUMENT, "clEnqueueSVMMemcpy: CL_MEM_COPY_OVERLAP (-8)")


# -- the build ------------------------------------------------------------------------------------


def test_build_without_opencl_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(CHECKOUT / "scripts" / "build_plugins", "--into", tmp_path, "opencl_device", "--"),
            "-DCMAKE_DISABLE_FIND_PACKAGE_OpenCL=ON",
        ],
        env=dict(DEVELOPER_ENVIRONMENT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "opencl-headers ocl-icd-opencl-dev" in " ".join(done.stderr.split())


def _script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("here", [True, False])
def test_building_all_leaves_it_out_where_opencl_is_not(tmp_path: Path, here: bool) -> None:
    """A compiler that does or does not find OpenCL, and a cmake that makes empty libraries."""
    folder = tmp_path / "bin"
    folder.mkdir()
    compiler = _script(folder / "compiler", f"exit {int(not here)}")
    _script(folder / "cmake", '[ "$1" = -S ] && touch "$4/lib$(basename "$2").so"; exit 0')
    done = subprocess.run(
        [CHECKOUT / "scripts" / "build_plugins", "--into", tmp_path / "out"],
        env={"PATH": f"{folder}:{DEVELOPER_ENVIRONMENT['PATH']}", "CXX": str(compiler)},
        capture_output=True,
        text=True,
        check=False,
    )
    made = {path.name for path in (tmp_path / "out").iterdir()}
    others = {"host_device", "host_kernels", "posix_filesystem", "ram_filesystem"}
    assert done.returncode == 0, done.stderr
    assert made >= others
    for name in ("opencl_device", "opencl_kernels"):
        assert (name in made) == here
        assert (f"{name} is left out" in done.stderr) == (not here)
