"""Memory between guards, as it is lent to plugins."""

from __future__ import annotations

import ctypes

import pytest

from modular_tf.check.native.guarded_memory import GUARD, GuardedMemory
from modular_tf.check.native.raw_status import RawStatus, set_status


def _poke(memory, index, byte=0x41):
    ctypes.memset(memory.address + index, byte, 1)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 4096])
def test_all_of_the_block_may_be_written(size):
    memory = GuardedMemory(size)
    ctypes.memset(memory.address, 0x41, size)

    assert memory.breach() is None
    assert memory.raw() == b"A" * size
    assert memory.address % 8 == 0


@pytest.mark.parametrize("size", [0, 1, 8, 13])
@pytest.mark.parametrize("beyond", [0, 1, GUARD - 1])
def test_a_byte_behind_the_block_is_a_breach(size, beyond):
    memory = GuardedMemory(size)
    _poke(memory, size + beyond)

    assert memory.breach() == f"byte {size + beyond} of the {size} bytes that were lent"


@pytest.mark.parametrize("before", [1, GUARD])
def test_a_byte_before_the_block_is_a_breach(before):
    memory = GuardedMemory(8)
    _poke(memory, -before)

    assert memory.breach() == f"the byte {before} before the 8 bytes that were lent"


def test_a_changed_input_is_seen():
    memory = GuardedMemory.string(b"path")

    assert memory.is_unchanged
    _poke(memory, 4)
    assert not memory.is_unchanged
    assert memory.breach() is None


def test_words_are_words():
    memory = GuardedMemory.words(1, 2**64 - 1)

    assert (memory.size, memory.word(), memory.word(1)) == (16, 1, 2**64 - 1)


def test_scribbling_keeps_to_the_block():
    memory = GuardedMemory(5, b"hello")
    memory.scribble()

    assert memory.raw() == b"\xdd" * 5
    assert memory.breach() is None


@pytest.mark.parametrize("poisoned", [False, True])
def test_a_fresh_status_shows_that_nobody_set_it(poisoned):
    with RawStatus(poisoned=poisoned) as status:
        content = status.read()

    assert (content.code, content.message, content.touched) == (2 if poisoned else 0, "", False)


@pytest.mark.parametrize(("code", "message"), [(0, ""), (5, ""), (5, "gone"), (0, "fine")])
def test_a_status_that_is_set_shows_it(code, message):
    with RawStatus() as status:
        set_status(status.pointer, code, message)
        content = status.read()

    expected = message if code else ""
    assert (content.code, content.message, content.touched) == (code, expected, True)
