"""Checks of `mem_zero`, `memset` and `memset32`. Each has sizes of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, Suite
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.ground import prepared

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Memory

suite = Suite("device", "fills", source="device.h")

_SIZES = (1, 2, 3, 5, 7, 9, 63, 65, 255, 257, 4095)
_MIB = 1 << 20


def _zero(device: DeviceGround, memory: Memory, n_bytes: int) -> None:
    stream = device.stream()
    device.subject.mem_zero(stream, memory, n_bytes).must_be_ok()
    device.done(stream)


def _fill(device: DeviceGround, memory: Memory, value: int, n_bytes: int) -> None:
    stream = device.stream()
    device.subject.memset(stream, memory, value, n_bytes).must_be_ok()
    device.done(stream)


def _fill_words(device: DeviceGround, memory: Memory, value: int, n_bytes: int) -> None:
    stream = device.stream()
    device.subject.memset32(stream, memory, value, n_bytes).must_be_ok()
    device.done(stream)


def _words(value: int, n_bytes: int) -> bytes:
    return value.to_bytes(4, sys.byteorder) * (n_bytes // 4)


@suite.check("SE-223", "mem_zero")
def zeroing(device: DeviceGround) -> None:
    """mem_zero fills the range with 0.

    Otherwise: Tensors start with wrong numbers, and no operation fails.
    Remedy: Write zeros over `size` bytes.
    """
    memory = device.filled(b"\x5a" * 4096)
    _zero(device, memory, 4096)
    expect_bytes(device.content(memory), bytes(4096), "a memory, after mem_zero,")


@suite.check("SE-224", "memset")
def filling_with_a_byte(device: DeviceGround) -> None:
    """memset fills the range with the byte.

    Otherwise: Tensors start with wrong numbers, and no operation fails.
    Remedy: Write the pattern over `size` bytes.
    """
    memory = device.filled(bytes(4096))
    _fill(device, memory, 0x3C, 4096)
    expect_bytes(device.content(memory), b"\x3c" * 4096, "a memory, after memset to 0x3c,")


@suite.check("SE-225", "memset32")
def filling_with_a_number(device: DeviceGround) -> None:
    """memset32 fills the range with the number, in the host's byte order.

    Otherwise: Tensors start with wrong numbers, and no operation fails.
    Remedy: Write the four bytes of the pattern again and again; the size counts bytes, not words.
    """
    memory = device.filled(bytes(4096))
    _fill_words(device, memory, 0x01020304, 4096)
    what = "a memory, after memset32 to 0x01020304,"
    expect_bytes(device.content(memory), _words(0x01020304, 4096), what)


@suite.check("SE-226", "memset")
def every_pattern(device: DeviceGround) -> None:
    """Fills take every pattern, those with the highest bit set too.

    Otherwise: Tensors start with wrong numbers, and no operation fails.
    Remedy: Keep the pattern unsigned on its way to the device.
    """
    memory = device.filled(b"\x5a" * 44)
    for value in (0, 1, 0x7F, 0x80, 0xFF):
        _fill(device, memory, value, 44)
        what = f"a memory, after memset to {value:#x},"
        expect_bytes(device.content(memory), bytes((value,)) * 44, what)
    for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF) * device.subject.offers("memset32"):
        _fill_words(device, memory, value, 44)
        what = f"a memory, after memset32 to {value:#x},"
        expect_bytes(device.content(memory), _words(value, 44), what)


def _beside(content: bytes, at: int) -> bytes:
    """Return what a memory of 1024 bytes holds after some were filled."""
    return b"\x5a" * at + content + b"\x5a" * (1024 - at - len(content))


@suite.check("SE-227", "mem_zero")
def zeroing_writes_nothing_beside(device: DeviceGround) -> None:
    """mem_zero writes no byte beside the range.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the fill.
    Remedy: The size counts bytes, in all three: write exactly so many.
    """
    memory = device.filled(b"\x5a" * 1024)
    _zero(device, memory.part(101, 333), 333)
    expect_bytes(device.content(memory), _beside(bytes(333), 101), "mem_zero of a part")


@suite.check("SE-228", "memset")
def filling_writes_nothing_beside(device: DeviceGround) -> None:
    """memset writes no byte beside the range.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the fill.
    Remedy: The size counts bytes, in all three: write exactly so many.
    """
    memory = device.filled(b"\x5a" * 1024)
    _fill(device, memory.part(103, 335), 0xC3, 335)
    expect_bytes(device.content(memory), _beside(b"\xc3" * 335, 103), "memset of a part")


@suite.check("SE-229", "memset32")
def filling_with_a_number_writes_nothing_beside(device: DeviceGround) -> None:
    """memset32 writes no byte beside the range.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the fill.
    Remedy: The size counts bytes, in all three: write exactly so many.
    """
    memory = device.filled(b"\x5a" * 1024)
    _fill_words(device, memory.part(104, 332), 0x01020304, 332)
    expected = _beside(_words(0x01020304, 332), 104)
    expect_bytes(device.content(memory), expected, "memset32 of a part")


@suite.check("SE-230", "mem_zero", "memset")
def fills_of_any_size(device: DeviceGround) -> None:
    """mem_zero and memset take any number of bytes, odd ones and one byte too.

    Otherwise: The end of a small tensor keeps what was there before.
    Remedy: The size counts bytes, in all three: write exactly so many.
    """
    for size in _SIZES:
        memory = device.filled(b"\x5a" * 4096)
        _fill(device, memory, 0xC3, size)
        expected = b"\xc3" * size + b"\x5a" * (4096 - size)
        expect_bytes(device.content(memory), expected, f"memset of {size} bytes")
        _zero(device, memory, size)
        expected = bytes(size) + b"\x5a" * (4096 - size)
        expect_bytes(device.content(memory), expected, f"mem_zero of {size} bytes")


@suite.check("SE-231", "memset32", level=ROBUST)
def filling_with_a_number_that_does_not_fit(device: DeviceGround) -> None:
    """memset32 of a size that is no multiple of 4 writes nothing behind the size.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the fill.
    Remedy: Set TF_INVALID_ARGUMENT, or fill whole numbers only.

    13 bytes hold three numbers; a host that refuses the size itself keeps the rule too.
    """
    memory, stream = device.filled(b"\x5a" * 64), device.stream()
    device.subject.memset32(stream, memory, 0x01020304, 13)
    device.done(stream)
    behind = device.content(memory)[13:]
    expect_bytes(behind, b"\x5a" * 51, "what lies behind 13 bytes, after memset32 of them,")


@suite.check("SE-232", "mem_zero", "memset", level=ROBUST)
def fills_of_no_bytes(device: DeviceGround) -> None:
    """A fill of no bytes succeeds, and writes nothing.

    Otherwise: Programs with empty tensors fail.
    Remedy: Return OK where the size is 0, before the driver is asked.
    """
    memory, stream, subject = device.filled(b"\x5a" * 64), device.stream(), device.subject
    subject.mem_zero(stream, memory, 0).must_be_ok()
    subject.memset(stream, memory, 1, 0).must_be_ok()
    if subject.offers("memset32"):
        subject.memset32(stream, memory, 1, 0).must_be_ok()
    device.done(stream)
    expect_bytes(device.content(memory), b"\x5a" * 64, "a memory, after fills of 0 bytes,")


@suite.check("SE-233", "memset", level=ROBUST)
def a_large_fill(device: DeviceGround) -> None:
    """A fill of 16 MiB is whole.

    Otherwise: Tensors start with wrong numbers, and no operation fails.
    Remedy: Look at how large fills are cut into pieces, and at the last piece.
    """
    memory = device.memory(16 * _MIB)
    _fill(device, memory, 0xC3, 16 * _MIB)
    expect_bytes(device.content(memory), b"\xc3" * (16 * _MIB), "memset of 16 MiB")


@suite.check("SE-234", "memset")
def fills_in_the_order_of_the_stream(device: DeviceGround) -> None:
    """A fill happens in the order of its stream.

    Otherwise: A tensor is zeroed after it was filled with numbers, or before others have read it.
    Remedy: Enqueue the fill on the stream that it is given.
    """
    data, memory, back = device.bytes(351), device.filled(bytes(351)), device.buffer(351)
    stream, subject = device.stream(), device.subject
    gate = device.gate(stream)
    prepared(subject.memcpy_htod(stream, memory, device.buffer(data), 351), "memcpy_htod")
    subject.memset(stream, memory, 0xC3, 349).must_be_ok()
    prepared(subject.memcpy_dtoh(stream, back, memory, 351), "memcpy_dtoh")
    gate.open()
    device.done(stream)
    expected = b"\xc3" * 349 + data[349:]
    expect_bytes(back.content(), expected, "what a fill between two copies left")
