"""Checks of device memory."""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.check.check import RAW, ROBUST, WARNING, Suite
from modular_tf.check.device.by_slots import SlotMemory
from modular_tf.check.device.workspace import expect_apart, expect_bytes
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal
from modular_tf.check.under_load import Held, must_not_grow

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.operations import Memory
    from modular_tf.check.device.workspace import Workspace

suite = Suite("device", "memory", source="device.h")

_MIB = 1 << 20
_SIZES = (1, 255, 256, 4096, _MIB, 64 * _MIB)
_ALIGNMENT, _LEAST_ALIGNMENT = 256, 64
_BLOCKS = 48
_MOST_SIZE = 64 << 10
_MARK = b"the end of this "
_LEAK_SIZE, _LEAK_ROUNDS = 64 * _MIB, 256
# Sizes that no other check uses, so that what goes wrong with one is seen by one check alone.
_KEPT_SIZE, _ORDER_SIZE, _THREAD_SIZE, _PAYLOAD_SIZE = 2003, 3001, 2503, 1511
_RANDOM_SIZES = (6000, 9000)
_STEPS = 400


def _room(device: Workspace) -> int:
    """Return how many bytes a device of this size has for sure, if no other process fills it."""
    usage = device.device_memory_usage()
    return usage.value[1] // 8 if usage.ok else _LEAK_SIZE


def must_return_memory(
    work: Callable[[], None],
    n_bytes: int,
    rounds: int,
    what: str,
    *,
    free: Callable[[], int] = lambda: 0,
) -> None:
    """Allocate and give back memory many times, and demand that none is lost.

    Where it is the device's own, there is less of it free, or none left one day. Where it is the
    host's, which is not taken before it is written to, the process grows. `free` returns how many
    bytes the device has free, 0 where it does not know.
    """

    def address_space() -> int:
        with open("/proc/self/statm", encoding="ascii") as sizes:
            return int(sizes.read().split()[0]) * mmap.PAGESIZE

    of = Held("memory", address_space, n_bytes), Held("memory", lambda: -free(), n_bytes)
    must_not_grow(work, rounds, what, of=of)


@suite.check("SE-131")
def every_size(device: Workspace) -> None:
    """allocate gives memory of any size that is there, from one byte to 64 MiB.

    Otherwise: Tensors of that size cannot be made: "Dst tensor is not initialized".
    Remedy: Round sizes up, not down; fail only where the device has no memory left.
    Source: TensorFlow 2.21, observed
    """
    room = _room(device)
    for size in (size for size in _SIZES if size <= room):
        memory, mark = device.adopt("device", device.allocate(size).must_be_ok()), _MARK[-size:]
        end = memory.part(size - len(mark), len(mark))
        device.sync_memcpy_htod(end, device.buffer(mark), len(mark)).must_be_ok()
        device.must_hold(end, mark, f"the end of a memory of {size} bytes")
        device.destroy(memory)


@suite.check("SE-132")
def no_bytes(device: Workspace) -> None:
    """allocate of 0 bytes gives NULL, or an address that can be given back.

    Otherwise: Empty tensors crash the process.
    Remedy: Treat 0 bytes as 1, or leave opaque NULL.
    """
    for memory in [device.allocate(0).value for _ in range(2)]:
        if memory is not None:
            device.deallocate(memory)
    device.content(device.filled(_MARK))


@suite.check("SE-130", ways=RAW)
def outputs_are_kept_to(device: Workspace) -> None:
    """A function writes no further than its output goes.

    Otherwise: The host's memory behind a struct or a handle is overwritten.
    Remedy: Assign the fields of the header's structs; write one pointer for a handle.
    """
    device.memory()
    device.device_memory_usage()
    device.get_allocator_stats()
    for make in (device.stream, device.event, device.timer):
        with suppress(Unsupported):
            make()


@suite.check("SE-133", ways=RAW)
def size_is_written(device: Workspace) -> None:
    """allocate writes the size, no less than asked, and leaves struct_size set.

    Otherwise: TensorFlow logs an error for a struct_size of 0, and takes the size for the memory's.
    Remedy: Set struct_size, opaque and size in SP_DeviceMemoryBase.
    Source: TensorFlow 2.21, observed
    """
    size = 5003
    struct = device.adopt("device", device.allocate(size).must_be_ok()).given
    expect(struct.word(0), "allocate left SP_DeviceMemoryBase.struct_size 0", expected="40")
    given, expected = struct.word(3), str(size)
    message = "allocate wrote a size that is less than was requested"
    expect(given >= size, message, expected=expected, found=str(given))
    message = "allocate wrote another size than was requested"
    advise(given == size, message, expected=expected, found=str(given))


@suite.check("SE-134", severity=WARNING)
def addresses_are_aligned(device: Workspace) -> None:
    """Addresses of device memory are multiples of 256.

    Otherwise: Newer hosts refuse them; 2.21 takes multiples of 64, and arenas lose the rest.
    Remedy: Round addresses up to 256 bytes.
    Source: sources of TensorFlow after 2.21
    """
    is_passed = device.access.tables.given_fns.has("create_custom_allocator")
    alignment = _LEAST_ALIGNMENT if is_passed else _ALIGNMENT  # custom allocators are given one
    for size in (1, 100, 4096, _MIB) * 4:
        address = device.memory(size).address
        expect_equal(address % alignment, 0, f"{address:#x} modulo {alignment}")


@suite.check("SE-135")
def memories_are_apart(device: Workspace) -> None:
    """Memories that exist at the same time do not overlap.

    Otherwise: Tensors overwrite each other, without an error.
    Remedy: Keep a lock and a map from address to size; check it with a random test.
    """
    memories = [device.memory(device.random.randrange(1, _MOST_SIZE)) for _ in range(_BLOCKS)]
    expect_apart([(one.address, one.size) for one in memories], "device memories")


@suite.check("SE-136")
def content_is_kept(device: Workspace) -> None:
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
            device.must_hold(memory, contents[index], "a memory, others having come and gone,")


@suite.check("SE-137", level=ROBUST)
def memory_comes_back(device: Workspace) -> None:
    """Memory that was given back can be had again, as often as one likes.

    Otherwise: Long runs end with "out of memory".
    Remedy: Release the memory behind the address; TensorFlow passes nothing but that.
    Source: TensorFlow 2.21, observed

    More in all than there is at once, on most devices.
    """
    size = max(1, min(_LEAK_SIZE, _room(device)))
    device.destroy(device.memory(size))

    def once() -> None:
        device.deallocate(device.allocate(size).must_be_ok())

    def free() -> int:
        usage = device.device_memory_usage()
        return int(usage.value[0]) if usage.ok else 0

    must_return_memory(once, size, _LEAK_ROUNDS, "allocate and deallocate", free=free)


@suite.check("SE-138", ways=RAW)
def null_can_be_given_back(device: Workspace) -> None:
    """deallocate takes a NULL opaque and does nothing.

    Otherwise: A failed allocation is still deallocated, and the process crashes.
    Remedy: Return at once where opaque is NULL.
    """
    device.deallocate(SlotMemory(0, 0))
    device.content(device.filled(_MARK))


@suite.check("SE-139", ways=RAW)
def payload_may_be_zero(device: Workspace) -> None:
    """Copies go by the address alone: the payload may be 0.

    Otherwise: TensorFlow makes structs of its own with payload 0: each copy of a tensor fails.
    Remedy: Find what belongs to a memory by its address.
    Source: TensorFlow 2.21, observed
    """
    size, data = _PAYLOAD_SIZE, device.bytes(_PAYLOAD_SIZE)
    bare, other = (SlotMemory(device.memory(size).address, size) for _ in range(2))
    source, back = device.buffer(data), device.buffer(size)
    device.sync_memcpy_htod(bare, source, size).must_be_ok()
    device.sync_memcpy_dtod(other, bare, size).must_be_ok()
    device.sync_memcpy_dtoh(back, other, size).must_be_ok()
    expect_bytes(back.content(), data, "what was copied with payload 0")


@suite.check("SE-140", level=ROBUST)
def threads_give_back(device: Workspace) -> None:
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
def order_is_free(device: Workspace) -> None:
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
            device.must_hold(memory, data, "a memory, another one being given back,")


@suite.check("SE-142", level=ROBUST)
def random_sequence(device: Workspace) -> None:
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
        device.must_hold(memory, data, "a memory in a random sequence")
        device.destroy(memory)
    for memory, data in live:
        device.must_hold(memory, data, "a memory after a random sequence")


@suite.check("SE-143", level=ROBUST)
def nothing_piles_up(device: Workspace) -> None:
    """Allocating and giving back leaves no descriptors and mappings behind.

    Otherwise: A long run ends when the system has no more of them.
    Remedy: Unmap and close what a memory needed when it is given back.
    """

    def once() -> None:
        for size in (777, 5 * _MIB):
            device.destroy(device.memory(size))

    must_not_grow(once, 400, "allocate and deallocate")
