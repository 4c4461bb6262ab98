"""Checks of copies.

Each has sizes of its own, so that a copy is told from all others by its size alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.rules import Severity

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.host_buffer import HostBuffer
    from modular_tf.check.device.subject import Answer, Bytes, Memory

suite = Suite("device", "copies", source="device.h")

_SIZES = (1, 2, 3, 5, 9, 63, 65, 255, 257, 1023, 4095, 4097)
_ROOM = 8192
_MIB = 1 << 20
_MANY = 64


def to_device(device: DeviceGround, target: Memory, source: Bytes, n_bytes: int) -> None:
    """Copy by memcpy_htod on a stream, and wait."""
    stream = device.stream()
    device.subject.memcpy_htod(stream, target, source, n_bytes).must_be_ok()
    device.done(stream)


def to_host(device: DeviceGround, target: Bytes, source: Memory, n_bytes: int) -> None:
    """Copy by memcpy_dtoh on a stream, and wait."""
    stream = device.stream()
    device.subject.memcpy_dtoh(stream, target, source, n_bytes).must_be_ok()
    device.done(stream)


def on_device(device: DeviceGround, target: Memory, source: Memory, n_bytes: int) -> None:
    """Copy by memcpy_dtod on a stream, and wait."""
    stream = device.stream()
    device.subject.memcpy_dtod(stream, target, source, n_bytes).must_be_ok()
    device.done(stream)


@suite.check("SE-200", "sync_memcpy_htod", "sync_memcpy_dtoh")
def synchronous_copies_bring_bytes_back(device: DeviceGround) -> None:
    """What sync_memcpy_htod takes to the device, sync_memcpy_dtoh brings back.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Look at the direction and the size of both.
    """
    data, back = device.bytes(4092), device.buffer(4092)
    memory, subject = device.memory(4092), device.subject
    subject.sync_memcpy_htod(memory, device.buffer(data), 4092).must_be_ok()
    subject.sync_memcpy_dtoh(back, memory, 4092).must_be_ok()
    expect_bytes(back.content(), data, "what sync_memcpy_dtoh brought back")


@suite.check("SE-201", "sync_memcpy_dtod")
def synchronous_copies_on_the_device(device: DeviceGround) -> None:
    """sync_memcpy_dtod copies one memory into the other.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Look at the order of its arguments: the target is first.
    """
    data = device.bytes(2048)
    source, target = device.filled(data), device.filled(bytes(2048))
    device.subject.sync_memcpy_dtod(target, source, 2048).must_be_ok()
    expect_bytes(device.content(target), data, "the target of sync_memcpy_dtod")


@suite.check("SE-202", "memcpy_htod")
def a_stream_copies_to_the_device(device: DeviceGround) -> None:
    """memcpy_htod copies to the device, by the time that its stream is done.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Enqueue the copy on the stream, and have those who wait for the stream wait for it.
    """
    data, memory = device.bytes(4100), device.filled(bytes(4100))
    to_device(device, memory, device.buffer(data), 4100)
    expect_bytes(device.content(memory), data, "the target of memcpy_htod")


@suite.check("SE-203", "memcpy_dtoh")
def a_stream_copies_to_the_host(device: DeviceGround) -> None:
    """memcpy_dtoh copies to the host, by the time that its stream is done.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Enqueue the copy on the stream, and have those who wait for the stream wait for it.
    """
    data, back = device.bytes(4104), device.buffer(4104)
    to_host(device, back, device.filled(data), 4104)
    expect_bytes(back.content(), data, "the target of memcpy_dtoh")


@suite.check("SE-204", "memcpy_dtod")
def a_stream_copies_on_the_device(device: DeviceGround) -> None:
    """memcpy_dtod copies on the device, by the time that its stream is done.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Enqueue the copy on the stream; the target is the first of the two memories.
    """
    data, target = device.bytes(4108), device.filled(bytes(4108))
    on_device(device, target, device.filled(data), 4108)
    expect_bytes(device.content(target), data, "the target of memcpy_dtod")


@suite.check("SE-205")
def copies_of_any_size(device: DeviceGround) -> None:
    """Copies take any number of bytes, odd ones and one byte too.

    Otherwise: Small tensors, such as flags and scalars, are cut or overwrite what follows.
    Remedy: Copy exactly `size` bytes, whatever their number.
    """
    memory, subject = device.memory(_ROOM), device.subject
    for size in _SIZES:
        zeros, back = device.buffer(_ROOM), device.buffer(size)
        data = device.bytes(size)
        subject.sync_memcpy_htod(memory, zeros, _ROOM).must_be_ok()
        to_device(device, memory, device.buffer(data), size)
        found = device.content(memory)
        expect_bytes(found, data + bytes(_ROOM - size), f"the target of a copy of {size} bytes")
        to_host(device, back, memory, size)
        expect_bytes(back.content(), data, f"what a copy of {size} bytes brought back")


@suite.check("SE-206", level=ROBUST)
def copies_of_no_bytes(device: DeviceGround) -> None:
    """A copy of no bytes succeeds, and writes nothing.

    Otherwise: Programs with empty tensors fail.
    Remedy: Return OK where the size is 0, before the driver is asked.
    """
    data, subject = device.bytes(64), device.subject
    memory, other, host = device.filled(data), device.filled(data), device.buffer(data)
    stream = device.stream()
    answers = {
        "memcpy_htod": subject.memcpy_htod(stream, memory, host, 0),
        "memcpy_dtoh": subject.memcpy_dtoh(stream, host, memory, 0),
        "sync_memcpy_htod": subject.sync_memcpy_htod(memory, host, 0),
        "sync_memcpy_dtoh": subject.sync_memcpy_dtoh(host, memory, 0),
    }
    if subject.offers("memcpy_dtod"):
        answers["memcpy_dtod"] = subject.memcpy_dtod(stream, other, memory, 0)
    for answer in answers.values():
        answer.must_be_ok()
    device.done(stream)
    for what, found in (("device", device.content(memory)), ("host", host.content())):
        expect_bytes(found, data, f"the {what}'s side of copies of 0 bytes")


def _severity_inside(device: DeviceGround) -> Severity | None:
    """Say how bad it is to know no addresses inside: less where no host pools the memory."""
    return None if device.subject.platform().use_bfc else Severity.WARNING


@suite.check("SE-207")
def copies_to_an_address_inside(device: DeviceGround) -> None:
    """A copy to an address inside an allocation writes there.

    Otherwise: Under an allocator that pools, which most programs have, every tensor is wrong.
    Remedy: Take `opaque` as an address that the host has counted on, not as a handle.
    Source: TensorFlow 2.21, observed
    """
    data, memory = device.bytes(300), device.filled(bytes(4096))
    to_device(device, memory.part(512, 300), device.buffer(data), 300)
    expected = bytes(512) + data + bytes(4096 - 812)
    what = "a memory, after a copy of 300 bytes to its byte 512,"
    expect_bytes(device.content(memory), expected, what, severity=_severity_inside(device))


@suite.check("SE-208")
def copies_from_an_address_inside(device: DeviceGround) -> None:
    """A copy from an address inside an allocation reads there.

    Otherwise: Under an allocator that pools, which most programs have, every tensor is wrong.
    Remedy: Take `opaque` as an address that the host has counted on, not as a handle.
    Source: TensorFlow 2.21, observed
    """
    data, back = device.bytes(4096), device.buffer(304)
    to_host(device, back, device.filled(data).part(512, 304), 304)
    what = "what a copy from byte 512 of a memory brought back"
    expect_bytes(back.content(), data[512:816], what, severity=_severity_inside(device))


@suite.check("SE-209", "memcpy_dtod")
def copies_between_addresses_inside(device: DeviceGround) -> None:
    """A copy on the device takes addresses inside allocations on both sides.

    Otherwise: Under an allocator that pools, which most programs have, every tensor is wrong.
    Remedy: Take `opaque` as an address that the host has counted on, not as a handle.
    Source: TensorFlow 2.21, observed
    """
    data, target = device.bytes(4096), device.filled(bytes(4096))
    on_device(device, target.part(1024, 308), device.filled(data).part(512, 308), 308)
    expected = bytes(1024) + data[512:820] + bytes(4096 - 1332)
    what = "a memory, after a copy of 308 bytes from byte 512 to byte 1024,"
    expect_bytes(device.content(target), expected, what, severity=_severity_inside(device))


@suite.check("SE-210")
def copies_to_the_host_write_nothing_beside(device: DeviceGround) -> None:
    """A copy to the host writes no byte beside the range.

    Otherwise: The heap of the process breaks, and it crashes later somewhere else.
    Remedy: Copy exactly `size` bytes: no rounding up to words or pages.
    """
    data, back = device.bytes(512), device.buffer(b"\x5a" * 512)
    memory = device.filled(data)
    to_host(device, back, memory, 333)
    expected = data[:333] + b"\x5a" * 179
    expect_bytes(back.content(), expected, "a host buffer, after a copy of 333 bytes to its front,")
    device.subject.sync_memcpy_dtoh(back, memory, 331).must_be_ok()
    expect_bytes(back.content(), expected, "a host buffer, after a copy of 331 bytes to its front,")


@suite.check("SE-211")
def copies_to_the_device_write_nothing_beside(device: DeviceGround) -> None:
    """A copy to the device writes no byte beside the range.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the copy.
    Remedy: Copy exactly `size` bytes: no rounding up to words or pages.
    """
    data, memory = device.bytes(335), device.filled(b"\x5a" * 1024)
    to_device(device, memory.part(101, 335), device.buffer(data), 335)
    expected = b"\x5a" * 101 + data + b"\x5a" * (1024 - 436)
    expect_bytes(device.content(memory), expected, "a memory, after 335 bytes to its byte 101,")


@suite.check("SE-212", "memcpy_dtod")
def copies_on_the_device_write_nothing_beside(device: DeviceGround) -> None:
    """A copy on the device writes no byte beside the range.

    Otherwise: A neighbouring tensor changes, in programs that have nothing to do with the copy.
    Remedy: Copy exactly `size` bytes: no rounding up to words or pages.
    """
    data, memory = device.bytes(1024), device.filled(b"\x5a" * 1024)
    on_device(device, memory.part(103, 337), device.filled(data), 337)
    expected = b"\x5a" * 103 + data[:337] + b"\x5a" * (1024 - 440)
    expect_bytes(device.content(memory), expected, "a memory, after 337 bytes to its byte 103,")


@suite.check("SE-213")
def copies_leave_their_source(device: DeviceGround) -> None:
    """Copies leave their source as it is.

    Otherwise: A tensor changes because another one was made from it.
    Remedy: Do not use the source as room for conversions.
    """
    data, memory = device.bytes(341), device.filled(bytes(341))
    host, back = device.buffer(data), device.buffer(341)
    to_device(device, memory, host, 341)
    expect_bytes(host.content(), data, "the source of memcpy_htod")
    to_host(device, back, memory, 341)
    expect_bytes(device.content(memory), data, "the source of memcpy_dtoh")
    if device.subject.offers("memcpy_dtod"):
        on_device(device, device.memory(341), memory, 341)
        expect_bytes(device.content(memory), data, "the source of memcpy_dtod")


def _there_and_back(device: DeviceGround, source: HostBuffer) -> None:
    """Copy to the device, on it, and to the host, on one stream."""
    size, subject = len(source), device.subject
    memory, other = device.memory(size), device.memory(size)
    stream, back = device.stream(), device.buffer(size)
    subject.memcpy_htod(stream, memory, source, size).must_be_ok()
    if subject.offers("memcpy_dtod"):
        subject.memcpy_dtod(stream, other, memory, size).must_be_ok()
        memory = other
    subject.memcpy_dtoh(stream, back, memory, size).must_be_ok()
    device.done(stream)
    if back.view != source.view:  # copies of them only where they differ
        what = f"what copies of {size} bytes brought back"
        expect_bytes(back.content(), source.content(), what)


@suite.check("SE-214", level=ROBUST)
def a_mebibyte(device: DeviceGround) -> None:
    """A mebibyte is copied whole, in each direction.

    Otherwise: Tensors hold wrong numbers, and no operation fails.
    Remedy: Look at how large copies are cut into pieces, and at the last piece.

    Random bytes, so that no page is like another.
    """
    _there_and_back(device, device.buffer(device.bytes(_MIB)))


@suite.check("SE-215", level=ROBUST)
def many_mebibytes(device: DeviceGround) -> None:
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


def _overlapping(answer: Answer, found: bytes, data: bytes, start: int, to: int, n: int) -> None:
    """Look at a memory in which n bytes went from `start` to `to`."""
    moved = bytearray(data)
    moved[to : to + n] = data[start : start + n]
    if answer.ok:
        expect_bytes(found, bytes(moved), f"a memory, after a copy from byte {start} to byte {to},")
    elif not 1 <= answer.code <= max(Code):
        answer.must_be_ok()


@suite.check("SE-216", "sync_memcpy_dtod", level=ROBUST, severity=WARNING)
def copies_between_ranges_that_overlap(device: DeviceGround) -> None:
    """A copy between ranges that overlap moves the bytes as they were, or is refused.

    Otherwise: Programs that shift data within a buffer get a mixture, and no error.
    Remedy: Copy as memmove does, or set TF_INVALID_ARGUMENT.
    Source: host recommendation
    """
    data, subject = device.bytes(4096), device.subject
    for start, to in ((0, 1000), (1000, 0), (500, 500)):
        memory = device.filled(data)
        source, target = memory.part(start, 2000), memory.part(to, 2000)
        answer = subject.sync_memcpy_dtod(target, source, 2000)
        _overlapping(answer, device.content(memory), data, start, to, 2000)


@suite.check("SE-217")
def a_host_buffer_is_free_behind_an_event(device: DeviceGround) -> None:
    """A host buffer may be written again once an event behind its copy is COMPLETE.

    Otherwise: TensorFlow gives the buffer to the next tensor, whose bytes end up on the device.
    Remedy: Pass the event only when the bytes were taken.
    Source: TensorFlow 2.21, observed
    """
    data, memory = device.bytes(347), device.filled(bytes(347))
    host, stream = device.buffer(data), device.stream()
    device.subject.memcpy_htod(stream, memory, host, 347).must_be_ok()
    expect_passed(device, marked(device, stream), "the event behind a copy")
    host.view[:] = bytes(347)
    expect_bytes(device.content(memory), data, "the target of memcpy_htod")


@suite.check("SE-218", "sync_memcpy_htod")
def synchronous_copies_are_done(device: DeviceGround) -> None:
    """The sync_ copies are done when they return.

    Otherwise: The caller frees or rewrites its buffer while the device still reads it.
    Remedy: Wait for the copy before returning.
    """
    data, memory = device.bytes(349), device.filled(bytes(349))
    host = device.buffer(data)
    device.subject.sync_memcpy_htod(memory, host, 349).must_be_ok()
    host.view[:] = bytes(349)
    expect_bytes(device.content(memory), data, "the target of sync_memcpy_htod")


@suite.check("SE-219")
def host_buffers_at_any_address(device: DeviceGround) -> None:
    """Copies take host buffers at any address.

    Otherwise: Slices of arrays, and buffers of other libraries, cannot be copied.
    Remedy: Stage what the hardware cannot reach; ask for no alignment.
    """
    for shift in (1, 2, 4):
        data, memory = device.bytes(353), device.filled(bytes(353))
        back = device.buffer(353, shift=shift)
        to_device(device, memory, device.buffer(data, shift=shift), 353)
        to_host(device, back, memory, 353)
        what = f"what came back between host buffers {shift} beside an aligned address"
        expect_bytes(back.content(), data, what)


@suite.check("SE-220", "host_memory_allocate")
def copies_with_the_plugins_host_memory(device: DeviceGround) -> None:
    """Copies work with memory of host_memory_allocate on the host's side.

    Otherwise: TensorFlow's host buffers come from there: what is fast must be right too.
    Remedy: Treat it as any other host buffer, only faster.
    Source: TensorFlow 2.21, observed
    """
    data, memory = device.bytes(359), device.filled(bytes(359))
    source, back = device.host_block(359), device.host_block(359)
    source.view[:359] = data
    to_device(device, memory, source, 359)
    to_host(device, back, memory, 359)
    expect_bytes(bytes(back.view[:359]), data, "what came back between blocks of host memory")


@suite.check("SE-221", "unified_memory_allocate")
def copies_to_unified_memory(device: DeviceGround) -> None:
    """The host sees in unified memory what was copied there.

    Otherwise: A program that reads the memory directly sees old bytes.
    Remedy: Let unified memory be coherent by the time that the stream is done.
    """
    data, block = device.bytes(367), device.unified_block(367)
    if block.memory is not None:
        to_device(device, block.memory, device.buffer(data), 367)
        expect_bytes(bytes(block.view[:367]), data, "what the host sees in unified memory")
