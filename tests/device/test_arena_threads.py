"""Many threads on one arena: nothing is given out twice, and the sums come out even."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf.errors import OutOfMemoryError
from modular_tf.native.ffi import ffi
from tests.device.arenas import GIB, KIB, Arena, HostMemory

THREADS = 8
ROUNDS = 300


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
    arena = Arena(memory, limit)

    with ThreadPoolExecutor(THREADS) as threads:
        exhausted = list(threads.map(lambda number: use(arena, number), range(THREADS)))

    stats = arena.stats()
    assert any(exhausted) == (limit < GIB)
    assert stats.num_live_allocs == stats.bytes_in_use == 0
    assert stats.bytes_reserved == memory.bytes_allocated
    assert stats.largest_free_block_bytes <= stats.bytes_reserved
    arena.close()
    assert memory.bytes_allocated == 0
