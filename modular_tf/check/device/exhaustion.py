"""Checks of what happens where there is no memory, or little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import RAW, ROBUST, Suite
from modular_tf.check.device.address_ranges import expect_apart
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.expectation import Blocked, Unsupported, expect

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Answer, Memory

suite = Suite("device", "exhaustion", level=ROBUST, source="device.h")

_MIB = 1 << 20
_TOO_MUCH = 1 << 62
_NEARLY_ALL = tuple((1 << 64) - less for less in (1, 255, 4096, 1 << 21))
_USUAL_PRESSURE_MIB = 128
_BLOCK, _LARGE_BLOCK = _MIB, 4 * _MIB
_MARK_BYTES = 16
_KEPT_SIZE = 5021
_SMALL_SIZE, _MANY = 256, 2000


def _expect_none(answer: Answer, what: str) -> None:
    """Demand that there was no memory; what there was is not touched."""
    expect(
        answer.value is None,
        f"{what} gave an address",
        expected="NULL: no device has so much memory",
        found=f"{getattr(answer.value, 'address', 0):#x}",
    )
    expect(
        answer.code == Code.RESOURCE_EXHAUSTED,
        f"{what} failed in another way than by a lack of memory",
        expected="RESOURCE_EXHAUSTED",
        found=code_found(answer),
    )


def _goes_on(device: DeviceGround) -> None:
    """Demand that memory can be had and used."""
    data = device.bytes(_KEPT_SIZE)
    memory = device.subject.allocate(len(data)).must_be_ok()
    device.adopt("device", memory)
    source = device.buffer(data)
    device.subject.sync_memcpy_htod(memory, source, len(data)).must_be_ok()
    expect_bytes(device.content(memory), data, "memory that was had after a failure")


@suite.check("SE-155")
def too_much(device: DeviceGround) -> None:
    """allocate of more than there can be leaves opaque NULL.

    Otherwise: What would be an error for one tensor ends the whole process.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.
    Source: TensorFlow 2.21, observed
    """
    _expect_none(device.subject.allocate(_TOO_MUCH), f"allocate({_TOO_MUCH})")
    _goes_on(device)


@suite.check("SE-156", ways=RAW)
def nearly_all(device: DeviceGround) -> None:
    """allocate of nearly 2^64 bytes leaves opaque NULL.

    Otherwise: Rounding up overflows to a small size: tensors write behind their memory.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.

    This package asks for no such sizes: it refuses them itself.
    """
    for size in _NEARLY_ALL:
        _expect_none(device.subject.allocate(size), f"allocate({size})")
    _goes_on(device)


@suite.check("SE-157")
def too_much_host_memory(device: DeviceGround) -> None:
    """host_memory_allocate of more than there can be returns NULL.

    Otherwise: What would be an error for one tensor ends the whole process.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.
    """
    answer = device.subject.host_memory_allocate(_TOO_MUCH)
    _expect_none(answer, f"host_memory_allocate({_TOO_MUCH})")
    device.host_block()


@suite.check("SE-158", "unified_memory_allocate", "unified_memory_deallocate")
def too_much_unified_memory(device: DeviceGround) -> None:
    """unified_memory_allocate of more than there can be returns NULL.

    Otherwise: What would be an error for one tensor ends the whole process.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.
    """
    if not device.subject.platform().unified_memory:
        raise Unsupported("the platform has no unified memory")
    answer = device.subject.unified_memory_allocate(_TOO_MUCH)
    _expect_none(answer, f"unified_memory_allocate({_TOO_MUCH})")
    device.unified_block()


def _pressure(device: DeviceGround, size: int) -> int:
    """Return how many blocks to hold: by the option `pressure_mib`, 128 MiB where it is not set."""
    wanted = int(device.target.options.get("pressure_mib", _USUAL_PRESSURE_MIB))
    return max(1, wanted * _MIB // size)


def _fill_up(device: DeviceGround, size: int) -> list[Memory]:
    """Allocate until there is no more, or enough."""
    held: list[Memory] = []
    for _ in range(_pressure(device, size)):
        answer = device.subject.allocate(size)
        if answer.value is None:
            break
        device.adopt("device", answer.value)
        held.append(answer.value)
    return held


def _mark(number: int, end: int) -> bytes:
    return f"{number:08d}{end:08d}".encode()


@suite.check("SE-159")
def many_blocks_keep_their_content(device: DeviceGround) -> None:
    """Many blocks can be held at once, and each keeps its content.

    Otherwise: Models that fill the device compute with each other's tensors.
    Remedy: Give each allocation memory of its own until the device has none left.
    """
    held = _fill_up(device, _BLOCK)
    places = [
        (memory.part(offset, _MARK_BYTES), _mark(number, offset))
        for number, memory in enumerate(held)
        for offset in (0, _BLOCK - _MARK_BYTES)
    ]
    for place, mark in places:
        source = device.buffer(mark)
        device.subject.sync_memcpy_htod(place, source, len(mark)).must_be_ok()
    for place, mark in places:
        expect_bytes(device.content(place), mark, f"one of {len(held)} blocks of a MiB")


@suite.check("SE-160")
def peak_can_be_had_again(device: DeviceGround) -> None:
    """After much memory was given back, as much can be had again.

    Otherwise: A peak of memory use is never recovered from.
    Remedy: Join what was given back, or give it back to the system.
    """
    first = _fill_up(device, _LARGE_BLOCK)
    if not first:
        raise Blocked(f"allocate({_LARGE_BLOCK}) gave nothing")
    held = first
    for _ in range(2):
        for memory in held:
            device.destroy(memory)
        held = _fill_up(device, _LARGE_BLOCK)
        expect(
            len(held) >= len(first),
            "less memory can be allocated than before the deallocation",
            expected=f"{len(first)} blocks of {_LARGE_BLOCK} bytes",
            found=str(len(held)),
        )


@suite.check("SE-161")
def failure_leaves_the_rest(device: DeviceGround) -> None:
    """A failed allocation leaves all other memory as it is, and the device working.

    Otherwise: TensorFlow tries smaller sizes after a failure: they must work.
    Remedy: Change nothing before it is known that the memory is there.
    Source: TensorFlow 2.21, observed
    """
    contents = [device.bytes(_KEPT_SIZE) for _ in range(4)]
    memories = [device.filled(content) for content in contents]
    for shift in range(50, 63):
        answer = device.subject.allocate(1 << shift)
        if answer.value is not None:
            device.adopt("device", answer.value)
    for memory, content in zip(memories, contents, strict=True):
        expect_bytes(device.content(memory), content, "a memory, after allocations that failed,")
    _goes_on(device)


@suite.check("SE-162")
def many_small_memories(device: DeviceGround) -> None:
    """Two thousand small memories can be held at once.

    Otherwise: Without use_bfc_allocator each tensor is an allocation: models end with many of them.
    Remedy: Have no fixed table of allocations, or set use_bfc_allocator.
    Source: TensorFlow 2.21, observed

    As a model without an arena has tensors.
    """
    memories: list[Memory] = []
    for _ in range(_MANY):
        answer = device.subject.allocate(_SMALL_SIZE)
        memories.append(answer.must_be_ok())
        device.adopt("device", memories[-1])
    expect_apart([(one.address, _SMALL_SIZE) for one in memories], "of many small memories")
