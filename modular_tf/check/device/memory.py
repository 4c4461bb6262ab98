"""Checks of device memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.device.address_ranges import expect_apart
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.leaks import expect_memory_returned
from modular_tf.check.device.raw_memory import RawMemory
from modular_tf.check.device.raw_subject import raw_subject
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal
from modular_tf.check.level import Level
from modular_tf.check.repetition import expect_no_leak

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Memory

CHECKS = CheckList("device", "memory")

_MIB = 1 << 20
_SIZES = (1, 255, 256, 4096, _MIB, 64 * _MIB)
_ALIGNMENT, _LEAST_ALIGNMENT = 256, 64
_TOLD_AN_ALIGNMENT = ("allocate_raw", "create_custom_allocator")
"""Slots of the RFC's custom allocators, as they are seen raw and through the host."""
_BLOCKS = 48
_MOST_SIZE = 64 << 10
_MARK = b"the end of this "
_LEAK_SIZE, _LEAK_ROUNDS = 64 * _MIB, 256
# Sizes that no other check uses, so that what goes wrong with one is seen by one check alone.
_KEPT_SIZE, _ORDER_SIZE, _THREAD_SIZE, _PAYLOAD_SIZE = 2003, 3001, 2503, 1511
_RANDOM_SIZES = (6000, 9000)
_STEPS = 400


def _room(ground: DeviceGround) -> int:
    """Return how many bytes a device of this size has for sure, if no other process fills it."""
    usage = ground.subject.device_memory_usage()
    return usage.value[1] // 8 if usage.ok else _LEAK_SIZE


@CHECKS.check("SE-131", Level.WORKS)
def every_size(ground: DeviceGround) -> None:
    """The last bytes of each are written and read, of those that the device has room for."""
    room = _room(ground)
    for size in (size for size in _SIZES if size <= room):
        memory = expect_ok(ground.subject.allocate(size), f"allocate({size})")
        ground.adopt("device", memory)
        mark = _MARK[-size:]
        end = memory.part(size - len(mark), len(mark))
        source = ground.buffer(mark)
        expect_ok(ground.subject.sync_memcpy_htod(end, source, len(mark)), "sync_memcpy_htod")
        expect_bytes(ground.content(end), mark, f"the end of a memory of {size} bytes")
        ground.destroy(memory)


@CHECKS.check("SE-132", Level.WORKS)
def no_bytes(ground: DeviceGround) -> None:
    """Twice, so that one can be given back while the other is there."""
    answers = [ground.subject.allocate(0) for _ in range(2)]
    for answer in answers:
        if answer.value is not None:
            ground.subject.deallocate(answer.value)
    ground.content(ground.filled(_MARK))


@CHECKS.check("SE-130", Level.WORKS, passes=RAW)
def outputs_are_kept_to(ground: DeviceGround) -> None:
    """Each output lies between guards, which the caller looks at."""
    subject = raw_subject(ground)
    ground.memory()
    subject.device_memory_usage()
    subject.get_allocator_stats()
    for make in (ground.stream, ground.event, ground.timer):
        try:
            make()
        except Unsupported:
            continue


@CHECKS.check("SE-133", Level.WORKS, passes=RAW)
def size_is_written(ground: DeviceGround) -> None:
    """Of a size that is no multiple of anything."""
    size = 5003
    answer, base = raw_subject(ground).memory.allocate(size)
    memory = expect_ok(answer, f"allocate({size})")
    ground.adopt("device", memory)
    expect(base.word(0), "allocate left SP_DeviceMemoryBase.struct_size 0", expected="40")
    expect(
        (memory.given_size or 0) >= size,
        "allocate wrote a size that is less than was asked for",
        expected=f"{size}",
        found=str(memory.given_size),
    )
    advise(
        memory.given_size == size,
        "allocate wrote another size than was asked for",
        expected=str(size),
        found=str(memory.given_size),
    )


@CHECKS.check("SE-134", Level.WORKS)
def addresses_are_aligned(ground: DeviceGround) -> None:
    """Of small and large memories, several at a time."""
    is_told = any(ground.subject.has(slot) for slot in _TOLD_AN_ALIGNMENT)
    for size in (1, 100, 4096, _MIB) * 4:
        address = ground.memory(size).address
        expect_equal(address % _LEAST_ALIGNMENT, 0, f"{address:#x} modulo {_LEAST_ALIGNMENT}")
        if not is_told:
            expect_equal(address % _ALIGNMENT, 0, f"{address:#x} modulo {_ALIGNMENT}")


@CHECKS.check("SE-135", Level.WORKS)
def memories_are_apart(ground: DeviceGround) -> None:
    """Tried with many sizes."""
    memories = [ground.memory(ground.random.randrange(1, _MOST_SIZE)) for _ in range(_BLOCKS)]
    expect_apart([(one.address, one.size) for one in memories], "device memories")


@CHECKS.check("SE-136", Level.WORKS)
def content_is_kept(ground: DeviceGround) -> None:
    """Every third is given back, and others come in its place."""
    contents = [ground.bytes(_KEPT_SIZE) for _ in range(_BLOCKS)]
    memories = [ground.filled(content) for content in contents]
    for memory in memories[::3]:
        ground.destroy(memory)
    for _ in memories[::3]:
        ground.filled(bytes(_KEPT_SIZE))
    for index, memory in enumerate(memories):
        if index % 3:
            expect_bytes(
                ground.content(memory), contents[index], "a memory, others having come and gone,"
            )


@CHECKS.check("SE-137", Level.ROBUST)
def memory_comes_back(ground: DeviceGround) -> None:
    """More in all than there is at once, on most devices."""
    size = max(1, min(_LEAK_SIZE, _room(ground)))
    ground.destroy(ground.memory(size))

    def once() -> None:
        answer = ground.subject.allocate(size)
        ground.subject.deallocate(expect_ok(answer, f"allocate({size}), given back each time,"))

    def free() -> int:
        usage = ground.subject.device_memory_usage()
        return int(usage.value[0]) if usage.ok else 0

    expect_memory_returned(once, size, _LEAK_ROUNDS, "allocate and deallocate", free=free)


@CHECKS.check("SE-138", Level.WORKS, passes=RAW)
def null_can_be_given_back(ground: DeviceGround) -> None:
    """Tried once; the device must work afterwards."""
    raw_subject(ground).memory.deallocate(0)
    ground.content(ground.filled(_MARK))


@CHECKS.check("SE-139", Level.WORKS, passes=RAW)
def payload_may_be_zero(ground: DeviceGround) -> None:
    """Tried in each direction."""
    subject, data = ground.subject, ground.bytes(_PAYLOAD_SIZE)
    bare = RawMemory(ground.memory(_PAYLOAD_SIZE).address, _PAYLOAD_SIZE, None, 0)
    other = RawMemory(ground.memory(_PAYLOAD_SIZE).address, _PAYLOAD_SIZE, None, 0)
    source, back = ground.buffer(data), ground.buffer(_PAYLOAD_SIZE)
    for what, answer in (
        ("sync_memcpy_htod", subject.sync_memcpy_htod(bare, source, _PAYLOAD_SIZE)),
        ("sync_memcpy_dtod", subject.sync_memcpy_dtod(other, bare, _PAYLOAD_SIZE)),
        ("sync_memcpy_dtoh", subject.sync_memcpy_dtoh(back, other, _PAYLOAD_SIZE)),
    ):
        expect_ok(answer, f"{what} with payload 0")
    expect_bytes(back.content(), data, "what was copied with payload 0")


@CHECKS.check("SE-140", Level.ROBUST)
def threads_give_back(ground: DeviceGround) -> None:
    """What one thread has allocated; and there is as much as before."""
    with ThreadPoolExecutor(1) as other:
        for _ in range(8):
            theirs: Memory = other.submit(ground.filled, bytes(_THREAD_SIZE)).result()
            ground.destroy(theirs)
            ours = ground.filled(bytes(_THREAD_SIZE))
            other.submit(ground.destroy, ours).result()
    ground.content(ground.filled(_MARK))


@CHECKS.check("SE-141", Level.WORKS)
def order_is_free(ground: DeviceGround) -> None:
    """First the first, then the last, then any."""
    live = {ground.filled(data): data for data in (ground.bytes(_ORDER_SIZE) for _ in range(12))}
    while live:
        memories = list(live)
        at = {12: 0, 11: -1}.get(len(live), ground.random.randrange(len(live)))
        ground.destroy(memories[at])
        del live[memories[at]]
        for memory, data in live.items():
            expect_bytes(ground.content(memory), data, "a memory, another one being given back,")


@CHECKS.check("SE-142", Level.ROBUST)
def random_sequence(ground: DeviceGround) -> None:
    """What is given back is looked at first."""
    live: list[tuple[Memory, bytes]] = []
    for _ in range(_STEPS):
        if not live or ground.random.random() < 0.55:  # noqa: PLR2004  (a little growth)
            data = ground.bytes(ground.random.randrange(*_RANDOM_SIZES))
            live.append((ground.filled(data), data))
            continue
        memory, data = live.pop(ground.random.randrange(len(live)))
        expect_bytes(ground.content(memory), data, "a memory in a random sequence")
        ground.destroy(memory)
    for memory, data in live:
        expect_bytes(ground.content(memory), data, "a memory after a random sequence")


@CHECKS.check("SE-143", Level.ROBUST)
def nothing_piles_up(ground: DeviceGround) -> None:
    """Tried with small and large blocks."""

    def once() -> None:
        for size in (777, 5 * _MIB):
            ground.destroy(ground.memory(size))

    expect_no_leak(once, 400, "allocate and deallocate")
