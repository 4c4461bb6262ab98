"""Device memory by way of an arena: what the plugin sees, and whose memory lives how long."""

from __future__ import annotations

import gc

import pytest

from modular_tf.codes import Code
from modular_tf.device.arena import Arena
from modular_tf.device.executor_arena import ExecutorArena, executor_memory
from modular_tf.errors import ClosedError, InternalError, OutOfMemoryError
from modular_tf.native.ffi import lib
from tests.device.arena_world import GIB, MIB
from tests.device.recording import LEAVES_OUTPUTS_ALONE, THROWS


@pytest.fixture
def arena(device):
    return ExecutorArena(device.executor, GIB)


def test_the_plugin_is_asked_for_regions_only(recording, arena):
    held = [arena.allocate(1000) for _ in range(100)]

    assert recording.count("allocate") == 1
    assert f"allocate {2 * MIB} 0" in recording.calls
    assert len({memory.address for memory in held}) == 100
    assert arena.stats().num_live_allocs == 100


def test_memory_returns_to_the_arena_with_its_last_user(recording, arena):
    memory = arena.allocate(MIB)
    part = memory.part(0, 10)
    memory.close()
    del memory
    gc.collect()
    assert arena.stats().num_live_allocs == 1

    part.close()
    gc.collect()

    assert arena.stats().num_live_allocs == 0
    assert recording.count("deallocate") == 0


def test_an_arena_and_its_memory_may_be_garbage_together(recording, device):
    knot = [ExecutorArena(device.executor, GIB)]
    knot += [knot, *(knot[0].allocate(100) for _ in range(5))]

    del knot
    gc.collect()

    assert recording.count("deallocate") == 1
    assert recording.allocated == 0


def test_what_is_written_comes_back(device, arena):
    first, second = arena.allocate(8), arena.allocate(8)
    device.memcpy_htod(first, b"abcdefgh")
    device.memcpy_htod(second, b"12345678")
    out = bytearray(8)

    device.memcpy_dtoh(out, first)

    assert out == b"abcdefgh"


def test_zero_bytes_need_no_plugin(recording, arena):
    with arena.allocate(0) as memory:
        assert memory.size == 0

    assert recording.count("allocate") == 0


def test_closing_gives_the_regions_back(recording, arena):
    with arena:
        memory = arena.allocate(MIB)
    with pytest.raises(ClosedError):
        arena.allocate(1)
    assert recording.count("deallocate") == 0

    memory.close()
    del memory
    gc.collect()

    assert recording.count("deallocate") == 1
    assert recording.allocated == 0


def test_the_device_may_be_closed_first(recording):
    with recording.devices() as [device, _]:
        arena = ExecutorArena(device.executor, GIB)
        memory = arena.allocate(MIB)
    assert recording.allocated == 0
    with pytest.raises(ClosedError):
        arena.allocate(4 * MIB)

    memory.close()
    del memory
    arena.close()
    gc.collect()

    assert recording.count("deallocate") == 1


def test_a_plugin_without_memory_is_out_of_memory(recording, arena):
    recording.fail("allocate", LEAVES_OUTPUTS_ALONE)

    with pytest.raises(OutOfMemoryError, match="arena RECORDING:0"):
        arena.allocate(MIB)

    asked = [int(call.split()[1]) for call in recording.calls if call.startswith("allocate")]
    assert asked[:2] == [2 * MIB, 1887488]  # nine tenths, in whole 256 bytes
    assert asked[-1] == MIB
    recording.heal()
    arena.allocate(MIB)


def test_a_plugin_that_throws_is_named_an_internal_error(recording, arena):
    recording.fail("allocate", THROWS)

    with pytest.raises(InternalError, match="exception") as caught:
        arena.allocate(MIB)

    assert caught.value.code is Code.INTERNAL
    assert recording.count("allocate") == 1  # not asked again for less


def test_an_arena_of_pinned_memory(recording, device):
    with Arena(executor_memory(device.executor, lib.MTF_HOST_MEMORY), GIB) as arena:
        arena.free(arena.allocate(100))

        assert recording.count("host_memory_allocate") == 1
    assert recording.count("host_memory_deallocate") == 1
    assert recording.allocated == 0


def test_a_closed_device_goes_when_the_last_pinned_region_has(recording):
    with recording.devices() as [device, _]:
        executor = device.executor
        arena = Arena(executor_memory(executor, lib.MTF_HOST_MEMORY), GIB)
        arena.allocate(100)
    assert executor.host_memories == 1

    del arena
    gc.collect()
    executor.host_memory_ended()

    assert executor.host_memories == 0
    assert recording.allocated == 0
