"""Layouts other than that of TF 2.9-2.21 are told apart and refused by name (device-abi A6)."""

from __future__ import annotations

import struct

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.loading.device_dialect import (
    UNWRITTEN_EXECUTOR_SIZE,
    UNWRITTEN_FNS_SIZE,
    UNWRITTEN_PLATFORM_SIZE,
    dialects_of_registration,
    refine_by_executor,
)

RFC = {Dialect.DEVICE_RFC}
V204 = {Dialect.DEVICE_V204}
OLD = {Dialect.DEVICE_V205, Dialect.DEVICE_V207}
HOSTED = {Dialect.DEVICE_V209}
NO_PLATFORM, NO_FNS = UNWRITTEN_PLATFORM_SIZE, UNWRITTEN_FNS_SIZE


def words(*used: int, size: int = 128) -> bytes:
    return struct.pack(f"={size // 8}Q", *(index in used for index in range(size // 8)))


ALL_SLOTS = words(*range(2, 11))


@pytest.mark.parametrize(
    ("platform", "fns", "slots", "expected"),
    [
        (40, 64, words(*range(2, 8)), RFC),
        (40, 96, words(*range(2, 12)), RFC),
        (40, NO_FNS, words(*range(2, 10)), RFC),
        (NO_PLATFORM, 64, words(*range(2, 8)), RFC),
        (41, 80, words(*range(2, 10)), V204),
        (48, NO_FNS, words(*range(2, 10)), V204),
        (NO_PLATFORM, 80, words(*range(2, 10)), V204),
        (34, 88, ALL_SLOTS, OLD),
        (34, NO_FNS, ALL_SLOTS, OLD),
        (35, 88, ALL_SLOTS, HOSTED),
        (35, NO_FNS, ALL_SLOTS, HOSTED),
        (40, NO_FNS, ALL_SLOTS, OLD | HOSTED),  # sizeof instead of the macro
        (40, 88, ALL_SLOTS, OLD | HOSTED),
        (NO_PLATFORM, 88, ALL_SLOTS, OLD | HOSTED),
        (NO_PLATFORM, NO_FNS, ALL_SLOTS, OLD | HOSTED),
        (NO_PLATFORM, NO_FNS, words(*range(2, 9)), OLD | HOSTED),
        (NO_PLATFORM, NO_FNS, words(*range(2, 8)), RFC),
        (NO_PLATFORM, NO_FNS, words(*range(2, 8), 10, 11), RFC),
        (NO_PLATFORM, NO_FNS, words(*range(2, 10)), RFC | V204),
        (NO_PLATFORM, NO_FNS, words(), HOSTED),
        (0, 0, ALL_SLOTS, OLD | HOSTED),
        (1, NO_FNS, ALL_SLOTS, HOSTED),
        (35, 80, ALL_SLOTS, set()),
        (41, 88, ALL_SLOTS, set()),
    ],
)
def test_registrations(platform, fns, slots, expected):
    assert dialects_of_registration(platform, fns, slots) == expected


@pytest.mark.parametrize(
    ("size", "slots", "expected"),
    [
        (264, words(*range(2, 33), size=512), {Dialect.DEVICE_V205}),
        (288, words(*range(2, 36), size=512), {Dialect.DEVICE_V207, *HOSTED}),
        (UNWRITTEN_EXECUTOR_SIZE, words(*range(2, 33), size=512), {Dialect.DEVICE_V205}),
        (UNWRITTEN_EXECUTOR_SIZE, words(*range(2, 36), size=512), OLD | HOSTED),
    ],
)
def test_executors(size, slots, expected):
    assert refine_by_executor(frozenset(OLD | HOSTED), size, slots) == expected


def test_an_executor_never_leaves_nothing():
    assert refine_by_executor(frozenset(HOSTED), 264, bytes(512)) == HOSTED


def refused_layout(steered):
    error = steered.refusal()
    assert error.rule == "SE-003"
    assert "this version of modular_tf hosts TF 2.9-2.21" in error.message
    assert steered.calls[-2:] == ["destroy_platform", "destroy_platform_fns"]
    return error.message


def test_tf_2_5(steered):
    steered.set_field("SP_Platform", "struct_size", 34)
    steered.set_field("SP_StreamExecutor", "struct_size", 264)
    for offset in (264, 272, 280):
        steered.set_bytes("SP_StreamExecutor", offset, 8, 0)
    assert "layout of TF 2.5-2.6;" in refused_layout(steered)


def test_tf_2_7(steered):
    steered.set_field("SP_Platform", "struct_size", 34)
    assert "layout of TF 2.7-2.8;" in refused_layout(steered)


def test_tf_2_5_or_2_7_when_the_executor_cannot_be_asked(steered):
    steered.set_field("SP_Platform", "struct_size", 34)
    steered.set_field("SP_PlatformFns", "create_stream_executor", 0)
    assert "layout of TF 2.5-2.6 or TF 2.7-2.8;" in refused_layout(steered)


def test_tf_2_5_that_writes_no_size(steered):
    for table in ("SP_Platform", "SP_PlatformFns", "SP_StreamExecutor"):
        steered.leave_size(table)
    for offset in (264, 272, 280):
        steered.set_bytes("SP_StreamExecutor", offset, 8, 0)
    assert "layout of TF 2.5-2.6;" in refused_layout(steered)


def test_tf_2_4(steered):
    steered.set_field("SP_Platform", "struct_size", 41)
    steered.set_field("SP_PlatformFns", "struct_size", 80)
    assert "layout of TF 2.4;" in refused_layout(steered)
    assert "create_device_fns" not in steered.calls


def test_rfc_that_assigns_whole_structs(steered):
    steered.set_field("SP_Platform", "struct_size", 40)
    steered.set_field("SP_PlatformFns", "struct_size", 64)
    steered.set_bytes("SP_PlatformFns", 88, 8, steered.code)  # behind what TF's stack has
    assert "layout of the RFC of 2020-09-08;" in refused_layout(steered)


def test_rfc_that_writes_no_size(steered):
    steered.leave_size("SP_Platform")
    steered.leave_size("SP_PlatformFns")
    for offset in (64, 72, 80):
        steered.set_bytes("SP_PlatformFns", offset, 8, 0)
    assert "layout of the RFC of 2020-09-08;" in refused_layout(steered)


def test_rfc_or_tf_2_4(steered):
    steered.leave_size("SP_Platform")
    steered.leave_size("SP_PlatformFns")
    steered.set_bytes("SP_PlatformFns", 80, 8, 0)
    assert "layout of the RFC of 2020-09-08 or TF 2.4;" in refused_layout(steered)


def test_sizes_of_different_layouts(steered):
    steered.set_field("SP_PlatformFns", "struct_size", 80)
    error = steered.refusal()
    assert error.rule == "SE-004"
    assert "35" in error.message
    assert "80" in error.message
    assert steered.calls == ["init", "destroy_platform", "destroy_platform_fns"]
