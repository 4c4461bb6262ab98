"""Checks of `mem_zero`, `memset` and `memset32`. Each has sizes of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Memory

CHECKS = CheckList("device", "fills")

_SIZES = (1, 2, 3, 5, 7, 9, 63, 65, 255, 257, 4095)
_MIB = 1 << 20


def _zero(ground: DeviceGround, memory: Memory, n_bytes: int) -> None:
    stream = ground.stream()
    expect_ok(ground.subject.mem_zero(stream, memory, n_bytes), "mem_zero")
    ground.done(stream)


def _fill(ground: DeviceGround, memory: Memory, value: int, n_bytes: int) -> None:
    stream = ground.stream()
    expect_ok(ground.subject.memset(stream, memory, value, n_bytes), "memset")
    ground.done(stream)


def _fill_words(ground: DeviceGround, memory: Memory, value: int, n_bytes: int) -> None:
    stream = ground.stream()
    expect_ok(ground.subject.memset32(stream, memory, value, n_bytes), "memset32")
    ground.done(stream)


def _words(value: int, n_bytes: int) -> bytes:
    return value.to_bytes(4, sys.byteorder) * (n_bytes // 4)


@CHECKS.check("SE-223", Level.WORKS, needs=("mem_zero",))
def zeroing(ground: DeviceGround) -> None:
    """4 KiB that were something else."""
    memory = ground.filled(b"\x5a" * 4096)
    _zero(ground, memory, 4096)
    expect_bytes(ground.content(memory), bytes(4096), "a memory, after mem_zero,")


@CHECKS.check("SE-224", Level.WORKS, needs=("memset",))
def filling_with_a_byte(ground: DeviceGround) -> None:
    """Tried with 4 KiB."""
    memory = ground.filled(bytes(4096))
    _fill(ground, memory, 0x3C, 4096)
    expect_bytes(ground.content(memory), b"\x3c" * 4096, "a memory, after memset to 0x3c,")


@CHECKS.check("SE-225", Level.WORKS, needs=("memset32",))
def filling_with_a_number(ground: DeviceGround) -> None:
    """4 KiB with a number of four different bytes."""
    memory = ground.filled(bytes(4096))
    _fill_words(ground, memory, 0x01020304, 4096)
    what = "a memory, after memset32 to 0x01020304,"
    expect_bytes(ground.content(memory), _words(0x01020304, 4096), what)


@CHECKS.check("SE-226", Level.WORKS, needs=("memset",))
def every_pattern(ground: DeviceGround) -> None:
    """Those at the ends of the range, and next to them."""
    memory = ground.filled(b"\x5a" * 44)
    for value in (0, 1, 0x7F, 0x80, 0xFF):
        _fill(ground, memory, value, 44)
        what = f"a memory, after memset to {value:#x},"
        expect_bytes(ground.content(memory), bytes((value,)) * 44, what)
    for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF) * ground.subject.offers("memset32"):
        _fill_words(ground, memory, value, 44)
        what = f"a memory, after memset32 to {value:#x},"
        expect_bytes(ground.content(memory), _words(value, 44), what)


def _beside(content: bytes, at: int) -> bytes:
    """Return what a memory of 1024 bytes holds after some were filled."""
    return b"\x5a" * at + content + b"\x5a" * (1024 - at - len(content))


@CHECKS.check("SE-227", Level.WORKS, needs=("mem_zero",))
def zeroing_writes_nothing_beside(ground: DeviceGround) -> None:
    """Tried with 333 bytes after byte 101."""
    memory = ground.filled(b"\x5a" * 1024)
    _zero(ground, memory.part(101, 333), 333)
    expect_bytes(ground.content(memory), _beside(bytes(333), 101), "mem_zero of a part")


@CHECKS.check("SE-228", Level.WORKS, needs=("memset",))
def filling_writes_nothing_beside(ground: DeviceGround) -> None:
    """Tried with 335 bytes after byte 103."""
    memory = ground.filled(b"\x5a" * 1024)
    _fill(ground, memory.part(103, 335), 0xC3, 335)
    expect_bytes(ground.content(memory), _beside(b"\xc3" * 335, 103), "memset of a part")


@CHECKS.check("SE-229", Level.WORKS, needs=("memset32",))
def filling_with_a_number_writes_nothing_beside(ground: DeviceGround) -> None:
    """Tried with 332 bytes after byte 104."""
    memory = ground.filled(b"\x5a" * 1024)
    _fill_words(ground, memory.part(104, 332), 0x01020304, 332)
    expected = _beside(_words(0x01020304, 332), 104)
    expect_bytes(ground.content(memory), expected, "memset32 of a part")


@CHECKS.check("SE-230", Level.WORKS, needs=("mem_zero", "memset"))
def fills_of_any_size(ground: DeviceGround) -> None:
    """Each size over something else, by both functions."""
    for size in _SIZES:
        memory = ground.filled(b"\x5a" * 4096)
        _fill(ground, memory, 0xC3, size)
        expected = b"\xc3" * size + b"\x5a" * (4096 - size)
        expect_bytes(ground.content(memory), expected, f"memset of {size} bytes")
        _zero(ground, memory, size)
        expected = bytes(size) + b"\x5a" * (4096 - size)
        expect_bytes(ground.content(memory), expected, f"mem_zero of {size} bytes")


@CHECKS.check("SE-231", Level.ROBUST, needs=("memset32",))
def filling_with_a_number_that_does_not_fit(ground: DeviceGround) -> None:
    """13 bytes hold three numbers; a host that refuses the size itself keeps the rule too."""
    memory, stream = ground.filled(b"\x5a" * 64), ground.stream()
    ground.subject.memset32(stream, memory, 0x01020304, 13)
    ground.done(stream)
    behind = ground.content(memory)[13:]
    expect_bytes(behind, b"\x5a" * 51, "what lies behind 13 bytes, after memset32 of them,")


@CHECKS.check("SE-232", Level.ROBUST, needs=("mem_zero", "memset"))
def fills_of_no_bytes(ground: DeviceGround) -> None:
    """All three of them; nothing may change."""
    memory, stream, subject = ground.filled(b"\x5a" * 64), ground.stream(), ground.subject
    expect_ok(subject.mem_zero(stream, memory, 0), "mem_zero of 0 bytes")
    expect_ok(subject.memset(stream, memory, 1, 0), "memset of 0 bytes")
    if subject.offers("memset32"):
        expect_ok(subject.memset32(stream, memory, 1, 0), "memset32 of 0 bytes")
    ground.done(stream)
    expect_bytes(ground.content(memory), b"\x5a" * 64, "a memory, after fills of 0 bytes,")


@CHECKS.check("SE-233", Level.ROBUST, needs=("memset",))
def a_large_fill(ground: DeviceGround) -> None:
    """Tried with 16 MiB."""
    memory = ground.memory(16 * _MIB)
    _fill(ground, memory, 0xC3, 16 * _MIB)
    expect_bytes(ground.content(memory), b"\xc3" * (16 * _MIB), "memset of 16 MiB")


@CHECKS.check("SE-234", Level.WORKS, needs=("memset",))
def fills_in_the_order_of_the_stream(ground: DeviceGround) -> None:
    """Behind one copy and in front of another, while the stream is busy."""
    data, memory, back = ground.bytes(351), ground.filled(bytes(351)), ground.buffer(351)
    stream, subject = ground.stream(), ground.subject
    gate = ground.gate(stream)
    prepared(subject.memcpy_htod(stream, memory, ground.buffer(data), 351), "memcpy_htod")
    expect_ok(subject.memset(stream, memory, 0xC3, 349), "memset")
    prepared(subject.memcpy_dtoh(stream, back, memory, 351), "memcpy_dtoh")
    gate.open()
    ground.done(stream)
    expected = b"\xc3" * 349 + data[349:]
    expect_bytes(back.content(), expected, "what a fill between two copies left")
