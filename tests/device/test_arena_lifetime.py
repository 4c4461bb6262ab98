"""Who keeps what alive, what closing does, and host memory as a source."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import pytest

from modular_tf.errors import (
    ClosedError,
)
from modular_tf.native.ffi import ffi
from tests.device.arena_world import GIB, MIB, PaperMemory
from tests.device.arenas import Arena, HostMemory
from tests.device.conftest import ROOT


@pytest.fixture
def memory():
    return PaperMemory()


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


def test_a_source_serves_several_arenas(run_python):
    """In a child process: what is released once too often is used after it was freed."""
    child = run_python(
        "import gc, sys; sys.path.append(sys.argv[1])\n"
        "from tests.device.arenas import Arena, HostMemory\n"
        "memory = HostMemory()\n"
        "source = memory.source\n"
        "for _ in range(3):\n"
        "    with Arena(source, 1 << 24) as arena:\n"
        "        arena.free(arena.allocate(100))\n"
        "    del arena\n"
        "    gc.collect()\n"
        "del source\n"
        "others = [HostMemory(7) for _ in range(100)]  # where a freed one would be\n"
        "print(memory.bytes_allocated)\n"
        "memory.bytes_limit = 1\n"
        "print({other.bytes_limit for other in others})\n"
        "print(all(Arena(other.source, 1 << 24) for other in others))\n",
        ROOT,
    )

    assert child.stdout.split() == ["0", "{7}", "True"]


@pytest.mark.parametrize("together", [False, True])
def test_a_source_counts_its_arenas(together):
    users = []

    @ffi.callback("void (void *)")
    def retain(_context):
        users.append("arena")

    @ffi.callback("void (void *)")
    def release(_context):
        users.pop()

    memory = PaperMemory()
    source = replace(memory.source, retain=retain, release=release)
    arenas = [Arena(source, GIB)]
    if together:
        arenas.append(Arena(source, GIB))
    assert len(users) == len(arenas)

    arenas.clear()
    gc.collect()

    assert users == []


@pytest.mark.parametrize("alignment", [8, 64, 4096])
def test_regions_may_have_any_alignment(alignment):
    arena = Arena(HostMemory(alignment=alignment).source, GIB)

    assert arena.allocate(2 * MIB) % 256 == 0
