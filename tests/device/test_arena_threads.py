"""Many threads on one arena: nothing is given out twice, and the sums come out even."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf.errors import ClosedError, OutOfMemoryError
from modular_tf.native.ffi import ffi
from tests.device.arenas import GIB, KIB, MIB, Arena, HostMemory, PaperMemory

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


# -- sources that take their time; test_pooled_lifetimes.py has those that wait for others ------


def test_a_fork_while_the_source_is_asked_lets_the_child_ask(run_forked):
    result = run_forked(
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


class Asked:
    """A source that is asked, and answers when it may."""

    def __init__(self):
        self.memory = PaperMemory()
        self.arena = self.memory.arena()
        self.asked, self.answer = threading.Event(), threading.Event()

    def wait(self):
        """Let the source wait from now on."""
        self.memory.meanwhile = lambda: (self.asked.set(), self.answer.wait())


def test_threads_that_need_a_region_share_one():
    source = Asked()
    source.wait()
    with ThreadPoolExecutor(THREADS) as threads:
        allocated = [threads.submit(source.arena.allocate, 1000) for _ in range(THREADS)]
        source.asked.wait()
        source.answer.set()
        addresses = {future.result() for future in allocated}

    assert source.memory.asked == [2 * MIB]
    assert len(addresses) == THREADS


def test_who_waits_for_a_region_takes_what_is_freed():
    source = Asked()
    first = source.arena.allocate(2 * MIB)
    source.wait()
    with ThreadPoolExecutor(2) as threads:
        large = threads.submit(source.arena.allocate, 4 * MIB)
        source.asked.wait()
        small = threads.submit(source.arena.allocate, MIB)
        source.arena.free(first)
        assert small.result() == first
        source.answer.set()
        large.result()

    assert source.memory.asked == [2 * MIB, 4 * MIB]


def test_closing_ends_the_wait_for_a_region():
    source = Asked()
    source.wait()
    with ThreadPoolExecutor(2) as threads:
        allocated = [threads.submit(source.arena.allocate, 1)]
        source.asked.wait()
        allocated.append(threads.submit(source.arena.allocate, 1))
        source.arena.close()
        with pytest.raises(ClosedError):
            allocated[1].result()
        source.answer.set()
        with pytest.raises(ClosedError):
            allocated[0].result()

    assert source.memory.regions == {}
