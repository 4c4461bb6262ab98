"""Leaks are seen by repetition, and early."""

from __future__ import annotations

import mmap
import os
from contextlib import ExitStack
from itertools import count

import pytest

from modular_tf.check.expectation import Deviation
from modular_tf.check.options import Options
from modular_tf.check.under_load import must_not_grow, rounds_of

_ROUNDS = 200


@pytest.fixture
def held():
    """What a test leaks, until its end."""
    with ExitStack() as stack:
        yield stack


def test_what_gives_everything_back_does_not_leak():
    rounds = []

    def work():
        rounds.append(os.close(os.open(os.devnull, os.O_RDONLY)))

    must_not_grow(work, _ROUNDS, "opening")

    assert len(rounds) > _ROUNDS


def test_descriptors_are_seen_long_before_there_are_none_left(held):
    opened = []

    def work():
        opened.append(os.open(os.devnull, os.O_RDONLY))
        held.callback(os.close, opened[-1])

    with pytest.raises(Deviation, match="opening leaves descriptors behind"):
        must_not_grow(work, 100_000, "opening")
    assert len(opened) < _ROUNDS


@pytest.mark.parametrize("every", [2, 3, 8])
@pytest.mark.parametrize("rounds", [20, _ROUNDS])
def test_what_leaks_now_and_then_is_seen(held, every, rounds):
    numbers = count()

    def work():
        if next(numbers) % min(every, rounds // 5) == 0:
            held.callback(os.close, os.open(os.devnull, os.O_RDONLY))

    with pytest.raises(Deviation, match="opening leaves descriptors behind"):
        must_not_grow(work, rounds, "opening")


@pytest.mark.parametrize("size", [3, 12, 30])
def test_a_pool_that_fills_is_no_leak(held, size):
    opened = []

    def work():
        if len(opened) < size:
            opened.append(os.open(os.devnull, os.O_RDONLY))
            held.callback(os.close, opened[-1])

    must_not_grow(work, _ROUNDS, "opening")


def test_mappings_are_seen(held):
    def work():
        # Pages of other rights lie between them, or the kernel would make them one.
        for protection in (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE):
            held.enter_context(mmap.mmap(-1, mmap.PAGESIZE, prot=protection))

    with pytest.raises(Deviation, match="mapping leaves mappings behind"):
        must_not_grow(work, _ROUNDS, "mapping")


def test_what_is_made_once_and_kept_is_no_leak(held):
    made = []

    def work():
        if not made:
            made.append(os.open(os.devnull, os.O_RDONLY))
            held.callback(os.close, made[0])

    must_not_grow(work, 2, "opening")


@pytest.mark.parametrize(
    ("options", "most", "rounds"), [({}, 5000, 2000), ({"repeat": 20}, 5000, 20), ({}, 256, 256)]
)
def test_the_profile_says_how_often(options, most, rounds):
    assert rounds_of(Options(**options), most) == rounds
