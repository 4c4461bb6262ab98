"""Leaks are seen by repetition, and early: of the process, and of the memory of a device."""

from __future__ import annotations

import mmap
import os
from contextlib import ExitStack
from itertools import count

import pytest

from modular_tf.check.device.memory import must_return_memory
from modular_tf.check.device.workspace import expect_apart
from modular_tf.check.expectation import Deviation
from modular_tf.check.options import Options
from modular_tf.check.under_load import must_not_grow, rounds_of

_ROUNDS = 200
_SIZE, _FEW_ROUNDS = 8 << 20, 16


@pytest.fixture
def opened():
    """What a test has opened and not closed, until its end."""
    numbers = []
    yield numbers
    for number in numbers:
        os.close(number)


def _open():
    return os.open(os.devnull, os.O_RDONLY)


@pytest.mark.parametrize(("every", "rounds"), [(1, 2000), (3, _ROUNDS), (8, 20)])
def test_what_leaks_now_and_then_is_seen(opened, every, rounds):
    """And long before nothing can be opened."""
    numbers = count()

    def work():
        if next(numbers) % min(every, rounds // 5) == 0:
            opened.append(_open())

    with pytest.raises(Deviation, match="opening leaves descriptors behind"):
        must_not_grow(work, rounds, "opening")
    assert len(opened) < _ROUNDS


@pytest.mark.parametrize(("size", "rounds"), [(0, _ROUNDS), (30, _ROUNDS), (1, 2)])
def test_a_pool_that_fills_is_no_leak(opened, size, rounds):
    must_not_grow(lambda: len(opened) < size and opened.append(_open()), rounds, "opening")


def test_mappings_are_seen():
    with ExitStack() as held:

        def work():
            # Pages of other rights lie between them, or the kernel would make them one.
            for protection in (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE):
                held.enter_context(mmap.mmap(-1, mmap.PAGESIZE, prot=protection))

        with pytest.raises(Deviation, match="mapping leaves mappings behind"):
            must_not_grow(work, _ROUNDS, "mapping")


@pytest.mark.parametrize(("repeat", "most", "rounds"), [(20, 5000, 20), (300, 256, 256)])
def test_the_option_decides_how_often(repeat, most, rounds):
    assert rounds_of(Options(repeat=repeat), most) == rounds


# ---- The memory of a device ----


def test_memory_that_is_given_back_or_pooled_is_not_missed():
    must_return_memory(lambda: mmap.mmap(-1, _SIZE).close(), _SIZE, _FEW_ROUNDS, "work")

    pool = []  # of an allocator, for later

    def work():
        if len(pool) < _FEW_ROUNDS:
            pool.append(mmap.mmap(-1, _SIZE))

    must_return_memory(work, _SIZE, 4 * _FEW_ROUNDS, "work")


@pytest.mark.parametrize("every", [1, 3])
def test_memory_that_stays_with_the_process_is_missed(every):
    kept, numbers = [], count()

    def work():
        taken = mmap.mmap(-1, _SIZE)
        if next(numbers) % every == 0:
            kept.append(taken)

    with pytest.raises(Deviation, match="work leaves memory behind"):
        must_return_memory(work, _SIZE, _FEW_ROUNDS, "work")


def test_memory_that_the_device_has_no_longer_is_missed():
    free = [10 * _SIZE * _FEW_ROUNDS]

    def take():
        free[0] -= _SIZE

    with pytest.raises(Deviation, match="work leaves memory behind"):
        must_return_memory(take, _SIZE, _FEW_ROUNDS, "work", free=lambda: free[0])


def test_ranges_that_touch_are_apart_and_those_that_share_a_byte_are_not():
    for ranges in ([], [(8, 4), (0, 8)], [(0, 0), (0, 8)]):
        expect_apart(ranges, "memories")
    for ranges in ([(0, 8), (7, 1)], [(4, 4), (0, 5)], [(0, 8), (0, 8)]):
        with pytest.raises(Deviation, match="two memories overlap"):
            expect_apart(ranges, "memories")
