"""The arena: TensorFlow's sizes (device-abi sheet, B6), refusals, pressure, and who keeps what."""

from __future__ import annotations

import pytest

from modular_tf.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfMemoryError,
)
from tests.device.arenas import GIB, KIB, MIB, PaperMemory


@pytest.fixture
def memory():
    return PaperMemory()


# -- sizes, as they were observed in TensorFlow 2.21; test_arena_sequences.py has any ----------


@pytest.mark.parametrize(
    ("options", "requests", "asked"),
    [
        ({}, [4, 256, 260, MIB, 2 * MIB, 4 * MIB, 12 * MIB], [2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]),
        # The size that doubling led to is used twice.
        ({}, [20 * MIB, 30 * MIB, 40 * MIB], [32 * MIB, 32 * MIB, 64 * MIB]),
        ({"bytes_limit": 5 * MIB}, [700 * KIB] * 5, [2 * MIB, 3 * MIB]),  # what the limit leaves
        ({"bytes_limit": 3685427200, "growth": False}, [GIB] * 3, [3685427200]),
        ({"bytes_limit": 1000, "growth": False}, [700], [768]),  # a limit of whole 256 bytes
        # What is refused is asked for at nine tenths.
        (
            {"capacity": 653147648, "bytes_limit": 806354944, "growth": False},
            [4],
            [806354944, 725719552, 653147648],
        ),
        # Of few units, rounded up, those are as many units: that must not go on for ever.
        (
            {"capacity": 256, "bytes_limit": 1280, "growth": False},
            [1],
            [1280, 1024, 768, 512, 256],
        ),
    ],
    ids=["doubling", "until it fits", "limit", "no growth", "rounded", "refused", "few units"],
)
def test_regions_have_tensorflows_sizes(options, requests, asked):
    options = {"capacity": 1 << 50, **options}
    memory = PaperMemory(options.pop("capacity"))
    arena = memory.arena(**options)
    assert memory.asked == []
    for n_bytes in requests:
        arena.allocate(n_bytes)
    assert memory.asked == asked
    assert arena.stats().bytes_reserved == sum(memory.regions.values())


@pytest.mark.parametrize(
    ("region", "asked", "chunk"),
    [
        (2 * MIB, 1, 256),  # rounded up
        (2 * MIB, 257, 512),
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


def test_the_smallest_chunk_that_fits_is_taken_and_among_equals_the_lowest(memory):
    arena = memory.arena()
    holes = {}
    for size in (1024, 512, 768, 2048):
        holes[size] = arena.allocate(size)
        arena.allocate(256)
    for hole in holes.values():
        arena.free(hole)
    for asked, size in ((600, 768), (500, 512), (1025, 2048)):
        assert arena.allocate(asked) == holes[size]

    addresses = [arena.allocate(MIB // 16) for _ in range(6)]
    for index in (4, 0, 2):
        arena.free(addresses[index])
    assert [arena.allocate(MIB // 16) for _ in range(3)] == addresses[:6:2]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)])
def test_free_neighbours_become_one(memory, order):
    arena = memory.arena(4096, growth=False)
    addresses = [arena.allocate(1024) for _ in range(3)]
    for index in order:
        arena.free(addresses[index])
    assert arena.stats().largest_free_block_bytes == 4096


# -- wrong arguments, and sources that break their word: nothing changes -------------------------


def test_what_is_no_live_allocation_is_not_freed(memory):
    arena, other = memory.arena(), memory.arena()
    freed = [arena.allocate(256) for _ in range(3)]
    address = arena.allocate(1000)
    for each in freed:
        arena.free(each)
    before = arena.stats()

    for each in freed:  # by now inside of one free chunk
        with pytest.raises(FailedPreconditionError, match="freed before"):
            arena.free(each)
    for offset in (1, 256, 1023):
        with pytest.raises(InvalidArgumentError, match=f"inside the one of 1000 B at {address:#x}"):
            arena.free(address + offset)
    for foreign in (1, 256, (1 << 64) - 1, other.allocate(256)):
        with pytest.raises(InvalidArgumentError, match="none of its regions"):
            arena.free(foreign)
        assert arena.allocated_bytes(foreign) == 0
    assert arena.stats() == before


# -- when memory is out --------------------------------------------------------------------------


def test_memory_in_pieces_and_more_than_the_limit_are_named_as_such(memory):
    arena = memory.arena(4096, growth=False)
    for size in (4097, 1 << 62, (1 << 64) - 1):
        with pytest.raises(OutOfMemoryError, match="more than its whole limit"):
            arena.allocate(size)
    assert memory.asked == []
    addresses = [arena.allocate(1024) for _ in range(4)]
    arena.free(addresses[0])
    arena.free(addresses[2])
    with pytest.raises(OutOfMemoryError, match="enough is free, but in pieces"):
        arena.allocate(2048)


def test_unused_regions_stay_where_their_return_would_not_help(memory):
    arena = memory.arena(6 * MIB)
    unused, _ = arena.allocate(2 * MIB), arena.allocate(4 * MIB)
    arena.free(unused)
    with pytest.raises(OutOfMemoryError):
        arena.allocate(3 * MIB)
    assert memory.returned == []
