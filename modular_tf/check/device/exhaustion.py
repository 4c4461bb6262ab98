"""Checks of what happens where there is no memory, or little."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.device.address_ranges import expect_apart
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.expectation import Blocked, Unsupported, expect
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Answer, Memory

CHECKS = CheckList("device", "exhaustion")

_MIB = 1 << 20
_TOO_MUCH = 1 << 62
_NEARLY_ALL = tuple((1 << 64) - less for less in (1, 255, 4096, 1 << 21))
_USUAL_PRESSURE_MIB = 128
_BLOCK, _LARGE_BLOCK = _MIB, 4 * _MIB
_MARK_BYTES = 16
_KEPT_SIZE = 5021
_SMALL_SIZE, _MANY = 256, 2000
_UNIFIED = ("unified_memory_allocate", "unified_memory_deallocate")


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


def _goes_on(ground: DeviceGround) -> None:
    """Demand that memory can be had and used."""
    data = ground.bytes(_KEPT_SIZE)
    memory = expect_ok(ground.subject.allocate(len(data)), "allocate, after one that failed,")
    ground.adopt("device", memory)
    source = ground.buffer(data)
    copied = ground.subject.sync_memcpy_htod(memory, source, len(data))
    expect_ok(copied, "sync_memcpy_htod, after an allocation that failed,")
    expect_bytes(ground.content(memory), data, "memory that was had after a failure")


@CHECKS.check("SE-155", Level.ROBUST)
def too_much(ground: DeviceGround) -> None:
    """Tried with more than any machine addresses."""
    _expect_none(ground.subject.allocate(_TOO_MUCH), f"allocate({_TOO_MUCH})")
    _goes_on(ground)


@CHECKS.check("SE-156", Level.ROBUST, passes=RAW)
def nearly_all(ground: DeviceGround) -> None:
    """This package asks for no such sizes: it refuses them itself."""
    for size in _NEARLY_ALL:
        _expect_none(ground.subject.allocate(size), f"allocate({size})")
    _goes_on(ground)


@CHECKS.check("SE-157", Level.ROBUST)
def too_much_host_memory(ground: DeviceGround) -> None:
    """Tried with more than any machine addresses."""
    answer = ground.subject.host_memory_allocate(_TOO_MUCH)
    _expect_none(answer, f"host_memory_allocate({_TOO_MUCH})")
    ground.host_block()


@CHECKS.check("SE-158", Level.ROBUST, needs=_UNIFIED)
def too_much_unified_memory(ground: DeviceGround) -> None:
    """Tried with more than any machine addresses."""
    if not ground.subject.platform().unified_memory:
        raise Unsupported("the platform has no unified memory")
    answer = ground.subject.unified_memory_allocate(_TOO_MUCH)
    _expect_none(answer, f"unified_memory_allocate({_TOO_MUCH})")
    ground.unified_block()


def _pressure(ground: DeviceGround, size: int) -> int:
    """Return how many blocks to hold: by the option `pressure_mib`, 128 MiB where it is not set."""
    wanted = int(ground.target.options.get("pressure_mib", _USUAL_PRESSURE_MIB))
    return max(1, wanted * _MIB // size)


def _fill_up(ground: DeviceGround, size: int) -> list[Memory]:
    """Allocate until there is no more, or enough."""
    held: list[Memory] = []
    for _ in range(_pressure(ground, size)):
        answer = ground.subject.allocate(size)
        if answer.value is None:
            break
        ground.adopt("device", answer.value)
        held.append(answer.value)
    return held


def _mark(number: int, end: int) -> bytes:
    return f"{number:08d}{end:08d}".encode()


@CHECKS.check("SE-159", Level.ROBUST)
def many_blocks_keep_their_content(ground: DeviceGround) -> None:
    """Their first and their last bytes."""
    held = _fill_up(ground, _BLOCK)
    places = [
        (memory.part(offset, _MARK_BYTES), _mark(number, offset))
        for number, memory in enumerate(held)
        for offset in (0, _BLOCK - _MARK_BYTES)
    ]
    for place, mark in places:
        source = ground.buffer(mark)
        expect_ok(ground.subject.sync_memcpy_htod(place, source, len(mark)), "sync_memcpy_htod")
    for place, mark in places:
        expect_bytes(ground.content(place), mark, f"one of {len(held)} blocks of a MiB")


@CHECKS.check("SE-160", Level.ROBUST)
def peak_can_be_had_again(ground: DeviceGround) -> None:
    """Tried three times."""
    first = _fill_up(ground, _LARGE_BLOCK)
    if not first:
        raise Blocked(f"allocate({_LARGE_BLOCK}) gave nothing")
    held = first
    for _ in range(2):
        for memory in held:
            ground.destroy(memory)
        held = _fill_up(ground, _LARGE_BLOCK)
        expect(
            len(held) >= len(first),
            "less memory can be allocated than before the deallocation",
            expected=f"{len(first)} blocks of {_LARGE_BLOCK} bytes",
            found=str(len(held)),
        )


@CHECKS.check("SE-161", Level.ROBUST)
def failure_leaves_the_rest(ground: DeviceGround) -> None:
    """Four memories, and failures of several sizes."""
    contents = [ground.bytes(_KEPT_SIZE) for _ in range(4)]
    memories = [ground.filled(content) for content in contents]
    for shift in range(50, 63):
        answer = ground.subject.allocate(1 << shift)
        if answer.value is not None:
            ground.adopt("device", answer.value)
    for memory, content in zip(memories, contents, strict=True):
        expect_bytes(ground.content(memory), content, "a memory, after allocations that failed,")
    _goes_on(ground)


@CHECKS.check("SE-162", Level.ROBUST)
def many_small_memories(ground: DeviceGround) -> None:
    """As a model without an arena has tensors."""
    memories: list[Memory] = []
    for number in range(_MANY):
        answer = ground.subject.allocate(_SMALL_SIZE)
        memories.append(expect_ok(answer, f"allocate({_SMALL_SIZE}), {number} being held,"))
        ground.adopt("device", memories[-1])
    expect_apart([(one.address, _SMALL_SIZE) for one in memories], "of many small memories")
