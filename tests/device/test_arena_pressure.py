"""When memory is out: what goes back to the source, and what the user is told."""

from __future__ import annotations

import pytest

from modular_tf.errors import (
    OutOfMemoryError,
    ResourceExhaustedError,
)
from tests.device.arena_world import GIB, KIB, MIB, PaperMemory


@pytest.fixture
def memory():
    return PaperMemory()


def test_unused_regions_go_back_when_the_limit_presses(memory):
    arena = memory.arena(6 * MIB)
    small = arena.allocate(2 * MIB)
    large = arena.allocate(3 * MIB)
    first, second = memory.regions
    arena.free(large)

    address = arena.allocate(4 * MIB)  # fits into the second region as it is
    assert memory.returned == []
    arena.free(address)
    arena.free(small)
    arena.allocate(5 * MIB)

    assert {row[0] for row in memory.returned} == {first, second}
    assert all(size == given for _, size, given in memory.returned)
    assert list(memory.regions.values()) == [6 * MIB]


def test_unused_regions_go_back_when_the_source_refuses():
    memory = PaperMemory(7 * MIB)
    arena = memory.arena()
    arena.free(arena.allocate(2 * MIB))

    arena.allocate(6 * MIB)

    assert len(memory.returned) == 1
    assert arena.stats().bytes_reserved == sum(memory.regions.values())


def test_a_region_in_use_never_goes_back(memory):
    arena = memory.arena(4 * MIB)
    arena.allocate(256)

    with pytest.raises(OutOfMemoryError):
        arena.allocate(3 * MIB)

    assert memory.returned == []


def test_regions_are_kept_when_that_could_not_help(memory):
    arena = memory.arena(4 * MIB)
    arena.free(arena.allocate(MIB))

    with pytest.raises(OutOfMemoryError):
        arena.allocate(5 * MIB)

    assert memory.returned == []


def test_garbage_collection_can_be_off(memory):
    arena = memory.arena(3 * MIB, garbage_collection=False)
    arena.free(arena.allocate(MIB))

    with pytest.raises(OutOfMemoryError):
        arena.allocate(3 * MIB)
    assert memory.returned == []


def test_out_of_memory_is_a_memory_error_with_a_picture(memory):
    arena = memory.arena(MIB, name="GPU:7")
    arena.allocate(768 * KIB)

    with pytest.raises(MemoryError) as caught:
        arena.allocate(512 * KIB)

    assert isinstance(caught.value, ResourceExhaustedError)
    text = str(caught.value)
    assert "512.0 KiB (524288 B) asked of the arena GPU:7" in text
    assert "limit 1.0 MiB (1048576 B)" in text
    assert "region 0x10000000000" in text
    assert "chunks from 1.0 MiB (1048576 B): 1 in use" in text


def test_after_out_of_memory_the_arena_works(memory):
    arena = memory.arena(MIB)
    address = arena.allocate(MIB)
    before = arena.stats()
    with pytest.raises(OutOfMemoryError):
        arena.allocate(1)

    assert arena.stats() == before
    arena.free(address)
    assert arena.allocate(MIB) == address


def test_memory_in_pieces_is_named_as_such(memory):
    arena = memory.arena(4096, growth=False)
    addresses = [arena.allocate(1024) for _ in range(4)]
    arena.free(addresses[0])
    arena.free(addresses[2])

    with pytest.raises(OutOfMemoryError, match="enough is free, but in pieces"):
        arena.allocate(2048)


@pytest.mark.parametrize("size", [GIB + 1, 1 << 62, (1 << 64) - 1, 1 << 64, 1 << 200])
def test_more_than_the_limit_is_refused_without_asking(memory, size):
    with pytest.raises(OutOfMemoryError, match="more than its whole limit"):
        memory.arena(GIB).allocate(size)

    assert memory.asked == []


def test_many_regions_are_not_all_drawn(memory):
    arena = memory.arena(garbage_collection=False)
    memory.capacity = 0
    for _ in range(30):
        memory.capacity += 256
        arena.allocate(256)

    assert "and 6 more regions" in arena.picture()
