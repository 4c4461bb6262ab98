"""Checks of copies and fills.

Each has sizes of its own, so that one is told from all others by its size alone.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.device.workspace import expect_bytes, prepared

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.answers import Answer
    from modular_tf.check.device.operations import Memory
    from modular_tf.check.device.workspace import HostBuffer, Workspace
    from modular_tf.rules import Severity

copies = Suite("device", "copies", source="device.h")

_SIZES = (1, 2, 3, 5, 9, 63, 65, 255, 257, 1023, 4095, 4097)
_ROOM = 8192
_MIB = 1 << 20
_MANY = 64


@copies.check("SE-200", "sync_memcpy_htod", "sync_memcpy_dtoh")
def synchronous_copies_bring_bytes_back(device: Workspace) -> None:
    """What sync_memcpy_htod takes to the device, sync_memcpy_dtoh brings back.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Look at the direction and the size of both.
    """
    data, back, memory = device.bytes(4092), device.buffer(4092), device.memory(4092)
    device.sync_memcpy_htod(memory, device.buffer(data), 4092).must_be_ok()
    device.sync_memcpy_dtoh(back, memory, 4092).must_be_ok()
    expect_bytes(back.content(), data, "what sync_memcpy_dtoh brought back")


@copies.check("SE-201", "sync_memcpy_dtod")
def synchronous_copies_on_the_device(device: Workspace) -> None:
    """sync_memcpy_dtod copies one memory into the other.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Look at the order of its arguments: the target is first.
    """
    data = device.bytes(2048)
    source, target = device.filled(data), device.filled(bytes(2048))
    device.sync_memcpy_dtod(target, source, 2048).must_be_ok()
    device.must_hold(target, data, "the target of sync_memcpy_dtod")


@copies.check("SE-202", "memcpy_htod")
def a_stream_copies_to_the_device(device: Workspace) -> None:
    """memcpy_htod copies to the device, by the time that its stream is done.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Enqueue the copy on the stream, and have those who wait for the stream wait for it.
    """
    data, memory = device.bytes(4100), device.filled(bytes(4100))
    device.run(device.memcpy_htod, memory, device.buffer(data), 4100)
    device.must_hold(memory, data, "the target of memcpy_htod")


@copies.check("SE-203", "memcpy_dtoh")
def a_stream_copies_to_the_host(device: Workspace) -> None:
    """memcpy_dtoh copies to the host, by the time that its stream is done.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Enqueue the copy on the stream, and have those who wait for the stream wait for it.
    """
    data, back = device.bytes(4104), device.buffer(4104)
    device.run(device.memcpy_dtoh, back, device.filled(data), 4104)
    expect_bytes(back.content(), data, "the target of memcpy_dtoh")


@copies.check("SE-204", "memcpy_dtod")
def a_stream_copies_on_the_device(device: Workspace) -> None:
    """memcpy_dtod copies on the device, by the time that its stream is done.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Enqueue the copy on the stream; the target is the first of the two memories.
    """
    data, target = device.bytes(4108), device.filled(bytes(4108))
    device.run(device.memcpy_dtod, target, device.filled(data), 4108)
    device.must_hold(target, data, "the target of memcpy_dtod")


@copies.check("SE-205")
def copies_of_any_size(device: Workspace) -> None:
    """Copies take any number of bytes, odd ones and one byte too.

    Otherwise: Small tensors, such as flags and scalars, are cut or overwrite what follows.
    Remedy: Copy exactly `size` bytes, whatever their number.
    """
    memory = device.memory(_ROOM)
    for size in _SIZES:
        data, back = device.bytes(size), device.buffer(size)
        device.sync_memcpy_htod(memory, device.buffer(_ROOM), _ROOM).must_be_ok()
        device.run(device.memcpy_htod, memory, device.buffer(data), size)
        expected = data + bytes(_ROOM - size)
        device.must_hold(memory, expected, f"the target of a copy of {size} bytes")
        device.run(device.memcpy_dtoh, back, memory, size)
        expect_bytes(back.content(), data, f"what a copy of {size} bytes brought back")


@copies.check("SE-206", level=ROBUST)
def copies_of_no_bytes(device: Workspace) -> None:
    """A copy of no bytes succeeds, and writes nothing.

    Otherwise: Programs with empty tensors fail.
    Remedy: Return OK where the size is 0, before the driver is asked.
    """
    data = device.bytes(64)
    memory, other, host = device.filled(data), device.filled(data), device.buffer(data)
    device.run(device.memcpy_htod, memory, host, 0)
    device.run(device.memcpy_dtoh, host, memory, 0)
    device.sync_memcpy_htod(memory, host, 0).must_be_ok()
    device.sync_memcpy_dtoh(host, memory, 0).must_be_ok()
    if device.offers("memcpy_dtod"):
        device.run(device.memcpy_dtod, other, memory, 0)
    device.must_hold(memory, data, "the device's side of copies of 0 bytes")
    expect_bytes(host.content(), data, "the host's side of copies of 0 bytes")


def _severity_inside(device: Workspace) -> Severity | None:
    """Return how bad it is to know no addresses inside: less where no host pools the memory."""
    return None if device.access.tables.use_bfc_allocator else WARNING


def _copy_to_part(
    device: Workspace,
    before: bytes,
    at: int,
    data: bytes,
    source: Memory | None = None,
    *,
    severity: Severity | None = None,
) -> None:
    """Copy bytes of the host's, or of a memory, into a memory, all the rest of which stays."""
    memory, size = device.filled(before), len(data)
    if source is None:
        device.run(device.memcpy_htod, memory.part(at, size), device.buffer(data), size)
    else:
        device.run(device.memcpy_dtod, memory.part(at, size), source, size)
    expected = before[:at] + data + before[at + size :]
    what = f"a memory, after a copy of {size} bytes to its byte {at},"
    device.must_hold(memory, expected, what, severity=severity)


@copies.check("SE-207")
def copies_to_an_address_inside(device: Workspace) -> None:
    """A copy to an address inside an allocation writes there.

    Otherwise: Under an allocator that pools, which most programs have, every tensor is wrong.
    Remedy: Take `opaque` as an address that the host has counted on, not as a handle.
    Source: TensorFlow 2.21, observed
    """
    _copy_to_part(device, bytes(4096), 512, device.bytes(300), severity=_severity_inside(device))


@copies.check("SE-208")
def copies_from_an_address_inside(device: Workspace) -> None:
    """A copy from an address inside an allocation reads there.

    Otherwise: Under an allocator that pools, which most programs have, every tensor is wrong.
    Remedy: Take `opaque` as an address that the host has counted on, not as a handle.
    Source: TensorFlow 2.21, observed
    """
    data, back = device.bytes(4096), device.buffer(304)
    device.run(device.memcpy_dtoh, back, device.filled(data).part(512, 304), 304)
    what = "what a copy from byte 512 of a memory brought back"
    expect_bytes(back.content(), data[512:816], what, severity=_severity_inside(device))


@copies.check("SE-209", "memcpy_dtod")
def copies_between_addresses_inside(device: Workspace) -> None:
    """A copy on the device takes addresses inside allocations on both sides.

    Otherwise: Under an allocator that pools, which most programs have, every tensor is wrong.
    Remedy: Take `opaque` as an address that the host has counted on, not as a handle.
    Source: TensorFlow 2.21, observed
    """
    data = device.bytes(4096)
    source, severity = device.filled(data).part(512, 308), _severity_inside(device)
    _copy_to_part(device, bytes(4096), 1024, data[512:820], source, severity=severity)


@copies.check("SE-210")
def copies_to_the_host_write_nothing_beside(device: Workspace) -> None:
    """A copy to the host writes no byte beside the range.

    Otherwise: The heap of the process breaks, and it crashes later somewhere else.
    Remedy: Copy exactly `size` bytes: no rounding up to words or pages.
    """
    data, back = device.bytes(512), device.buffer(b"\x5a" * 512)
    memory = device.filled(data)
    device.run(device.memcpy_dtoh, back, memory, 333)
    expected = data[:333] + b"\x5a" * 179
    expect_bytes(back.content(), expected, "a host buffer, after a copy of 333 bytes to its front,")
    device.sync_memcpy_dtoh(back, memory, 331).must_be_ok()
    expect_bytes(back.content(), expected, "a host buffer, after a copy of 331 bytes to its front,")


@copies.check("SE-211")
def copies_to_the_device_write_nothing_beside(device: Workspace) -> None:
    """A copy to the device writes no byte beside the range.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the copy.
    Remedy: Copy exactly `size` bytes: no rounding up to words or pages.
    """
    _copy_to_part(device, b"\x5a" * 1024, 101, device.bytes(335))


@copies.check("SE-212", "memcpy_dtod")
def copies_on_the_device_write_nothing_beside(device: Workspace) -> None:
    """A copy on the device writes no byte beside the range.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the copy.
    Remedy: Copy exactly `size` bytes: no rounding up to words or pages.
    """
    data = device.bytes(1024)
    _copy_to_part(device, b"\x5a" * 1024, 103, data[:337], device.filled(data))


@copies.check("SE-213")
def copies_leave_their_source(device: Workspace) -> None:
    """Copies leave their source as it is.

    Otherwise: A tensor changes because another one was made from it.
    Remedy: Do not use the source as room for conversions.
    """
    data, memory = device.bytes(341), device.filled(bytes(341))
    host, back = device.buffer(data), device.buffer(341)
    device.run(device.memcpy_htod, memory, host, 341)
    expect_bytes(host.content(), data, "the source of memcpy_htod")
    device.run(device.memcpy_dtoh, back, memory, 341)
    device.must_hold(memory, data, "the source of memcpy_dtoh")
    if device.offers("memcpy_dtod"):
        device.run(device.memcpy_dtod, device.memory(341), memory, 341)
        device.must_hold(memory, data, "the source of memcpy_dtod")


def _there_and_back(device: Workspace, source: HostBuffer) -> None:
    """Copy to the device, on it, and to the host, on one stream."""
    size = source.size
    memory, other = device.memory(size), device.memory(size)
    stream, back = device.stream(), device.buffer(size)
    device.memcpy_htod(stream, memory, source, size).must_be_ok()
    if device.offers("memcpy_dtod"):
        device.memcpy_dtod(stream, other, memory, size).must_be_ok()
        memory = other
    device.memcpy_dtoh(stream, back, memory, size).must_be_ok()
    device.done(stream)
    if back.view != source.view:  # copies of them only where they differ
        what = f"what copies of {size} bytes brought back"
        expect_bytes(back.content(), source.content(), what)


@copies.check("SE-214", level=ROBUST)
def a_mebibyte(device: Workspace) -> None:
    """A mebibyte is copied whole, in each direction.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Look at how large copies are cut into pieces, and at the last piece.

    Random bytes, so that no page is like another.
    """
    _there_and_back(device, device.buffer(device.bytes(_MIB)))


@copies.check("SE-215", level=ROBUST)
def many_mebibytes(device: Workspace) -> None:
    """64 MiB are copied whole, in each direction.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Look at how large copies are cut into pieces, and at the last piece.

    The same random bytes in each mebibyte, but moved by one more each time.
    """
    source = device.buffer(_MANY * _MIB)
    pattern = device.bytes(_MIB + _MANY)
    for number in range(_MANY):
        source.view[number * _MIB : (number + 1) * _MIB] = pattern[number : number + _MIB]
    _there_and_back(device, source)


@copies.check("SE-216", "sync_memcpy_dtod", level=ROBUST, severity=WARNING)
def copies_between_ranges_that_overlap(device: Workspace) -> None:
    """A copy between ranges that overlap moves the bytes as they were, or is refused.

    Otherwise: Programs that shift data within a buffer get a mixture, and no error.
    Remedy: Copy as memmove does, or set TF_INVALID_ARGUMENT.
    Source: host recommendation
    """
    data = device.bytes(4096)
    for start, to in ((0, 1000), (1000, 0), (500, 500)):
        memory = device.filled(data)
        source, target = memory.part(start, 2000), memory.part(to, 2000)
        answer = device.sync_memcpy_dtod(target, source, 2000)
        if answer.ok:
            moved = data[:to] + data[start : start + 2000] + data[to + 2000 :]
            device.must_hold(memory, moved, f"a memory, after a copy from byte {start} to {to},")
        elif answer.code not in tuple(Code):
            answer.must_be_ok()


@copies.check("SE-217")
def a_host_buffer_is_free_behind_an_event(device: Workspace) -> None:
    """A host buffer may be written again once an event behind its copy is COMPLETE.

    Otherwise: TensorFlow gives the buffer to the next tensor, whose bytes end up on the device.
    Remedy: Pass the event only when the bytes were taken.
    Source: TensorFlow 2.21, observed
    """
    data, memory = device.bytes(347), device.filled(bytes(347))
    host, stream = device.buffer(data), device.stream()
    device.memcpy_htod(stream, memory, host, 347).must_be_ok()
    device.must_pass(device.marked(stream), "the event behind a copy")
    host.view[:] = bytes(347)
    device.must_hold(memory, data, "the target of memcpy_htod")


@copies.check("SE-218", "sync_memcpy_htod")
def synchronous_copies_are_done(device: Workspace) -> None:
    """The sync_ copies are done when they return.

    Otherwise: The caller frees or rewrites its buffer while the device still reads it.
    Remedy: Wait for the copy before returning.
    """
    data, memory = device.bytes(349), device.filled(bytes(349))
    host = device.buffer(data)
    device.sync_memcpy_htod(memory, host, 349).must_be_ok()
    host.view[:] = bytes(349)
    device.must_hold(memory, data, "the target of sync_memcpy_htod")


@copies.check("SE-219")
def host_buffers_at_any_address(device: Workspace) -> None:
    """Copies take host buffers at any address.

    Otherwise: Slices of arrays, and buffers of other libraries, cannot be copied.
    Remedy: Stage what the hardware cannot reach; ask for no alignment.
    """
    for shift in (1, 2, 4):
        data, memory = device.bytes(353), device.filled(bytes(353))
        back = device.buffer(353, shift=shift)
        device.run(device.memcpy_htod, memory, device.buffer(data, shift=shift), 353)
        device.run(device.memcpy_dtoh, back, memory, 353)
        what = f"what came back between host buffers {shift} beside an aligned address"
        expect_bytes(back.content(), data, what)


@copies.check("SE-220", "host_memory_allocate")
def copies_with_the_plugins_host_memory(device: Workspace) -> None:
    """Copies work with memory of host_memory_allocate on the host's side.

    Otherwise: TensorFlow's host buffers come from there: what is fast must be right too.
    Remedy: Treat it as any other host buffer, only faster.
    Source: TensorFlow 2.21, observed
    """
    data, memory = device.bytes(359), device.filled(bytes(359))
    source, back = device.host_block(359), device.host_block(359)
    source.view[:359] = data
    device.run(device.memcpy_htod, memory, source, 359)
    device.run(device.memcpy_dtoh, back, memory, 359)
    expect_bytes(bytes(back.view[:359]), data, "what came back between blocks of host memory")


@copies.check("SE-221", "unified_memory_allocate")
def copies_to_unified_memory(device: Workspace) -> None:
    """The host sees in unified memory what was copied there.

    Otherwise: A program that reads the memory directly sees old bytes.
    Remedy: Let unified memory be coherent by the time that the stream is done.
    """
    data, block = device.bytes(367), device.unified_block(367)
    device.run(device.memcpy_htod, block, device.buffer(data), 367)
    expect_bytes(bytes(block.view[:367]), data, "what the host sees in unified memory")


fills = Suite("device", "fills", source="device.h")

_FILL_SIZES = (1, 2, 3, 5, 7, 9, 63, 65, 255, 257, 4095)


def _words(value: int, n_bytes: int) -> bytes:
    return value.to_bytes(4, sys.byteorder) * (n_bytes // 4)


def _try_fill(
    rule_id: str, slot: str, *values: int, rule: tuple[str, str, str], of: int, at: int,
    expected: bytes,
) -> None:  # fmt: skip
    """Add the check of a rule that a slot fills a part of a memory, all the rest of which stays.

    Args:
        rule_id: Of the rule.
        slot: What fills.
        *values: What with.
        rule: Requirement, consequence and remedy.
        of: The bytes of the memory.
        at: Where the part begins.
        expected: What is to be there.
    """

    @fills.check(rule_id, slot, rule=(*rule, ""))
    def is_filled(device: Workspace) -> None:
        memory, size = device.filled(b"\x5a" * of), len(expected)
        fill: Callable[..., Answer] = getattr(device, slot)
        device.run(fill, memory.part(at, size), *values, size)
        rest = b"\x5a" * (of - at - size)
        device.must_hold(memory, b"\x5a" * at + expected + rest, f"a memory, after {slot},")


_WRONG = "Tensors start with wrong numbers, and no operation fails."
_NEIGHBOUR = "A neighbouring tensor changes, in programs that have nothing to do with the fill."
_EXACTLY = "The size counts bytes, in all three: write exactly so many."

_try_fill(
    "SE-223", "mem_zero", of=4096, at=0, expected=bytes(4096),
    rule=("mem_zero fills the range with 0.", _WRONG, "Write zeros over `size` bytes."),
)  # fmt: skip
_try_fill(
    "SE-224", "memset", 0x3C, of=4096, at=0, expected=b"\x3c" * 4096,
    rule=("memset fills the range with the byte.", _WRONG, "Write the pattern over `size` bytes."),
)  # fmt: skip
_try_fill(
    "SE-225", "memset32", 0x01020304, of=4096, at=0, expected=_words(0x01020304, 4096),
    rule=(
        "memset32 fills the range with the number, in the host's byte order.", _WRONG,
        "Write the four bytes of the pattern again and again; the size counts bytes, not words.",
    ),
)  # fmt: skip


@fills.check("SE-226", "memset")
def every_pattern(device: Workspace) -> None:
    """Fills take every pattern, those with the highest bit set too.

    Otherwise: Tensors start with wrong numbers, and no operation fails.
    Remedy: Keep the pattern unsigned on its way to the device.
    """
    memory = device.filled(b"\x5a" * 44)
    for value in (0, 1, 0x7F, 0x80, 0xFF):
        device.run(device.memset, memory, value, 44)
        device.must_hold(memory, bytes((value,)) * 44, f"a memory, after memset to {value:#x},")
    for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF) * device.offers("memset32"):
        device.run(device.memset32, memory, value, 44)
        device.must_hold(memory, _words(value, 44), f"a memory, after memset32 to {value:#x},")


_try_fill(
    "SE-227", "mem_zero", of=1024, at=101, expected=bytes(333),
    rule=("mem_zero writes no byte beside the range.", _NEIGHBOUR, _EXACTLY),
)  # fmt: skip
_try_fill(
    "SE-228", "memset", 0xC3, of=1024, at=103, expected=b"\xc3" * 335,
    rule=("memset writes no byte beside the range.", _NEIGHBOUR, _EXACTLY),
)  # fmt: skip
_try_fill(
    "SE-229", "memset32", 0x01020304, of=1024, at=104, expected=_words(0x01020304, 332),
    rule=("memset32 writes no byte beside the range.", _NEIGHBOUR, _EXACTLY),
)  # fmt: skip


@fills.check("SE-230", "mem_zero", "memset")
def fills_of_any_size(device: Workspace) -> None:
    """mem_zero and memset take any number of bytes, odd ones and one byte too.

    Otherwise: The end of a small tensor keeps what was there before.
    Remedy: The size counts bytes, in all three: write exactly so many.
    """
    for size in _FILL_SIZES:
        memory = device.filled(b"\x5a" * 4096)
        device.run(device.memset, memory, 0xC3, size)
        rest = b"\x5a" * (4096 - size)
        device.must_hold(memory, b"\xc3" * size + rest, f"memset of {size} bytes")
        device.run(device.mem_zero, memory, size)
        device.must_hold(memory, bytes(size) + rest, f"mem_zero of {size} bytes")


@fills.check("SE-231", "memset32", level=ROBUST)
def filling_with_a_number_that_does_not_fit(device: Workspace) -> None:
    """memset32 of a size that is no multiple of 4 writes nothing behind the size.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the fill.
    Remedy: Set TF_INVALID_ARGUMENT, or fill whole numbers only.

    13 bytes hold three numbers; a host that refuses the size itself keeps the rule too.
    """
    memory, stream = device.filled(b"\x5a" * 64), device.stream()
    device.memset32(stream, memory, 0x01020304, 13)
    device.done(stream)
    behind = device.content(memory)[13:]
    expect_bytes(behind, b"\x5a" * 51, "what lies behind 13 bytes, after memset32 of them,")


@fills.check("SE-232", "mem_zero", "memset", level=ROBUST)
def fills_of_no_bytes(device: Workspace) -> None:
    """A fill of no bytes succeeds, and writes nothing.

    Otherwise: Programs with empty tensors fail.
    Remedy: Return OK where the size is 0, before the driver is asked.
    """
    memory, stream = device.filled(b"\x5a" * 64), device.stream()
    device.mem_zero(stream, memory, 0).must_be_ok()
    device.memset(stream, memory, 1, 0).must_be_ok()
    if device.offers("memset32"):
        device.memset32(stream, memory, 1, 0).must_be_ok()
    device.done(stream)
    device.must_hold(memory, b"\x5a" * 64, "a memory, after fills of 0 bytes,")


@fills.check("SE-233", "memset", level=ROBUST)
def a_large_fill(device: Workspace) -> None:
    """A fill of 16 MiB is whole.

    Otherwise: Tensors start with wrong numbers, and no operation fails.
    Remedy: Look at how large fills are cut into pieces, and at the last piece.
    """
    memory = device.memory(16 * _MIB)
    device.run(device.memset, memory, 0xC3, 16 * _MIB)
    device.must_hold(memory, b"\xc3" * (16 * _MIB), "memset of 16 MiB")


@fills.check("SE-234", "memset")
def fills_in_the_order_of_the_stream(device: Workspace) -> None:
    """A fill happens in the order of its stream.

    Otherwise: A tensor is zeroed after it was filled with numbers, or before others have read it.
    Remedy: Enqueue the fill on the stream that it is given.
    """
    data, memory, back = device.bytes(351), device.filled(bytes(351)), device.buffer(351)
    stream = device.stream()
    gate = device.gate(stream)
    prepared(device.memcpy_htod(stream, memory, device.buffer(data), 351))
    device.memset(stream, memory, 0xC3, 349).must_be_ok()
    prepared(device.memcpy_dtoh(stream, back, memory, 351))
    gate.open()
    device.done(stream)
    expected = b"\xc3" * 349 + data[349:]
    expect_bytes(back.content(), expected, "what a fill between two copies left")
