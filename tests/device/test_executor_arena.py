"""A device whose plugin has the host cut its memory: what is asked for, and what lives how long."""

from __future__ import annotations

import gc
import re

import pytest

from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.device.streams.event import EventStatus
from modular_tf.errors import ClosedError, InternalError, OutOfMemoryError
from tests.device.arenas import KIB, MIB
from tests.device.recording import LEAVES_OUTPUTS_ALONE, THROWS


@pytest.fixture
def pooled(recording):
    recording.use_bfc_allocator()
    return recording


@pytest.fixture
def device(pooled):
    with pooled.devices() as [first, _]:
        yield first


def asked_of(recording, slot="allocate"):
    return [int(call.split()[1]) for call in recording.calls if call.split()[0] == slot]


def test_the_plugin_is_asked_for_regions_only(pooled):
    """Of device and of pinned memory; unified memory is never cut."""
    with pooled.devices() as [device, _]:
        assert pooled.count("device_memory_usage") == 0  # before the first need
        arrays = [device.put(bytes([number]) * 1000) for number in range(100)]
        for _ in range(10):
            device.allocate_host(100).close()
        device.allocate_unified(1000).close()

        assert pooled.count("device_memory_usage") == 1
        assert asked_of(pooled) == asked_of(pooled, "host_memory_allocate") == [2 * MIB]
        assert asked_of(pooled, "unified_memory_allocate") == [1000]
        assert pooled.count("host_memory_deallocate") == 0
        assert len({array.address for array in arrays}) == 100
        assert all(array.address % 256 == 0 for array in arrays)
        assert [array.to_bytes()[-1] for array in arrays] == [*range(100)]
        stats = device.allocator_stats()  # of the device's memory alone
        assert (stats.num_allocs, stats.bytes_in_use) == (100, 100 * KIB)
        assert (stats.peak_bytes_in_use, stats.largest_alloc_size) == (100 * KIB, KIB)
        assert stats.bytes_reserved == stats.peak_bytes_reserved == 2 * MIB
        assert MIB < stats.largest_free_block_bytes < 2 * MIB
    assert pooled.count("host_memory_deallocate") == 1
    assert pooled.allocated == 0


def test_without_the_flag_the_plugin_is_asked_for_each_piece(recording):
    with recording.devices() as [device, _]:
        device.allocate(1000).close()
        device.allocate_host(1000).close()
        stats = device.allocator_stats()

    assert asked_of(recording) == [1000]
    assert recording.count("device_memory_usage") == 0
    assert stats.num_allocs == 5  # the plugin's own figure


@pytest.mark.parametrize(
    ("decided", "limit"),
    [
        (MemorySettings(), 806354944),  # TensorFlow's; test_memory_limit.py has others
        (MemorySettings(limit_bytes=5 * MIB), 5 * MIB),
        (MemorySettings(fraction=0.25), 256 * MIB),
    ],
)
def test_the_limit_is_tensorflow_s_or_the_user_s(recording, decided, limit):
    recording.use_bfc_allocator(1024)

    with recording.devices(decided) as [device, _]:
        assert device.allocator_stats().bytes_limit == limit
        with pytest.raises(OutOfMemoryError, match="arena RECORDING:0"):
            device.allocate(limit + 1)


def test_the_limit_of_pinned_memory_is_the_user_s(pooled):
    with pooled.devices(MemorySettings(host_limit_bytes=MIB)) as [device, _]:
        with pytest.raises(OutOfMemoryError, match="RECORDING:0 host memory"):
            device.allocate_host(MIB + 1)
        assert asked_of(pooled, "host_memory_allocate") == []
        device.allocate_host(MIB - 256)


@pytest.mark.parametrize(("wanted", "first"), [(True, 2 * MIB), (None, 64 * MIB)])
def test_the_first_region_is_small_or_all_there_is(recording, wanted, first):
    recording.use_bfc_allocator(force_growth=False)

    with recording.devices(MemorySettings(limit_bytes=64 * MIB, growth=wanted)) as [device, _]:
        device.allocate(1000)

        assert asked_of(recording) == [first]


def test_a_plugin_that_does_not_know_its_memory_has_no_limit_but_its_own(recording, caplog):
    """Its regions are small at first, also where all memory at once is wanted."""
    recording.use_bfc_allocator(force_growth=False)
    recording.fail("device_memory_usage", LEAVES_OUTPUTS_ALONE)
    with recording.devices() as [device, _]:
        device.allocate(3 * MIB)

        assert asked_of(recording) == [4 * MIB]
        assert device.allocator_stats().bytes_limit is None
        assert "memory_limit.unknown" in caplog.text


def test_memory_returns_to_the_arena_with_its_last_user(pooled, device):
    memory = device.allocate(KIB)
    part = memory.part(0, 10)
    memory.close()
    del memory
    gc.collect()
    assert device.allocator_stats().bytes_in_use == KIB

    part.close()
    gc.collect()

    assert device.allocator_stats().bytes_in_use == 0
    assert pooled.count("deallocate") == 0


def test_the_plugin_gets_its_regions_back_after_the_work_and_before_the_end(pooled):
    with pooled.devices() as [device, _]:
        held = [device.allocate(MIB) for _ in range(10)]
        stream = device.create_stream()
        stream.memcpy_htod(held[0], b"x")
        regions = pooled.count("allocate")
        assert pooled.count("deallocate") == 0
    calls = [call.split()[0] for call in pooled.calls]
    ends = [calls.index(slot) for slot in ("synchronize_all_activity", "deallocate")]
    assert sorted(ends) == ends < [calls.index("destroy_device")]
    assert pooled.count("deallocate") == regions
    assert pooled.allocated == 0

    for use in (device.allocator_stats, lambda: device.allocate(1), lambda: held[0].part(0, 1)):
        with pytest.raises(ClosedError):
            use()
    for memory in held:
        memory.close()
    assert pooled.count("deallocate") == regions


def test_its_error_has_a_picture_and_the_device_still_works(recording):
    recording.use_bfc_allocator()
    with recording.devices(MemorySettings(limit_bytes=4 * MIB)) as [device, _]:
        held = device.allocate(3 * MIB)

        with pytest.raises(MemoryError, match="arena RECORDING:0") as caught:
            device.allocate(3 * MIB)

        assert isinstance(caught.value, OutOfMemoryError)
        assert "3.0 MiB (3145728 B) asked of the arena" in caught.value.message
        assert "limit 4.0 MiB (4194304 B)" in caught.value.message
        # It takes all of the region, up to where the plugin's memory begins within 256 bytes.
        assert re.search(r"chunks from [24]\.0 MiB \(\d+ B\): 1 in use", caught.value.message)
        assert caught.value.plugin == "recording"
        held.close()
        del held
        device.allocate(3 * MIB)


def test_a_refusing_plugin_is_asked_for_less_and_a_throwing_one_is_not(pooled, device):
    pooled.fail("allocate", LEAVES_OUTPUTS_ALONE)
    with pytest.raises(OutOfMemoryError):
        device.allocate(MIB)
    asked = asked_of(pooled)
    assert (asked[0], asked[-1]) == (2 * MIB, MIB)

    pooled.fail("allocate", THROWS)
    with pytest.raises(InternalError, match="exception"):
        device.allocate(MIB)
    assert len(asked_of(pooled)) == len(asked) + 1


@pytest.mark.parametrize("collects", [None, False])
def test_unused_regions_go_back_first_unless_the_user_wants_them(recording, collects):
    recording.use_bfc_allocator()
    decided = MemorySettings(limit_bytes=6 * MIB, garbage_collection=collects)
    with recording.devices(decided) as [device, _]:
        device.allocate(MIB).close()
        gc.collect()
        if collects is False:
            with pytest.raises(OutOfMemoryError):
                device.allocate(5 * MIB)
        else:
            device.allocate(5 * MIB)

        assert recording.count("deallocate") == (collects is None)


# -- memory that copies hold -------------------------------------------------------------------


def send_and_drop(device):
    """Enqueue 8 copies to memories of 16 MiB that nobody has any more, and wait for none."""
    stream, data = device.create_stream(), bytes(16 * MIB)
    for _ in range(8):
        stream.memcpy_htod(device.allocate(16 * MIB), data)
    return stream


def test_what_finished_copies_hold_is_no_lack_of_memory(pooled):
    with pooled.devices(MemorySettings(limit_bytes=64 * MIB)) as [device, _]:
        stream = send_and_drop(device)

        whole = [device.allocate(16 * MIB) for _ in range(3)]  # there is room for no more

        assert len({memory.address for memory in whole}) == 3
        del stream, whole


def test_what_copies_in_flight_hold_is_a_lack_of_memory_at_once(pooled):
    with pooled.devices(MemorySettings(limit_bytes=64 * MIB)) as [device, _]:
        stream = device.create_stream()
        pooled.say_of_events(EventStatus.PENDING)
        with pytest.raises(OutOfMemoryError, match="by 3 allocations"):
            send_and_drop(device)
        pooled.say_of_events(EventStatus.COMPLETE)
        stream.block_until_done()
        device.synchronize()
        gc.collect()

        device.allocate(16 * MIB).close()
