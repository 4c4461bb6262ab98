"""Checks of copies.

Each has sizes of its own, so that a copy is told from all others by its size alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.device.event_progress import expect_passed, marked
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.level import Level
from modular_tf.rules import Severity

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.host_buffer import HostBuffer
    from modular_tf.check.device.subject import Answer, Bytes, Memory

CHECKS = CheckList("device", "copies")

_SIZES = (1, 2, 3, 5, 9, 63, 65, 255, 257, 1023, 4095, 4097)
_ROOM = 8192
_MIB = 1 << 20
_MANY = 64


def to_device(ground: DeviceGround, target: Memory, source: Bytes, n_bytes: int) -> None:
    """Copy by memcpy_htod on a stream, and wait."""
    stream = ground.stream()
    expect_ok(ground.subject.memcpy_htod(stream, target, source, n_bytes), "memcpy_htod")
    ground.done(stream)


def to_host(ground: DeviceGround, target: Bytes, source: Memory, n_bytes: int) -> None:
    """Copy by memcpy_dtoh on a stream, and wait."""
    stream = ground.stream()
    expect_ok(ground.subject.memcpy_dtoh(stream, target, source, n_bytes), "memcpy_dtoh")
    ground.done(stream)


def on_device(ground: DeviceGround, target: Memory, source: Memory, n_bytes: int) -> None:
    """Copy by memcpy_dtod on a stream, and wait."""
    stream = ground.stream()
    expect_ok(ground.subject.memcpy_dtod(stream, target, source, n_bytes), "memcpy_dtod")
    ground.done(stream)


@CHECKS.check("SE-200", Level.WORKS, needs=("sync_memcpy_htod", "sync_memcpy_dtoh"))
def synchronous_copies_bring_bytes_back(ground: DeviceGround) -> None:
    """4092 bytes to the device and back."""
    data, back = ground.bytes(4092), ground.buffer(4092)
    memory, subject = ground.memory(4092), ground.subject
    expect_ok(subject.sync_memcpy_htod(memory, ground.buffer(data), 4092), "sync_memcpy_htod")
    expect_ok(subject.sync_memcpy_dtoh(back, memory, 4092), "sync_memcpy_dtoh")
    expect_bytes(back.content(), data, "what sync_memcpy_dtoh brought back")


@CHECKS.check("SE-201", Level.WORKS, needs=("sync_memcpy_dtod",))
def synchronous_copies_on_the_device(ground: DeviceGround) -> None:
    """2 KiB from one memory to another."""
    data = ground.bytes(2048)
    source, target = ground.filled(data), ground.filled(bytes(2048))
    expect_ok(ground.subject.sync_memcpy_dtod(target, source, 2048), "sync_memcpy_dtod")
    expect_bytes(ground.content(target), data, "the target of sync_memcpy_dtod")


@CHECKS.check("SE-202", Level.WORKS, needs=("memcpy_htod",))
def a_stream_copies_to_the_device(ground: DeviceGround) -> None:
    """Tried with 4100 bytes."""
    data, memory = ground.bytes(4100), ground.filled(bytes(4100))
    to_device(ground, memory, ground.buffer(data), 4100)
    expect_bytes(ground.content(memory), data, "the target of memcpy_htod")


@CHECKS.check("SE-203", Level.WORKS, needs=("memcpy_dtoh",))
def a_stream_copies_to_the_host(ground: DeviceGround) -> None:
    """Tried with 4104 bytes."""
    data, back = ground.bytes(4104), ground.buffer(4104)
    to_host(ground, back, ground.filled(data), 4104)
    expect_bytes(back.content(), data, "the target of memcpy_dtoh")


@CHECKS.check("SE-204", Level.WORKS, needs=("memcpy_dtod",))
def a_stream_copies_on_the_device(ground: DeviceGround) -> None:
    """Tried with 4108 bytes."""
    data, target = ground.bytes(4108), ground.filled(bytes(4108))
    on_device(ground, target, ground.filled(data), 4108)
    expect_bytes(ground.content(target), data, "the target of memcpy_dtod")


@CHECKS.check("SE-205", Level.WORKS)
def copies_of_any_size(ground: DeviceGround) -> None:
    """Each size to the device, over zeros, and back over zeros."""
    memory, subject = ground.memory(_ROOM), ground.subject
    for size in _SIZES:
        zeros, back = ground.buffer(_ROOM), ground.buffer(size)
        data = ground.bytes(size)
        expect_ok(subject.sync_memcpy_htod(memory, zeros, _ROOM), "sync_memcpy_htod")
        to_device(ground, memory, ground.buffer(data), size)
        found = ground.content(memory)
        expect_bytes(found, data + bytes(_ROOM - size), f"the target of a copy of {size} bytes")
        to_host(ground, back, memory, size)
        expect_bytes(back.content(), data, f"what a copy of {size} bytes brought back")


@CHECKS.check("SE-206", Level.ROBUST)
def copies_of_no_bytes(ground: DeviceGround) -> None:
    """All six of them; nothing may change."""
    data, subject = ground.bytes(64), ground.subject
    memory, other, host = ground.filled(data), ground.filled(data), ground.buffer(data)
    stream = ground.stream()
    answers = {
        "memcpy_htod": subject.memcpy_htod(stream, memory, host, 0),
        "memcpy_dtoh": subject.memcpy_dtoh(stream, host, memory, 0),
        "sync_memcpy_htod": subject.sync_memcpy_htod(memory, host, 0),
        "sync_memcpy_dtoh": subject.sync_memcpy_dtoh(host, memory, 0),
    }
    if subject.offers("memcpy_dtod"):
        answers["memcpy_dtod"] = subject.memcpy_dtod(stream, other, memory, 0)
    for name, answer in answers.items():
        expect_ok(answer, f"{name} of 0 bytes")
    ground.done(stream)
    for what, found in (("device", ground.content(memory)), ("host", host.content())):
        expect_bytes(found, data, f"the {what}'s side of copies of 0 bytes")


def _severity_inside(ground: DeviceGround) -> Severity | None:
    """Say how bad it is to know no addresses inside: less where no host pools the memory."""
    return None if ground.subject.platform().use_bfc else Severity.WARNING


@CHECKS.check("SE-207", Level.WORKS)
def copies_to_an_address_inside(ground: DeviceGround) -> None:
    """300 bytes into the middle of 4096."""
    data, memory = ground.bytes(300), ground.filled(bytes(4096))
    to_device(ground, memory.part(512, 300), ground.buffer(data), 300)
    expected = bytes(512) + data + bytes(4096 - 812)
    what = "a memory, after a copy of 300 bytes to its byte 512,"
    expect_bytes(ground.content(memory), expected, what, severity=_severity_inside(ground))


@CHECKS.check("SE-208", Level.WORKS)
def copies_from_an_address_inside(ground: DeviceGround) -> None:
    """304 bytes out of the middle of 4096."""
    data, back = ground.bytes(4096), ground.buffer(304)
    to_host(ground, back, ground.filled(data).part(512, 304), 304)
    what = "what a copy from byte 512 of a memory brought back"
    expect_bytes(back.content(), data[512:816], what, severity=_severity_inside(ground))


@CHECKS.check("SE-209", Level.WORKS, needs=("memcpy_dtod",))
def copies_between_addresses_inside(ground: DeviceGround) -> None:
    """308 bytes from the middle of one memory into that of another."""
    data, target = ground.bytes(4096), ground.filled(bytes(4096))
    on_device(ground, target.part(1024, 308), ground.filled(data).part(512, 308), 308)
    expected = bytes(1024) + data[512:820] + bytes(4096 - 1332)
    what = "a memory, after a copy of 308 bytes from byte 512 to byte 1024,"
    expect_bytes(ground.content(target), expected, what, severity=_severity_inside(ground))


@CHECKS.check("SE-210", Level.WORKS)
def copies_to_the_host_write_nothing_beside(ground: DeviceGround) -> None:
    """333 bytes into a buffer of 512, which has guards of its own."""
    data, back = ground.bytes(512), ground.buffer(b"\x5a" * 512)
    memory = ground.filled(data)
    to_host(ground, back, memory, 333)
    expected = data[:333] + b"\x5a" * 179
    expect_bytes(back.content(), expected, "a host buffer, after a copy of 333 bytes to its front,")
    expect_ok(ground.subject.sync_memcpy_dtoh(back, memory, 331), "sync_memcpy_dtoh")
    expect_bytes(back.content(), expected, "a host buffer, after a copy of 331 bytes to its front,")


@CHECKS.check("SE-211", Level.WORKS)
def copies_to_the_device_write_nothing_beside(ground: DeviceGround) -> None:
    """Tried with 335 bytes after byte 101."""
    data, memory = ground.bytes(335), ground.filled(b"\x5a" * 1024)
    to_device(ground, memory.part(101, 335), ground.buffer(data), 335)
    expected = b"\x5a" * 101 + data + b"\x5a" * (1024 - 436)
    expect_bytes(ground.content(memory), expected, "a memory, after 335 bytes to its byte 101,")


@CHECKS.check("SE-212", Level.WORKS, needs=("memcpy_dtod",))
def copies_on_the_device_write_nothing_beside(ground: DeviceGround) -> None:
    """Tried with 337 bytes after byte 103."""
    data, memory = ground.bytes(1024), ground.filled(b"\x5a" * 1024)
    on_device(ground, memory.part(103, 337), ground.filled(data), 337)
    expected = b"\x5a" * 103 + data[:337] + b"\x5a" * (1024 - 440)
    expect_bytes(ground.content(memory), expected, "a memory, after 337 bytes to its byte 103,")


@CHECKS.check("SE-213", Level.WORKS)
def copies_leave_their_source(ground: DeviceGround) -> None:
    """Tried in each direction."""
    data, memory = ground.bytes(341), ground.filled(bytes(341))
    host, back = ground.buffer(data), ground.buffer(341)
    to_device(ground, memory, host, 341)
    expect_bytes(host.content(), data, "the source of memcpy_htod")
    to_host(ground, back, memory, 341)
    expect_bytes(ground.content(memory), data, "the source of memcpy_dtoh")
    if ground.subject.offers("memcpy_dtod"):
        on_device(ground, ground.memory(341), memory, 341)
        expect_bytes(ground.content(memory), data, "the source of memcpy_dtod")


def _there_and_back(ground: DeviceGround, source: HostBuffer) -> None:
    """Copy to the device, on it, and to the host, on one stream."""
    size, subject = len(source), ground.subject
    memory, other = ground.memory(size), ground.memory(size)
    stream, back = ground.stream(), ground.buffer(size)
    expect_ok(subject.memcpy_htod(stream, memory, source, size), "memcpy_htod")
    if subject.offers("memcpy_dtod"):
        expect_ok(subject.memcpy_dtod(stream, other, memory, size), "memcpy_dtod")
        memory = other
    expect_ok(subject.memcpy_dtoh(stream, back, memory, size), "memcpy_dtoh")
    ground.done(stream)
    if back.view != source.view:  # copies of them only where they differ
        what = f"what copies of {size} bytes brought back"
        expect_bytes(back.content(), source.content(), what)


@CHECKS.check("SE-214", Level.ROBUST)
def a_mebibyte(ground: DeviceGround) -> None:
    """Random bytes, so that no page is like another."""
    _there_and_back(ground, ground.buffer(ground.bytes(_MIB)))


@CHECKS.check("SE-215", Level.ROBUST)
def many_mebibytes(ground: DeviceGround) -> None:
    """The same random bytes in each mebibyte, but moved by one more each time."""
    source = ground.buffer(_MANY * _MIB)
    pattern = ground.bytes(_MIB + _MANY)
    for number in range(_MANY):
        source.view[number * _MIB : (number + 1) * _MIB] = pattern[number : number + _MIB]
    _there_and_back(ground, source)


def _overlapping(answer: Answer, found: bytes, data: bytes, start: int, to: int, n: int) -> None:
    """Look at a memory in which n bytes went from `start` to `to`."""
    moved = bytearray(data)
    moved[to : to + n] = data[start : start + n]
    if answer.ok:
        expect_bytes(found, bytes(moved), f"a memory, after a copy from byte {start} to byte {to},")
    elif not 1 <= answer.code <= max(Code):
        expect_ok(answer, "sync_memcpy_dtod of ranges that overlap")


@CHECKS.check("SE-216", Level.ROBUST, needs=("sync_memcpy_dtod",))
def copies_between_ranges_that_overlap(ground: DeviceGround) -> None:
    """Forwards, backwards, and onto itself."""
    data, subject = ground.bytes(4096), ground.subject
    for start, to in ((0, 1000), (1000, 0), (500, 500)):
        memory = ground.filled(data)
        source, target = memory.part(start, 2000), memory.part(to, 2000)
        answer = subject.sync_memcpy_dtod(target, source, 2000)
        _overlapping(answer, ground.content(memory), data, start, to, 2000)


@CHECKS.check("SE-217", Level.WORKS)
def a_host_buffer_is_free_behind_an_event(ground: DeviceGround) -> None:
    """It is written over when the event is COMPLETE, and the device must not see that."""
    data, memory = ground.bytes(347), ground.filled(bytes(347))
    host, stream = ground.buffer(data), ground.stream()
    expect_ok(ground.subject.memcpy_htod(stream, memory, host, 347), "memcpy_htod")
    expect_passed(ground, marked(ground, stream), "the event behind a copy")
    host.view[:] = bytes(347)
    expect_bytes(ground.content(memory), data, "the target of memcpy_htod")


@CHECKS.check("SE-218", Level.WORKS, needs=("sync_memcpy_htod",))
def synchronous_copies_are_done(ground: DeviceGround) -> None:
    """The source is written over when the copy has returned."""
    data, memory = ground.bytes(349), ground.filled(bytes(349))
    host = ground.buffer(data)
    expect_ok(ground.subject.sync_memcpy_htod(memory, host, 349), "sync_memcpy_htod")
    host.view[:] = bytes(349)
    expect_bytes(ground.content(memory), data, "the target of sync_memcpy_htod")


@CHECKS.check("SE-219", Level.WORKS)
def host_buffers_at_any_address(ground: DeviceGround) -> None:
    """1, 2 and 4 bytes beside an aligned address."""
    for shift in (1, 2, 4):
        data, memory = ground.bytes(353), ground.filled(bytes(353))
        back = ground.buffer(353, shift=shift)
        to_device(ground, memory, ground.buffer(data, shift=shift), 353)
        to_host(ground, back, memory, 353)
        what = f"what came back between host buffers {shift} beside an aligned address"
        expect_bytes(back.content(), data, what)


@CHECKS.check("SE-220", Level.WORKS, needs=("host_memory_allocate",))
def copies_with_the_plugins_host_memory(ground: DeviceGround) -> None:
    """To the device from one block, and back into another."""
    data, memory = ground.bytes(359), ground.filled(bytes(359))
    source, back = ground.host_block(359), ground.host_block(359)
    source.view[:359] = data
    to_device(ground, memory, source, 359)
    to_host(ground, back, memory, 359)
    expect_bytes(bytes(back.view[:359]), data, "what came back between blocks of host memory")


@CHECKS.check("SE-221", Level.WORKS, needs=("unified_memory_allocate",))
def copies_to_unified_memory(ground: DeviceGround) -> None:
    """The host looks at the bytes without a copy."""
    data, block = ground.bytes(367), ground.unified_block(367)
    if block.memory is not None:
        to_device(ground, block.memory, ground.buffer(data), 367)
        expect_bytes(bytes(block.view[:367]), data, "what the host sees in unified memory")
