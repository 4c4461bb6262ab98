"""Memory: device, pinned and unified; what the plugin says of it; failures: test_every_slot.py."""

from __future__ import annotations

import gc
import weakref

import pytest

from modular_tf.errors import (
    ClosedError,
    InvalidArgumentError,
    OutOfMemoryError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from tests.device.conftest import await_platforms
from tests.device.recording import LEAVES_OUTPUTS_ALONE

KINDS = {
    "allocate": lambda device, size: device.allocate(size),
    "host_memory_allocate": lambda device, size: device.allocate_host(size),
    "unified_memory_allocate": lambda device, size: device.allocate_unified(size),
}


def test_device_memory(recording, device):
    with device.allocate(100) as memory:
        assert (memory.size, len(memory)) == (100, 100)
        assert memory.address
        assert recording.calls[-1] == "allocate 100 0"
    assert memory.closed
    memory.close()
    assert recording.calls[-1] == "deallocate 100 77"  # as the plugin described it
    assert recording.allocated == 0


def test_pinned_memory_is_a_buffer(recording, device):
    pinned, memory, back = device.allocate_host(4), device.allocate(4), device.allocate_host(4)
    pinned.view[:] = b"abcd"
    with device.create_stream() as stream:
        stream.memcpy_htod(memory, pinned)
        stream.memcpy_dtoh(back, memory)
    assert bytes(back.view) == b"abcd"
    pinned.close()
    with pytest.raises(ClosedError, match="host memory"):
        _ = pinned.view
    assert recording.count("host_memory_deallocate") == 1


def test_unified_memory_is_both(device):
    unified, memory = device.allocate_unified(4), device.allocate(4)
    unified.view[:] = b"abcd"
    device.memcpy_dtod(memory, unified)
    device.memcpy_htod(unified, b"wxyz")
    assert bytes(unified.view) == b"wxyz"
    device.memcpy_dtoh(unified.view, memory)
    assert bytes(unified.view) == b"abcd"


def test_unified_memory_is_optional(recording):
    recording.leave_out("unified_memory_allocate", "unified_memory_deallocate")
    with (
        recording.devices() as [device, _],
        pytest.raises(UnimplementedError, match="no unified_memory_allocate"),
    ):
        device.allocate_unified(4)


@pytest.mark.parametrize("slot", KINDS)
def test_no_memory_is_a_memory_error_that_says_how_much(recording, device, slot):
    with KINDS[slot](device, 0) as memory:
        assert memory.size == 0
    assert recording.count(slot) == 0
    assert not [call for call in recording.calls if "deallocate" in call]

    recording.fail(slot, LEAVES_OUTPUTS_ALONE)
    with pytest.raises(MemoryError, match=f"{slot}.* 4096 bytes") as caught:
        KINDS[slot](device, 4096)
    assert isinstance(caught.value, OutOfMemoryError)
    assert isinstance(caught.value, ResourceExhaustedError)


def test_sizes_that_cannot_be(device, host_device):
    for size in (-1, 1 << 63):
        with pytest.raises(InvalidArgumentError, match="cannot be allocated"):
            device.allocate(size)
    with pytest.raises(MemoryError):
        host_device.allocate((1 << 63) - 1)
    assert host_device.allocate(8).size == 8


def test_memory_usage_and_stats(recording, device):
    assert device.memory_usage() == (600, 1000)
    stats = device.allocator_stats()
    assert (stats.num_allocs, stats.bytes_limit, stats.bytes_reservable_limit) == (5, 1000, None)
    recording.fail("device_memory_usage", LEAVES_OUTPUTS_ALONE)
    with pytest.raises(UnavailableError, match="device_memory_usage: the plugin does not know"):
        device.memory_usage()


def test_closed_memory_has_no_address_but_where_the_host_sees_it(host_device):
    for allocate in KINDS.values():
        memory = allocate(host_device, 64)
        assert memory.address
        memory.close()
        with pytest.raises(ClosedError, match="memory was closed"):
            _ = memory.address

    device, host, unified = [allocate(host_device, 64) for allocate in KINDS.values()]
    views = [host.view, unified.view]
    host_device.executor.close()
    with pytest.raises(ClosedError, match="the device of the memory was closed"):
        _ = device.address
    assert host.address
    assert unified.address
    assert [view.nbytes for view in views] == [64, 64]


@pytest.mark.parametrize("memory", ["cut by the plugin", "cut by the host"])
def test_views_of_host_memory_keep_the_device(recording, memory):
    if memory == "cut by the host":
        recording.use_bfc_allocator()
    with recording.devices() as [device, _]:
        pinned = device.allocate_host(4)
        view = pinned.view
        unified = device.allocate_unified(4).view
        pinned.close()
    assert recording.count("destroy_device") == 0
    view[:] = b"safe"
    assert bytes(view) == b"safe"
    unified[:] = b"safe"
    del view
    gc.collect()
    assert recording.count("destroy_platform") == 0
    del unified
    await_platforms()  # they end by a thread, since a collector may end them
    ends = [call for call in recording.calls if call.split()[0].endswith(("deallocate", "device"))]
    assert ends[-3:] == [
        "host_memory_deallocate",
        "unified_memory_deallocate",
        "destroy_device",
    ]
    assert recording.allocated == 0


def test_a_collection_may_take_a_device_before_its_memory(recording):
    with recording.devices() as [device, other]:
        memories = [one.allocate_unified(4) for one in (device, other)]
        native = [weakref.ref(memory._core.native) for memory in memories]
    circle = [memories, device, other]
    circle.append(circle)
    del memories, device, other, circle
    gc.collect()
    assert [part() for part in native] == [None, None]
    await_platforms()
    assert recording.count("unified_memory_deallocate") == 2
    assert recording.count("destroy_platform") == 1
    assert recording.allocated == 0
