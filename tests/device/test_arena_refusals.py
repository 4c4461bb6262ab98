"""Wrong arguments and sources that break their word: a typed error, and nothing changes."""

from __future__ import annotations

import pytest

from modular_tf.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    OutOfMemoryError,
)
from tests.device.arena_world import MIB, PaperMemory


@pytest.fixture
def memory():
    return PaperMemory()


def test_a_negative_limit_is_refused(memory):
    with pytest.raises(InvalidArgumentError, match="limit"):
        memory.arena(-1)


def test_zero_bytes_are_no_allocation(memory):
    arena = memory.arena()

    assert arena.allocate(0) == 0
    arena.free(0)
    assert arena.stats().num_allocs == 0
    assert memory.asked == []


def test_a_negative_size_is_refused(memory):
    with pytest.raises(InvalidArgumentError, match="-1 bytes"):
        memory.arena().allocate(-1)


def test_a_second_free_is_refused(memory):
    arena = memory.arena()
    addresses = [arena.allocate(256) for _ in range(3)]
    for address in addresses:
        arena.free(address)
    before = arena.stats()

    for address in addresses:  # by now inside of one free chunk
        with pytest.raises(FailedPreconditionError, match="freed before"):
            arena.free(address)
    assert arena.stats() == before


@pytest.mark.parametrize("offset", [1, 256, 1023])
def test_an_address_inside_an_allocation_is_refused(memory, offset):
    arena = memory.arena()
    address = arena.allocate(1000)

    with pytest.raises(InvalidArgumentError, match=f"inside the one of 1000 B at {address:#x}"):
        arena.free(address + offset)
    arena.free(address)


@pytest.mark.parametrize("address", [1, 256, (1 << 64) - 1, 1 << 64, -1])
def test_a_foreign_address_is_refused(memory, address):
    arena = memory.arena()
    arena.allocate(256)
    before = arena.stats()

    with pytest.raises(InvalidArgumentError, match=r"none of its regions|no address"):
        arena.free(address)
    assert arena.allocated_bytes(address) == 0
    assert arena.stats() == before


def test_an_address_of_another_arena_is_refused(memory):
    ours, theirs = memory.arena(), memory.arena()
    ours.allocate(256)

    with pytest.raises(InvalidArgumentError, match="none of its regions"):
        ours.free(theirs.allocate(256))


@pytest.mark.parametrize("skew", [1, 64, 128, 255])
def test_addresses_are_aligned_where_the_source_is_not(skew):
    memory = PaperMemory(skew=skew)
    arena = memory.arena()

    addresses = [arena.allocate(2 * MIB), arena.allocate(100), arena.allocate(4 * MIB)]

    assert [address % 256 for address in addresses] == [0, 0, 0]
    for address, size in zip(addresses, (2 * MIB, 256, 4 * MIB), strict=True):
        assert any(
            start <= address and address + size <= start + length
            for start, length in memory.regions.items()
        )
    assert arena.stats().bytes_reserved == sum(memory.regions.values())


def test_an_unaligned_source_does_not_lift_the_limit():
    memory = PaperMemory(skew=64)
    arena = memory.arena(MIB, growth=False)

    arena.allocate(MIB - 256)

    assert sum(memory.regions.values()) == MIB
    with pytest.raises(OutOfMemoryError):
        memory.arena(MIB, growth=False).allocate(MIB)


def test_a_source_that_returns_a_region_twice_is_found_out(memory):
    arena = memory.arena()
    arena.allocate(2 * MIB)
    memory._next = 1 << 40

    with pytest.raises(InternalError, match=r"had given out before.*rule SE-135") as caught:
        arena.allocate(2 * MIB)
    assert caught.value.rule == "SE-135"
    assert arena.stats().bytes_reserved == 2 * MIB
    assert memory.returned == []
