"""Memory between guards, as it is lent to plugins."""

from __future__ import annotations

import ctypes

import pytest

from modular_tf.check.native.guarded_memory import GUARD, GuardedMemory
from modular_tf.check.native.raw_status import RawStatus, set_status


def _poke(memory, index, byte=0x41):
    ctypes.memset(memory.address + index, byte, 1)


@pytest.mark.parametrize(("size", "shift"), [(0, 0), (1, 63), (9, 1), (4096, 0)])
def test_all_of_the_block_may_be_written(size, shift):
    memory = GuardedMemory(size, shift=shift)
    assert memory.raw() == bytes(size)
    ctypes.memset(memory.address, 0x41, size)

    assert memory.breach() is None
    assert memory.raw() == b"A" * size
    assert memory.address % 64 == shift


@pytest.mark.parametrize(
    ("size", "at", "breach"),
    [
        (0, 0, "byte 0 of the 0 bytes that were lent"),
        (13, 13, "byte 13 of the 13 bytes that were lent"),
        (8, -1, "the byte 1 before the 8 bytes that were lent"),
        (8, -GUARD, f"the byte {GUARD} before the 8 bytes that were lent"),
    ],
)
def test_a_byte_beside_the_block_is_a_breach(size, at, breach):
    memory = GuardedMemory(size)
    _poke(memory, at)

    assert memory.breach() == breach


def test_a_changed_input_is_seen():
    memory = GuardedMemory.string(b"path")

    assert memory.is_unchanged
    _poke(memory, 4)
    assert not memory.is_unchanged
    assert memory.breach() is None


@pytest.mark.parametrize("poisoned", [False, True])
def test_a_status_shows_whether_anybody_set_it(poisoned):
    with RawStatus(poisoned=poisoned) as status:
        fresh = status.read()
        set_status(status.pointer, 5, "gone")
        content = status.read()

    assert (fresh.code, fresh.message, fresh.touched) == (2 if poisoned else 0, "", False)
    assert (content.code, content.message, content.touched) == (5, "gone", True)
