"""Many threads on one arena: nothing is given out twice, and the sums come out even."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf.device.arena import Arena
from modular_tf.device.arena_source import HostMemory
from modular_tf.errors import FailedPreconditionError, OutOfMemoryError
from modular_tf.native.ffi import ffi
from tests.device.arena_world import GIB, KIB

THREADS = 8
ROUNDS = 1500


def view(address, n_bytes):
    return ffi.buffer(ffi.cast("char *", address), n_bytes)


def use(arena, number):
    """Allocate, write and check, free, in random order; return how often it was out of memory."""
    dice = random.Random(number)
    mark = bytes([number + 1])
    held = []
    exhausted = 0
    for _ in range(ROUNDS):
        if held and dice.random() < 0.5:
            address, size = held.pop(dice.randrange(len(held)))
            assert view(address, size)[:] == mark * size
            arena.free(address)
            continue
        size = dice.randint(1, 1 << dice.randint(1, 16))
        try:
            address = arena.allocate(size)
        except OutOfMemoryError:
            exhausted += 1
        else:
            view(address, size)[:] = mark * size
            held.append((address, size))
    for address, _ in held:
        arena.free(address)
    return exhausted


# Some requests alone are larger than the second limit, however the threads take turns.
@pytest.mark.parametrize("limit", [GIB, 48 * KIB], ids=["room for all", "too little"])
def test_threads_never_share_memory(limit):
    memory = HostMemory()
    arena = Arena(memory.source, limit)

    with ThreadPoolExecutor(THREADS) as threads:
        exhausted = list(threads.map(lambda number: use(arena, number), range(THREADS)))

    stats = arena.stats()
    assert any(exhausted) == (limit < GIB)
    assert stats.num_live_allocs == stats.bytes_in_use == 0
    assert stats.bytes_reserved == memory.bytes_allocated
    assert stats.largest_free_block_bytes <= stats.bytes_reserved
    arena.close()
    assert memory.bytes_allocated == 0


def test_of_many_frees_of_one_allocation_one_counts():
    arena = Arena(HostMemory().source, GIB)
    for _ in range(50):
        address = arena.allocate(1000)
        start = threading.Barrier(THREADS)

        def free(address=address, start=start):
            start.wait()
            try:
                arena.free(address)
            except FailedPreconditionError:
                return 0
            return 1

        with ThreadPoolExecutor(THREADS) as threads:
            freed = [threads.submit(free) for _ in range(THREADS)]
        assert sum(future.result() for future in freed) == 1
    assert arena.stats().num_live_allocs == 0


def test_closing_under_load_ends_with_nothing_held():
    memory = HostMemory()
    arena = Arena(memory.source, GIB)
    started = threading.Barrier(THREADS + 1)

    def work():
        held = [arena.allocate(4096)]
        started.wait()
        try:
            while True:
                held.append(arena.allocate(4096))
                arena.free(held.pop(0))
        except ValueError:  # closed
            for address in held:
                arena.free(address)

    with ThreadPoolExecutor(THREADS) as threads:
        done = [threads.submit(work) for _ in range(THREADS)]
        started.wait()
        arena.close()
        for future in done:
            future.result()

    assert memory.bytes_allocated == 0
