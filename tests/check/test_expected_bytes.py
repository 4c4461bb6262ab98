"""How a check of a device names the bytes that are wrong."""

from __future__ import annotations

import tracemalloc

import pytest

from modular_tf.check.device.workspace import expect_bytes
from modular_tf.check.expectation import Deviation

_MIB = 1 << 20


def test_the_first_wrong_byte_and_their_number_are_named():
    expected = bytes(200_000)
    found = bytearray(expected)
    for at in (70_001, 70_002, 199_999):
        found[at] = 7

    with pytest.raises(Deviation) as deviation:
        expect_bytes(bytes(found), expected, "memory")

    assert deviation.value.message == "memory differs in 3 of 200000 bytes, from byte 70001 on"
    assert deviation.value.found.startswith("07 07 00")


def test_mebibytes_that_are_all_wrong_take_no_gibibytes():
    found, expected = bytes(4 * _MIB), b"\x01" * (4 * _MIB)
    tracemalloc.start()
    try:
        with pytest.raises(Deviation, match=f"differs in {4 * _MIB} of {4 * _MIB} bytes"):
            expect_bytes(found, expected, "memory")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < _MIB
