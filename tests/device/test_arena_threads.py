"""Many threads on one arena: nothing is given out twice, and the sums come out even."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf.errors import ClosedError, FailedPreconditionError, OutOfMemoryError
from modular_tf.native.ffi import ffi
from tests.device.arenas import GIB, KIB, MIB, Arena, HostMemory, PaperMemory

THREADS = 8
ROUNDS = 1000


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
    for _ in range(30):
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


# -- sources that take their time ----------------------------------------------------------------


def in_thread(function):
    """Call a function in another thread and wait for it, as a driver may that synchronises."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "the other thread waits for this one"
    return results[0]


def test_a_fork_while_the_source_is_asked_lets_the_child_ask(run_python):
    result = run_python(
        "import os, threading, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)  # of forks beside threads\n"
        "from tests.device.arenas import MIB, PaperMemory\n"
        "memory, asked, answer = PaperMemory(), threading.Event(), threading.Event()\n"
        "arena = memory.arena()\n"
        "memory.meanwhile = lambda: (asked.set(), answer.wait())\n"
        "thread = threading.Thread(target=arena.allocate, args=(MIB,))\n"
        "thread.start(); asked.wait()\n"
        "if os.fork() == 0:\n"
        "    memory.meanwhile = lambda: None\n"
        "    print('child', arena.allocate(MIB) != 0, flush=True)\n"
        "    os._exit(0)\n"
        "print('ended', os.wait()[1], flush=True)\n"
        "answer.set(); thread.join()\n"
        "memory.meanwhile = lambda: None\n"
    )
    assert (result.stdout, result.stderr) == ("child True\nended 0\n", "")


def test_a_source_may_wait_for_threads_that_use_the_arena():
    memory, faults = PaperMemory(), []
    arena = memory.arena()
    held = [arena.allocate(MIB), arena.allocate(MIB)]

    def use_the_arena():
        try:
            in_thread(lambda: (arena.free(held.pop()), arena.allocate(256), arena.stats()))
        except (AssertionError, IndexError) as error:
            faults.append(error)

    memory.meanwhile = use_the_arena
    arena.allocate(3 * MIB)
    memory.meanwhile = lambda: None  # when the arena is collected nobody uses it

    assert faults == []
    assert arena.stats().num_live_allocs == 3


def test_a_source_may_wait_for_them_when_it_gets_regions_back():
    memory, faults = PaperMemory(), []
    arena = memory.arena(6 * MIB)
    arena.free(arena.allocate(2 * MIB))

    def use_the_arena():
        try:
            in_thread(arena.picture)
        except AssertionError as error:
            faults.append(error)

    memory.meanwhile = use_the_arena
    arena.allocate(6 * MIB)  # returns the first region before
    memory.meanwhile = lambda: None

    assert faults == []


def test_threads_that_need_a_region_share_one():
    memory = PaperMemory()
    arena = memory.arena()
    asked, go_on = threading.Event(), threading.Event()
    memory.meanwhile = lambda: (asked.set(), go_on.wait())

    with ThreadPoolExecutor(THREADS) as threads:
        allocated = [threads.submit(arena.allocate, 1000) for _ in range(THREADS)]
        asked.wait()
        go_on.set()
        addresses = {future.result() for future in allocated}

    assert memory.asked == [2 * MIB]
    assert len(addresses) == THREADS


def test_who_waits_for_a_region_takes_what_is_freed():
    memory = PaperMemory()
    arena = memory.arena()
    first = arena.allocate(2 * MIB)
    asked, go_on = threading.Event(), threading.Event()
    memory.meanwhile = lambda: (asked.set(), go_on.wait())

    with ThreadPoolExecutor(2) as threads:
        large = threads.submit(arena.allocate, 4 * MIB)
        asked.wait()
        small = threads.submit(arena.allocate, MIB)
        arena.free(first)
        assert small.result() == first
        go_on.set()
        large.result()

    assert memory.asked == [2 * MIB, 4 * MIB]


def test_a_region_that_comes_when_the_arena_is_closed_goes_back():
    memory = PaperMemory()
    arena = memory.arena()
    memory.meanwhile = arena.close

    with pytest.raises(ClosedError, match="arena is closed"):
        arena.allocate(1)

    assert memory.regions == {}
    assert [size == given for _, size, given in memory.returned] == [True]


def test_closing_ends_the_wait_for_a_region():
    memory = PaperMemory()
    arena = memory.arena()
    asked, go_on = threading.Event(), threading.Event()
    memory.meanwhile = lambda: (asked.set(), go_on.wait())

    with ThreadPoolExecutor(2) as threads:
        allocated = [threads.submit(arena.allocate, 1)]
        asked.wait()
        allocated.append(threads.submit(arena.allocate, 1))
        arena.close()
        with pytest.raises(ClosedError):
            allocated[1].result()
        go_on.set()
        with pytest.raises(ClosedError):
            allocated[0].result()

    assert memory.regions == {}
