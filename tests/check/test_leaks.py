"""Memory that is allocated and deallocated many times is returned, or reported as lost."""

from __future__ import annotations

import mmap
from itertools import count

import pytest

from modular_tf.check.device.memory import must_return_memory
from modular_tf.check.device.workspace import expect_apart
from modular_tf.check.expectation import Deviation

_SIZE, _ROUNDS = 8 << 20, 16


def test_what_is_given_back_is_not_missed():
    must_return_memory(lambda: mmap.mmap(-1, _SIZE).close(), _SIZE, _ROUNDS, "work")


def test_what_the_process_keeps_is():
    kept = []

    with pytest.raises(Deviation, match="work leaves memory behind"):
        must_return_memory(lambda: kept.append(mmap.mmap(-1, _SIZE)), _SIZE, _ROUNDS, "work")


@pytest.mark.parametrize("every", [2, 3])
def test_what_it_keeps_now_and_then_is(every):
    kept, numbers = [], count()

    def work():
        taken = mmap.mmap(-1, _SIZE)
        if next(numbers) % every == 0:
            kept.append(taken)

    with pytest.raises(Deviation, match="work leaves memory behind"):
        must_return_memory(work, _SIZE, _ROUNDS, "work")


def test_what_an_allocator_keeps_for_later_is_not_missed():
    kept = []

    def work():
        if len(kept) < _ROUNDS:
            kept.append(mmap.mmap(-1, _SIZE))

    must_return_memory(work, _SIZE, 4 * _ROUNDS, "work")


def test_what_the_device_has_no_longer_is():
    free = [10 * _SIZE * _ROUNDS]

    def take():
        free[0] -= _SIZE

    with pytest.raises(Deviation, match="work leaves memory behind"):
        must_return_memory(take, _SIZE, _ROUNDS, "work", free=lambda: free[0])


@pytest.mark.parametrize("ranges", [[], [(0, 8)], [(8, 4), (0, 8)], [(0, 0), (0, 8)]])
def test_ranges_that_touch_are_apart(ranges):
    expect_apart(ranges, "memories")


@pytest.mark.parametrize("ranges", [[(0, 8), (7, 1)], [(4, 4), (0, 5)], [(0, 8), (0, 8)]])
def test_ranges_that_share_a_byte_are_not(ranges):
    with pytest.raises(Deviation, match="two memories overlap"):
        expect_apart(ranges, "memories")
