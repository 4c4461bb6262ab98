"""The arena, number by number: `shared/reference` has them from TensorFlow 2.21."""

from __future__ import annotations

import gc
import weakref

import pytest

from modular_tf.device.arena import Arena
from modular_tf.device.arena_source import HostMemory
from modular_tf.errors import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfMemoryError,
    ResourceExhaustedError,
)
from tests.device.arena_world import GIB, KIB, MIB, PaperMemory


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


def test_a_limit_may_be_beyond_all_memory(memory):
    arena = memory.arena(1 << 100)

    arena.allocate(1)

    assert arena.stats().bytes_limit == 1 << 62


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

    with pytest.raises(Exception, match="returned memory that it had given out before"):
        arena.allocate(2 * MIB)
    assert arena.stats().bytes_reserved == 2 * MIB


def test_closing_returns_the_regions(memory):
    with memory.arena() as arena:
        arena.free(arena.allocate(MIB))

    assert memory.regions == {}
    assert arena.stats().bytes_reserved == 0
    arena.close()
    with pytest.raises(ClosedError, match="closed"):
        arena.allocate(1)


def test_closing_waits_for_the_last_allocation(memory):
    arena = memory.arena()
    first, second = arena.allocate(MIB), arena.allocate(4 * MIB)
    arena.close()
    with pytest.raises(ClosedError):
        arena.allocate(1)

    arena.free(first)
    assert len(memory.regions) == 2
    assert "(closed)" in arena.picture()
    arena.free(second)
    assert memory.regions == {}


def test_a_collected_arena_returns_its_regions(memory):
    arena = memory.arena()
    arena.allocate(MIB)

    del arena
    gc.collect()

    assert memory.regions == {}


def test_an_arena_keeps_its_source():
    memory = PaperMemory()
    source = weakref.ref(memory)
    arena = memory.arena()
    del memory
    gc.collect()
    arena.free(arena.allocate(MIB))

    del arena
    gc.collect()

    assert source() is None


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


def test_many_regions_are_not_all_drawn(memory):
    arena = memory.arena(garbage_collection=False)
    memory.capacity = 0
    for _ in range(30):
        memory.capacity += 256
        arena.allocate(256)

    assert "and 6 more regions" in arena.picture()


class TestHostMemory:
    def test_is_memory(self):
        from modular_tf.native.ffi import ffi

        memory = HostMemory()
        arena = Arena(memory.source, GIB)
        address = arena.allocate(5000)

        ffi.buffer(ffi.cast("char *", address), 5000)[:] = b"x" * 5000

        assert memory.bytes_allocated == 2 * MIB

    def test_refuses_more_than_its_limit(self):
        memory = HostMemory(MIB)
        arena = Arena(memory.source, GIB)
        with pytest.raises(OutOfMemoryError):
            arena.allocate(2 * MIB)

        memory.bytes_limit = None
        arena.allocate(2 * MIB)

        assert memory.bytes_allocated == 2 * MIB

    def test_counts_what_came_back(self):
        memory = HostMemory(2 * MIB)
        for _ in range(3):
            with Arena(memory.source, GIB) as arena:
                arena.free(arena.allocate(MIB))

        assert memory.bytes_allocated == 0

    @pytest.mark.parametrize("alignment", [0, 1, 4, 24, 100])
    def test_refuses_other_alignments(self, alignment):
        with pytest.raises(InvalidArgumentError, match="power of two"):
            HostMemory(alignment=alignment)

    @pytest.mark.parametrize("alignment", [8, 64, 4096])
    def test_serves_arenas_at_any_alignment(self, alignment):
        arena = Arena(HostMemory(alignment=alignment).source, GIB)

        assert arena.allocate(2 * MIB) % 256 == 0
