"""The arena's sizes, number by number, as TensorFlow 2.21 has them (device-abi sheet, B6)."""

from __future__ import annotations

import pytest

from modular_tf.errors import (
    OutOfMemoryError,
)
from tests.device.arena_world import GIB, KIB, MIB, PaperMemory
from tests.device.arenas import Arena, HostMemory


@pytest.fixture
def memory():
    return PaperMemory()


def in_use_after(arena, *sizes):
    figures = []
    for size in sizes:
        arena.allocate(size)
        figures.append(arena.stats().bytes_in_use)
    return figures


def test_use_grows_as_it_was_observed_in_tensorflow(memory):
    figures = in_use_after(memory.arena(), 4, 256, 260, MIB, 2 * MIB, 4 * MIB, 12 * MIB)

    assert figures == [256, 512, 1024, 2 * MIB, 4 * MIB, 8 * MIB, 24 * MIB]
    assert memory.asked == [2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]


def test_a_refused_region_is_asked_for_at_nine_tenths():
    memory = PaperMemory(653147648)
    arena = memory.arena(806354944, growth=False)

    arena.allocate(4)

    assert memory.asked == [806354944, 725719552, 653147648]
    assert arena.stats().bytes_reserved == 653147648


def test_without_growth_the_whole_limit_is_one_region(memory):
    arena = memory.arena(3685427200, growth=False)
    assert memory.asked == []

    for _ in range(3):
        arena.allocate(GIB)

    assert memory.asked == [3685427200]


def test_a_limit_that_is_no_multiple_of_256_is_rounded_down(memory):
    arena = memory.arena(1000, growth=False)

    arena.allocate(700)

    assert memory.asked == [768]
    assert arena.stats().bytes_limit == 1000


def test_a_region_doubles_until_the_request_fits(memory):
    arena = memory.arena()

    arena.allocate(20 * MIB)
    arena.allocate(30 * MIB)
    arena.allocate(40 * MIB)

    # The size that doubling led to is used twice, as in TensorFlow.
    assert memory.asked == [32 * MIB, 32 * MIB, 64 * MIB]


def test_the_last_region_is_what_the_limit_leaves(memory):
    arena = memory.arena(5 * MIB)

    for _ in range(5):
        arena.allocate(700 * KIB)

    assert memory.asked == [2 * MIB, 3 * MIB]


def test_the_last_try_is_for_exactly_the_request():
    memory = PaperMemory(2048)
    arena = memory.arena(GIB, growth=False)

    address = arena.allocate(2000)

    assert memory.asked[0] == GIB
    assert memory.asked[-1] == 2048
    assert memory.asked == sorted(memory.asked, reverse=True)
    assert arena.allocated_bytes(address) == 2048


def test_small_sizes_back_off_too():
    """Nine tenths of few units, rounded up, are as many units: that must not go on for ever."""
    memory = PaperMemory(0)

    with pytest.raises(OutOfMemoryError):
        memory.arena(2560, growth=False).allocate(1)

    assert memory.asked == [2560, 2304, 2048, 1792, 1536, 1280, 1024, 768, 512, 256]


@pytest.mark.parametrize(
    ("region", "asked", "chunk"),
    [
        (2 * MIB, MIB, MIB),  # half is left: split
        (2 * MIB, MIB + 1, 2 * MIB),  # less than half is left
        (384 * MIB, 256 * MIB, 256 * MIB),  # less than half, but 128 MiB
        (384 * MIB - 256, 256 * MIB, 384 * MIB - 256),  # and 256 B less than that
        (512, 256, 256),
        (512, 257, 512),
    ],
)
def test_a_chunk_is_split_where_enough_is_left(memory, region, asked, chunk):
    arena = memory.arena(region, growth=False)

    assert arena.allocated_bytes(arena.allocate(asked)) == chunk
    assert arena.stats().largest_free_block_bytes == region - chunk


@pytest.mark.parametrize(("asked", "chunk"), [(1, 256), (255, 256), (256, 256), (257, 512)])
def test_sizes_are_rounded_to_256(memory, asked, chunk):
    arena = memory.arena()

    assert arena.allocated_bytes(arena.allocate(asked)) == chunk


def test_the_smallest_chunk_that_fits_is_taken(memory):
    arena = memory.arena()
    sizes = (1024, 512, 768, 2048)
    holes = {}
    for size in sizes:
        holes[size] = arena.allocate(size)
        arena.allocate(256)
    for size in sizes:
        arena.free(holes[size])

    assert arena.allocate(600) == holes[768]
    assert arena.allocate(500) == holes[512]
    assert arena.allocate(1025) == holes[2048]


def test_among_equals_the_lowest_address_is_taken(memory):
    arena = memory.arena()
    addresses = [arena.allocate(512) for _ in range(6)]
    for address in (addresses[4], addresses[0], addresses[2]):
        arena.free(address)

    assert [arena.allocate(512) for _ in range(3)] == addresses[:6:2]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_free_neighbours_become_one(memory, order):
    arena = memory.arena(4096, growth=False)
    addresses = [arena.allocate(1024) for _ in range(3)]

    for index in order:
        arena.free(addresses[index])

    assert arena.stats().largest_free_block_bytes == 4096


def test_regions_never_become_one():
    memory = HostMemory()
    arena = Arena(memory.source, 6 * MIB)
    for address in [arena.allocate(MIB) for _ in range(4)]:
        arena.free(address)

    assert arena.stats().bytes_reserved == 6 * MIB
    assert arena.stats().largest_free_block_bytes == 4 * MIB


def test_freed_memory_stays_reserved(memory):
    arena = memory.arena()
    arena.free(arena.allocate(MIB))

    assert memory.returned == []
    assert arena.stats().bytes_reserved == 2 * MIB


def test_a_limit_may_be_beyond_all_memory(memory):
    arena = memory.arena(1 << 100)

    arena.allocate(1)

    assert arena.stats().bytes_limit == 1 << 62


def test_statistics_add_up(memory):
    arena = memory.arena(name="sums")
    first = arena.allocate(MIB)
    second = arena.allocate(100)
    arena.free(first)
    third = arena.allocate(512)

    stats = arena.stats()

    assert stats.num_allocs == 3
    assert stats.num_live_allocs == 2
    assert stats.bytes_in_use == 256 + 512 == sum(map(arena.allocated_bytes, (second, third)))
    assert stats.peak_bytes_in_use == MIB + 256
    assert stats.largest_alloc_size == MIB
    assert stats.bytes_reserved == stats.peak_bytes_reserved == 2 * MIB
    assert stats.largest_free_block_bytes == MIB  # best fit took the other, smaller one
