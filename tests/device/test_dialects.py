"""Sizes and slots tell the four layouts apart (device-abi A6); tests/device/dialects loads them."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.loading.device_dialect import (
    UNWRITTEN_EXECUTOR_SIZE,
    UNWRITTEN_FNS_SIZE,
    UNWRITTEN_PLATFORM_SIZE,
    describe,
    dialects_of_registration,
    newest,
    refine_by_executor,
)

RFC = {Dialect.DEVICE_RFC}
V205 = {Dialect.DEVICE_V205}
OLD = {Dialect.DEVICE_V205, Dialect.DEVICE_V207}
HOSTED = {Dialect.DEVICE_V209}
NO_PLATFORM, NO_FNS, NO_EXECUTOR = (
    UNWRITTEN_PLATFORM_SIZE,
    UNWRITTEN_FNS_SIZE,
    UNWRITTEN_EXECUTOR_SIZE,
)


def words(*used: int) -> frozenset[int]:
    return frozenset(used)


ALL_SLOTS = words(*range(2, 11))


@pytest.mark.parametrize(
    ("platform", "fns", "slots", "expected"),
    [
        (40, 64, words(*range(2, 8)), RFC),
        (40, 96, words(*range(2, 12)), RFC),
        (NO_PLATFORM, 64, words(*range(2, 8)), RFC),
        (41, 80, words(*range(2, 10)), set()),  # those of TensorFlow 2.4, as the next two
        (48, NO_FNS, words(*range(2, 10)), set()),
        (NO_PLATFORM, 80, words(*range(2, 10)), set()),
        (34, 88, ALL_SLOTS, OLD),
        (35, 88, ALL_SLOTS, HOSTED),
        (40, NO_FNS, ALL_SLOTS, OLD | HOSTED),  # sizeof instead of the macro
        (NO_PLATFORM, NO_FNS, ALL_SLOTS, OLD | HOSTED),
        (NO_PLATFORM, NO_FNS, words(*range(2, 9)), OLD | HOSTED),
        (NO_PLATFORM, NO_FNS, words(*range(2, 8)), RFC),
        (NO_PLATFORM, NO_FNS, words(*range(2, 12)), RFC),
        (NO_PLATFORM, NO_FNS, words(*range(2, 6), 8, 9), RFC),
        (NO_PLATFORM, NO_FNS, words(*range(2, 10)), RFC),
        (0, 0, words(*range(2, 10), 15, 16), RFC),  # code of a neighbour
        (NO_PLATFORM, NO_FNS, words(), HOSTED),
        (1, NO_FNS, ALL_SLOTS, HOSTED),
        (35, 80, ALL_SLOTS, set()),
        (41, 80, ALL_SLOTS, set()),  # a slot behind the struct of that size
        (40, 64, ALL_SLOTS, set()),  # the slots of another layout
    ],
)
def test_registrations(platform, fns, slots, expected):
    assert dialects_of_registration(platform, fns, slots) == expected


FRONT = range(2, 32)


@pytest.mark.parametrize(
    ("before", "size", "slots", "expected"),
    [
        (OLD | HOSTED, 264, words(*FRONT, 32), V205),
        (OLD | HOSTED, 288, words(*FRONT, *range(32, 36)), {Dialect.DEVICE_V207, *HOSTED}),
        (OLD | HOSTED, NO_EXECUTOR, words(*FRONT, 32), V205),
        (OLD | HOSTED, 0, words(*FRONT, 32, 35, 36), V205),  # code of a neighbour
        (OLD | HOSTED, NO_EXECUTOR, words(*FRONT, 35), {Dialect.DEVICE_V207, *HOSTED}),
        (OLD | HOSTED, NO_EXECUTOR, words(*FRONT), OLD | HOSTED),
        (HOSTED, NO_EXECUTOR, words(*FRONT, 32), HOSTED),  # the platform's size knows better
        (RFC, NO_EXECUTOR, words(), RFC),
        (HOSTED, 264, words(*FRONT, *range(32, 36)), set()),
        (RFC, 288, words(*FRONT, 32), set()),
        (RFC, NO_EXECUTOR, words(24), RFC),  # one function, where only an executor has one
        (RFC, 40, words(*FRONT), set()),  # TensorFlow 2.4 fills SP_DeviceFns, as in the next
        (RFC, NO_EXECUTOR, words(2, 3, 4), set()),
    ],
)
def test_executors(before, size, slots, expected):
    assert refine_by_executor(frozenset(before), size, slots) == expected


def test_dialects_are_named_oldest_first():
    assert describe(V205 | RFC) == "the RFC of 2020-09-08 or TF 2.5-2.6"
    assert newest(RFC | V205) is Dialect.DEVICE_V205
