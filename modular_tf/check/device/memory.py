"""Checks of device memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, ROBUST, WARNING, Suite
from modular_tf.check.device.address_ranges import expect_apart
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.leaks import expect_memory_returned
from modular_tf.check.device.raw_memory import RawMemory
from modular_tf.check.device.raw_subject import raw_subject
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal
from modular_tf.check.repetition import expect_no_leak

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Memory

suite = Suite("device", "memory", source="device.h")

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


def _room(device: DeviceGround) -> int:
    """Return how many bytes a device of this size has for sure, if no other process fills it."""
    usage = device.subject.device_memory_usage()
    return usage.value[1] // 8 if usage.ok else _LEAK_SIZE


@suite.check("SE-131")
def every_size(device: DeviceGround) -> None:
    """allocate gives memory of any size that is there, from one byte to 64 MiB.

    Otherwise: Tensors of that size cannot be made: "Dst tensor is not initialized".
    Remedy: Round sizes up, not down; fail only where the device has no memory left.
    Source: TensorFlow 2.21, observed
    """
    room = _room(device)
    for size in (size for size in _SIZES if size <= room):
        memory = device.subject.allocate(size).must_be_ok()
        device.adopt("device", memory)
        mark = _MARK[-size:]
        end = memory.part(size - len(mark), len(mark))
        source = device.buffer(mark)
        device.subject.sync_memcpy_htod(end, source, len(mark)).must_be_ok()
        expect_bytes(device.content(end), mark, f"the end of a memory of {size} bytes")
        device.destroy(memory)


@suite.check("SE-132")
def no_bytes(device: DeviceGround) -> None:
    """allocate of 0 bytes gives NULL, or an address that can be given back.

    Otherwise: Empty tensors crash the process.
    Remedy: Treat 0 bytes as 1, or leave opaque NULL.
    """
    answers = [device.subject.allocate(0) for _ in range(2)]
    for answer in answers:
        if answer.value is not None:
            device.subject.deallocate(answer.value)
    device.content(device.filled(_MARK))


@suite.check("SE-130", ways=RAW)
def outputs_are_kept_to(device: DeviceGround) -> None:
    """A function writes no further than its output goes.

    Otherwise: The host's memory behind a struct or a handle is overwritten.
    Remedy: Assign the fields of the header's structs; write one pointer for a handle.
    """
    subject = raw_subject(device)
    device.memory()
    subject.device_memory_usage()
    subject.get_allocator_stats()
    for make in (device.stream, device.event, device.timer):
        try:
            make()
        except Unsupported:
            continue


@suite.check("SE-133", ways=RAW)
def size_is_written(device: DeviceGround) -> None:
    """allocate writes the size, no less than asked, and leaves struct_size set.

    Otherwise: TensorFlow logs an error for a struct_size of 0, and takes the size for the memory's.
    Remedy: Set struct_size, opaque and size in SP_DeviceMemoryBase.
    Source: TensorFlow 2.21, observed
    """
    size = 5003
    answer, base = raw_subject(device).memory.allocate(size)
    memory = answer.must_be_ok()
    device.adopt("device", memory)
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


@suite.check("SE-134", severity=WARNING)
def addresses_are_aligned(device: DeviceGround) -> None:
    """Addresses of device memory are multiples of 256.

    Otherwise: Newer hosts refuse them; 2.21 takes multiples of 64, and arenas lose the rest.
    Remedy: Round addresses up to 256 bytes.
    Source: sources of TensorFlow after 2.21
    """
    is_told = any(device.subject.has(slot) for slot in _TOLD_AN_ALIGNMENT)
    for size in (1, 100, 4096, _MIB) * 4:
        address = device.memory(size).address
        expect_equal(address % _LEAST_ALIGNMENT, 0, f"{address:#x} modulo {_LEAST_ALIGNMENT}")
        if not is_told:
            expect_equal(address % _ALIGNMENT, 0, f"{address:#x} modulo {_ALIGNMENT}")


@suite.check("SE-135")
def memories_are_apart(device: DeviceGround) -> None:
    """Memories that exist at the same time do not overlap.

    Otherwise: Tensors overwrite each other, without an error.
    Remedy: Keep a lock and a map from address to size; check it with a random test.
    """
    memories = [device.memory(device.random.randrange(1, _MOST_SIZE)) for _ in range(_BLOCKS)]
    expect_apart([(one.address, one.size) for one in memories], "device memories")


@suite.check("SE-136")
def content_is_kept(device: DeviceGround) -> None:
    """Memory keeps its content while other memory comes and goes.

    Otherwise: Tensors overwrite each other, without an error.
    Remedy: Keep a lock and a map from address to size; check it with a random test.
    """
    contents = [device.bytes(_KEPT_SIZE) for _ in range(_BLOCKS)]
    memories = [device.filled(content) for content in contents]
    for memory in memories[::3]:
        device.destroy(memory)
    for _ in memories[::3]:
        device.filled(bytes(_KEPT_SIZE))
    for index, memory in enumerate(memories):
        if index % 3:
            expect_bytes(
                device.content(memory), contents[index], "a memory, others having come and gone,"
            )


@suite.check("SE-137", level=ROBUST)
def memory_comes_back(device: DeviceGround) -> None:
    """Memory that was given back can be had again, as often as one likes.

    Otherwise: Long runs end with "out of memory".
    Remedy: Release the memory behind the address; TensorFlow passes nothing but that.
    Source: TensorFlow 2.21, observed

    More in all than there is at once, on most devices.
    """
    size = max(1, min(_LEAK_SIZE, _room(device)))
    device.destroy(device.memory(size))

    def once() -> None:
        answer = device.subject.allocate(size)
        device.subject.deallocate(answer.must_be_ok())

    def free() -> int:
        usage = device.subject.device_memory_usage()
        return int(usage.value[0]) if usage.ok else 0

    expect_memory_returned(once, size, _LEAK_ROUNDS, "allocate and deallocate", free=free)


@suite.check("SE-138", ways=RAW)
def null_can_be_given_back(device: DeviceGround) -> None:
    """deallocate takes a NULL opaque and does nothing.

    Otherwise: A failed allocation is still deallocated, and the process crashes.
    Remedy: Return at once where opaque is NULL.
    """
    raw_subject(device).memory.deallocate(0)
    device.content(device.filled(_MARK))


@suite.check("SE-139", ways=RAW)
def payload_may_be_zero(device: DeviceGround) -> None:
    """Copies go by the address alone: the payload may be 0.

    Otherwise: TensorFlow makes structs of its own with payload 0: each copy of a tensor fails.
    Remedy: Find what belongs to a memory by its address.
    Source: TensorFlow 2.21, observed
    """
    subject, data = device.subject, device.bytes(_PAYLOAD_SIZE)
    bare = RawMemory(device.memory(_PAYLOAD_SIZE).address, _PAYLOAD_SIZE, None, 0)
    other = RawMemory(device.memory(_PAYLOAD_SIZE).address, _PAYLOAD_SIZE, None, 0)
    source, back = device.buffer(data), device.buffer(_PAYLOAD_SIZE)
    subject.sync_memcpy_htod(bare, source, _PAYLOAD_SIZE).must_be_ok()
    subject.sync_memcpy_dtod(other, bare, _PAYLOAD_SIZE).must_be_ok()
    subject.sync_memcpy_dtoh(back, other, _PAYLOAD_SIZE).must_be_ok()
    expect_bytes(back.content(), data, "what was copied with payload 0")


@suite.check("SE-140", level=ROBUST)
def threads_give_back(device: DeviceGround) -> None:
    """Memory can be given back by another thread than the one that allocated it.

    Otherwise: TensorFlow frees tensors where their last user is: memory leaks, or the process
    crashes.
    Remedy: Keep no lists of memory per thread.
    """
    with ThreadPoolExecutor(1) as other:
        for _ in range(8):
            theirs: Memory = other.submit(device.filled, bytes(_THREAD_SIZE)).result()
            device.destroy(theirs)
            ours = device.filled(bytes(_THREAD_SIZE))
            other.submit(device.destroy, ours).result()
    device.content(device.filled(_MARK))


@suite.check("SE-141")
def order_is_free(device: DeviceGround) -> None:
    """Memory can be given back in any order.

    Otherwise: Tensors overwrite each other, without an error.
    Remedy: Do not take memory for a stack.
    """
    live = {device.filled(data): data for data in (device.bytes(_ORDER_SIZE) for _ in range(12))}
    while live:
        memories = list(live)
        at = {12: 0, 11: -1}.get(len(live), device.random.randrange(len(live)))
        device.destroy(memories[at])
        del live[memories[at]]
        for memory, data in live.items():
            expect_bytes(device.content(memory), data, "a memory, another one being given back,")


@suite.check("SE-142", level=ROBUST)
def random_sequence(device: DeviceGround) -> None:
    """After hundreds of random allocations and deallocations all content is right.

    Otherwise: Tensors overwrite each other, without an error.
    Remedy: Keep a lock and a map from address to size; check it with a random test.
    """
    live: list[tuple[Memory, bytes]] = []
    for _ in range(_STEPS):
        if not live or device.random.random() < 0.55:  # noqa: PLR2004  (a little growth)
            data = device.bytes(device.random.randrange(*_RANDOM_SIZES))
            live.append((device.filled(data), data))
            continue
        memory, data = live.pop(device.random.randrange(len(live)))
        expect_bytes(device.content(memory), data, "a memory in a random sequence")
        device.destroy(memory)
    for memory, data in live:
        expect_bytes(device.content(memory), data, "a memory after a random sequence")


@suite.check("SE-143", level=ROBUST)
def nothing_piles_up(device: DeviceGround) -> None:
    """Allocating and giving back leaves no descriptors and mappings behind.

    Otherwise: A long run ends when the system has no more of them.
    Remedy: Unmap and close what a memory needed when it is given back.
    """

    def once() -> None:
        for size in (777, 5 * _MIB):
            device.destroy(device.memory(size))

    expect_no_leak(once, 400, "allocate and deallocate")
