"""Checks of memory: of the device, of the host, where there is little, and its figures."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import layout
from modular_tf.abi.status_codes import Code
from modular_tf.check.check import NOTE, RAW, ROBUST, WARNING, Suite
from modular_tf.check.device.by_slots import SlotMemory
from modular_tf.check.device.workspace import expect_apart, expect_bytes
from modular_tf.check.expectation import (
    Blocked,
    Unsupported,
    advise,
    expect,
    expect_at_least,
    expect_at_most,
    expect_equal,
    expect_in,
    note,
)
from modular_tf.check.under_load import Held, at_once, must_not_grow
from modular_tf.native.host_struct import unpack_field

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.answers import Answer
    from modular_tf.check.device.operations import Bytes, Memory, UnifiedMemory
    from modular_tf.check.device.workspace import Workspace
    from modular_tf.device.memory.allocator_stats import AllocatorStats

memory = Suite("device", "memory", source="device.h")

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


def _safe_size(device: Workspace) -> int:
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
            return int(sizes.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    of = Held("memory", address_space, n_bytes), Held("memory", lambda: -free(), n_bytes)
    must_not_grow(work, rounds, what, of=of)


@memory.check("SE-131")
def every_size(device: Workspace) -> None:
    """allocate gives memory of any size that is there, from one byte to 64 MiB.

    Otherwise: Tensors of that size cannot be made: "Dst tensor is not initialized".
    Remedy: Round sizes up, not down; fail only where the device has no memory left.
    Source: TensorFlow 2.21, observed
    """
    room = _safe_size(device)
    for size in (size for size in _SIZES if size <= room):
        memory, mark = device.adopt("device", device.allocate(size).must_be_ok()), _MARK[-size:]
        end = memory.part(size - len(mark), len(mark))
        device.sync_memcpy_htod(end, device.buffer(mark), len(mark)).must_be_ok()
        device.must_hold(end, mark, f"the end of a memory of {size} bytes")
        device.destroy(memory)


@memory.check("SE-132")
def no_bytes(device: Workspace) -> None:
    """allocate of 0 bytes gives NULL, or an address that can be given back.

    Otherwise: Empty tensors crash the process.
    Remedy: Treat 0 bytes as 1, or leave opaque NULL.
    """
    for memory in [device.allocate(0).value for _ in range(2)]:
        if memory is not None:
            device.deallocate(memory)
    device.content(device.filled(_MARK))


@memory.check("SE-130", ways=RAW)
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


@memory.check("SE-133", ways=RAW)
def size_is_written(device: Workspace) -> None:
    """allocate writes the size, no less than asked, and leaves struct_size set.

    Otherwise: TensorFlow logs an error for a struct_size of 0, and takes the size for the memory's.
    Remedy: Set struct_size, opaque and size in SP_DeviceMemoryBase.
    Source: TensorFlow 2.21, observed
    """
    size = 5003
    struct = device.adopt("device", device.allocate(size).must_be_ok()).given
    if struct is None:
        raise Unsupported("a custom allocator fills no SP_DeviceMemoryBase")
    expect(struct.word(0), "allocate left SP_DeviceMemoryBase.struct_size 0", expected="40")
    given, expected = struct.word(3), str(size)
    message = "allocate wrote a size that is less than was requested"
    expect(given >= size, message, expected=expected, found=str(given))
    message = "allocate wrote another size than was requested"
    advise(given == size, message, expected=expected, found=str(given))


@memory.check("SE-134", severity=WARNING)
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


@memory.check("SE-135")
def memories_are_apart(device: Workspace) -> None:
    """Memories that exist at the same time do not overlap.

    Otherwise: Tensors overwrite each other, without an error.
    Remedy: Keep a lock and a map from address to size; check it with a random test.
    """
    memories = [device.memory(device.random.randrange(1, _MOST_SIZE)) for _ in range(_BLOCKS)]
    expect_apart([(one.address, one.size) for one in memories], "device memories")


@memory.check("SE-136")
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


@memory.check("SE-137", level=ROBUST)
def memory_comes_back(device: Workspace) -> None:
    """Memory that was given back can be had again, as often as one likes.

    Otherwise: Long runs end with "out of memory".
    Remedy: Release the memory behind the address; TensorFlow passes nothing but that.
    Source: TensorFlow 2.21, observed

    More in all than there is at once, on most devices.
    """
    size = max(1, min(_LEAK_SIZE, _safe_size(device)))
    device.destroy(device.memory(size))

    def once() -> None:
        device.deallocate(device.allocate(size).must_be_ok())

    def free() -> int:
        usage = device.device_memory_usage()
        return int(usage.value[0]) if usage.ok else 0

    must_return_memory(once, size, _LEAK_ROUNDS, "allocate and deallocate", free=free)


@memory.check("SE-138", ways=RAW)
def null_can_be_given_back(device: Workspace) -> None:
    """deallocate takes a NULL opaque and does nothing.

    Otherwise: A failed allocation is still deallocated, and the process crashes.
    Remedy: Return at once where opaque is NULL.
    """
    device.deallocate(SlotMemory(0, 0))
    device.content(device.filled(_MARK))


@memory.check("SE-139", ways=RAW)
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


@memory.check("SE-140", level=ROBUST)
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


@memory.check("SE-141")
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


@memory.check("SE-142", level=ROBUST)
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


@memory.check("SE-143", level=ROBUST)
def nothing_piles_up(device: Workspace) -> None:
    """Allocating and giving back leaves no descriptors and mappings behind.

    Otherwise: A long run ends when the system has no more of them.
    Remedy: Unmap and close what a memory needed when it is given back.
    """

    def once() -> None:
        for size in (777, 5 * _MIB):
            device.destroy(device.memory(size))

    must_not_grow(once, 400, "allocate and deallocate")


host_memories = Suite("device", "host memory", source="device.h")

_HOST_SIZES = (1, 64, 4096, 4097, _MIB)
_HOST_BLOCKS = 24
_HOST_KEPT_SIZE = 3011
_HOST_LEAK_SIZE, _HOST_LEAK_ROUNDS = 16 * _MIB, 128
_THREADS, _ROUNDS = 8, 20
_HOST_THREAD_SIZE = 4099
_HOST_ALIGNMENT, _NEWER_HOST_ALIGNMENT = 64, 256


def _unified(device: Workspace) -> Callable[[int], UnifiedMemory]:
    if not device.access.has_unified_memory:
        raise Unsupported("the platform has no unified memory")
    return device.unified_block


def _use_all(device: Workspace, make: Callable[[int], Bytes], what: str) -> None:
    """Write each byte of blocks of several sizes, and read them."""
    for size in _HOST_SIZES:
        block, data = make(size), device.bytes(size)
        block.view[:] = data
        expect_bytes(bytes(block.view), data, f"{size} bytes of {what} memory")
        device.destroy(block)


def _keep_all(device: Workspace, make: Callable[[int], Bytes], what: str) -> None:
    """Hold many blocks, and read them when all are written."""
    contents = [device.bytes(_HOST_KEPT_SIZE) for _ in range(_HOST_BLOCKS)]
    blocks = [make(_HOST_KEPT_SIZE) for _ in contents]
    expect_apart([(one.address, _HOST_KEPT_SIZE) for one in blocks], f"{what} memories")
    for block, content in zip(blocks, contents, strict=True):
        block.view[:] = content
    for block, content in zip(blocks, contents, strict=True):
        expect_bytes(bytes(block.view), content, f"{what} memory, others being written,")


@host_memories.check("SE-145")
def host_memory_is_usable(device: Workspace) -> None:
    """host_memory_allocate gives memory that the host can read and write to its end.

    Otherwise: Staging buffers of copies crash the process.
    Remedy: Allocate at least the size asked, pinned or not.
    """
    _use_all(device, device.host_block, "host")


@host_memories.check("SE-146", severity=WARNING)
def host_memory_is_aligned(device: Workspace) -> None:
    """Addresses of host memory are multiples of 256; TensorFlow up to 2.21 takes those of 64.

    Otherwise: Hosts after TensorFlow 2.21 refuse other multiples of 64; vector code crashes below
    that.
    Remedy: Use aligned_alloc(256, ...), or what the driver has for pinned memory.
    Source: TensorFlow 2.21, observed
    """
    addresses = [device.host_block(size).address for size in _HOST_SIZES * 3]
    for address in addresses:
        expect_equal(
            address % _HOST_ALIGNMENT,
            0,
            f"{address:#x} modulo {_HOST_ALIGNMENT}",
        )
    off = [hex(address) for address in addresses if address % _NEWER_HOST_ALIGNMENT]
    advise(
        not off,
        "host memory lies where hosts after TensorFlow 2.21 refuse it",
        expected=f"multiples of {_NEWER_HOST_ALIGNMENT}",
        found=", ".join(off),
    )


@host_memories.check("SE-147")
def host_memories_are_apart(device: Workspace) -> None:
    """Host memories that exist at the same time do not overlap, and keep their content.

    Otherwise: Data of the host is overwritten, without an error.
    Remedy: Give each allocation memory of its own.
    """
    _keep_all(device, device.host_block, "host")


@host_memories.check("SE-148", level=ROBUST)
def host_memory_comes_back(device: Workspace) -> None:
    """Host memory that was given back can be had again, as often as one likes.

    Otherwise: Pinned memory is scarce: long runs end without any.
    Remedy: Release the memory in host_memory_deallocate.

    More in all than most systems can pin.
    """

    def once() -> None:
        block = device.host_memory_allocate(_HOST_LEAK_SIZE).must_be_ok()
        device.host_memory_deallocate(block)

    what = "host_memory_allocate and host_memory_deallocate"
    must_return_memory(once, _HOST_LEAK_SIZE, _HOST_LEAK_ROUNDS, what)


@host_memories.check("SE-149", "unified_memory_allocate", "unified_memory_deallocate")
def unified_memory_is_usable(device: Workspace) -> None:
    """unified_memory_allocate gives memory that the host can read and write to its end.

    Otherwise: A program that uses the shared memory crashes.
    Remedy: Allocate at least the size asked, or clear SP_Platform.supports_unified_memory.
    """
    _use_all(device, _unified(device), "unified")


@host_memories.check("SE-150", "unified_memory_allocate", "unified_memory_deallocate")
def unified_memories_are_apart(device: Workspace) -> None:
    """Unified memories that exist at the same time do not overlap, and keep their content.

    Otherwise: Data of the host is overwritten, without an error.
    Remedy: Give each allocation memory of its own.
    """
    _keep_all(device, _unified(device), "unified")


@host_memories.check("SE-151", "unified_memory_allocate", "unified_memory_deallocate")
def device_sees_unified_memory(device: Workspace) -> None:
    """The device sees in unified memory what the host has written there.

    Otherwise: The device works with old bytes.
    Remedy: Make the host's writes visible before each operation that uses the memory.
    """
    block, target = (
        _unified(device)(_HOST_KEPT_SIZE),
        device.memory(_HOST_KEPT_SIZE),
    )
    for _ in range(2):
        data = device.bytes(_HOST_KEPT_SIZE)
        block.view[:] = data
        device.sync_memcpy_dtod(target, block, _HOST_KEPT_SIZE).must_be_ok()
        device.must_hold(target, data, "what the device copied of unified memory")


@host_memories.check("SE-152", level=ROBUST)
def threads_have_host_memory(device: Workspace) -> None:
    """Host memory can be allocated and given back by several threads at once.

    Otherwise: Data of the host is overwritten, without an error.
    Remedy: Guard what the calls share.
    """

    def work(number: int) -> None:
        for _ in range(_ROUNDS):
            block = device.host_memory_allocate(_HOST_THREAD_SIZE).must_be_ok()
            data = bytes((number + 1,)) * _HOST_THREAD_SIZE
            block.view[:] = data
            found = bytes(block.view)
            device.host_memory_deallocate(block)
            expect_bytes(found, data, "host memory of one of several threads")

    at_once([partial(work, number) for number in range(_THREADS)])


exhaustion = Suite("device", "exhaustion", level=ROBUST, source="device.h")

_TOO_MUCH = 1 << 62
_NEARLY_ALL = tuple((1 << 64) - less for less in (1, 255, 4096, 1 << 21))
_BLOCK, _LARGE_BLOCK = _MIB, 4 * _MIB
_MARK_BYTES = 16
_LAST_SIZE = 5021
_SMALL_SIZE, _MANY = 256, 2000


def _expect_none(answer: Answer) -> None:
    """Demand that there was no memory; what there was is not touched."""
    expect(
        answer.value is None,
        f"{answer.call} gave an address",
        expected="NULL: no device has so much memory",
        found=f"{getattr(answer.value, 'address', 0):#x}",
    )
    answer.must_be(Code.RESOURCE_EXHAUSTED)


def _goes_on(device: Workspace) -> None:
    """Demand that memory can be had and used."""
    data = device.bytes(_LAST_SIZE)
    memory = device.adopt("device", device.allocate(len(data)).must_be_ok())
    device.sync_memcpy_htod(memory, device.buffer(data), len(data)).must_be_ok()
    device.must_hold(memory, data, "memory that was had after a failure")


@exhaustion.check("SE-155")
def too_much(device: Workspace) -> None:
    """allocate of more than there can be leaves opaque NULL.

    Otherwise: What would be an error for one tensor ends the whole process.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.
    Source: TensorFlow 2.21, observed
    """
    _expect_none(device.allocate(_TOO_MUCH))
    _goes_on(device)


@exhaustion.check("SE-156", ways=RAW)
def nearly_all(device: Workspace) -> None:
    """allocate of nearly 2^64 bytes leaves opaque NULL.

    Otherwise: Rounding up overflows to a small size: tensors write behind their memory.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.

    This package asks for no such sizes: it refuses them itself.
    """
    for size in _NEARLY_ALL:
        _expect_none(device.allocate(size))
    _goes_on(device)


@exhaustion.check("SE-157")
def too_much_host_memory(device: Workspace) -> None:
    """host_memory_allocate of more than there can be returns NULL.

    Otherwise: What would be an error for one tensor ends the whole process.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.
    """
    _expect_none(device.host_memory_allocate(_TOO_MUCH))
    device.host_block()


@exhaustion.check("SE-158", "unified_memory_allocate", "unified_memory_deallocate")
def too_much_unified_memory(device: Workspace) -> None:
    """unified_memory_allocate of more than there can be returns NULL.

    Otherwise: What would be an error for one tensor ends the whole process.
    Remedy: Check the size before arithmetic on it, catch every exception, and leave NULL.
    """
    if not device.access.has_unified_memory:
        raise Unsupported("the platform has no unified memory")
    _expect_none(device.unified_memory_allocate(_TOO_MUCH))
    device.unified_block()


def _fill_up(device: Workspace, size: int) -> list[Memory]:
    """Allocate until there is no more, or as much as the option `pressure_mib` says."""
    wanted = device.target.options.pressure_mib
    held: list[Memory] = []
    for _ in range(max(1, wanted * _MIB // size)):
        answer = device.allocate(size)
        if answer.value is None:
            break
        held.append(device.adopt("device", answer.value))
    return held


@exhaustion.check("SE-159")
def many_blocks_keep_their_content(device: Workspace) -> None:
    """Many blocks can be held at once, and each keeps its content.

    Otherwise: Models that fill the device compute with each other's tensors.
    Remedy: Give each allocation memory of its own until the device has none left.
    """
    held = _fill_up(device, _BLOCK)
    places = [
        (memory.part(offset, _MARK_BYTES), f"{number:08d}{offset:08d}".encode())
        for number, memory in enumerate(held)
        for offset in (0, _BLOCK - _MARK_BYTES)
    ]
    for place, mark in places:
        device.sync_memcpy_htod(place, device.buffer(mark), len(mark)).must_be_ok()
    for place, mark in places:
        device.must_hold(place, mark, f"one of {len(held)} blocks of a MiB")


@exhaustion.check("SE-160")
def peak_can_be_had_again(device: Workspace) -> None:
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
        message = "less memory can be allocated than before the deallocation"
        expect_at_least(len(held), len(first), message, f" blocks of {_LARGE_BLOCK} bytes")


@exhaustion.check("SE-161")
def failure_leaves_the_rest(device: Workspace) -> None:
    """A failed allocation leaves all other memory as it is, and the device working.

    Otherwise: TensorFlow tries smaller sizes after a failure: they must work.
    Remedy: Change nothing before it is known that the memory is there.
    Source: TensorFlow 2.21, observed
    """
    contents = [device.bytes(_LAST_SIZE) for _ in range(4)]
    memories = [device.filled(content) for content in contents]
    for shift in range(50, 63):
        answer = device.allocate(1 << shift)
        if answer.value is not None:
            device.adopt("device", answer.value)
    for memory, content in zip(memories, contents, strict=True):
        device.must_hold(memory, content, "a memory, after allocations that failed,")
    _goes_on(device)


@exhaustion.check("SE-162")
def many_small_memories(device: Workspace) -> None:
    """Two thousand small memories can be held at once.

    Otherwise: Without use_bfc_allocator each tensor is an allocation: models end with many of them.
    Remedy: Have no fixed table of allocations, or set use_bfc_allocator.
    Source: TensorFlow 2.21, observed

    As a model without an arena has tensors.
    """
    answers = (device.allocate(_SMALL_SIZE) for _ in range(_MANY))
    memories = [device.adopt("device", answer.must_be_ok()) for answer in answers]
    expect_apart([(one.address, _SMALL_SIZE) for one in memories], "of many small memories")


accounting = Suite("device", "accounting", source="device.h")

_LARGE = 3 * _MIB
_STATS = layout("SP_AllocatorStats")
_LOOKS = 20


def _figures(answer: Answer) -> Any:
    if answer.code == Code.UNAVAILABLE:
        raise Unsupported(f"{answer.call.partition('(')[0]} returns no figures")
    return answer.must_be_ok()


def _stats(device: Workspace) -> AllocatorStats:
    stats: AllocatorStats = _figures(device.get_allocator_stats())
    return stats


@accounting.check("SE-165")
def usage_is_known(device: Workspace) -> None:
    """device_memory_usage knows free and total bytes.

    Otherwise: TensorFlow does not create the device: it computes its memory limit from them.
    Remedy: Set both and return 1; the host's memory will do for a device that shares it.
    Source: TensorFlow 2.21, observed
    """
    for _ in range(2):
        answer = device.device_memory_usage()
        expect(answer.ok, "device_memory_usage returns no figures", expected="free and total bytes")
        device.memory()


@accounting.check("SE-166")
def usage_is_believable(device: Workspace) -> None:
    """Free bytes are from 0 to the total, and the total is above 0.

    Otherwise: The memory limit that a host computes is nonsense.
    Remedy: Report bytes of the device's memory, in 64-bit numbers.
    Source: TensorFlow 2.21, observed
    """
    device.memory(_MIB)
    free, total = _figures(device.device_memory_usage())
    expect(
        0 <= free <= total and total > 0,
        "free and total bytes are impossible",
        expected="0 <= free <= total",
        found=f"free {free}, total {total}",
    )


@accounting.check("SE-167", severity=WARNING)
def total_stays(device: Workspace) -> None:
    """The total does not change from call to call.

    Otherwise: Limits that are a share of the total differ from run to run.
    Remedy: Report the size of the device's memory, not what is free of it.
    """
    totals = set()
    for _ in range(_LOOKS):
        totals.add(_figures(device.device_memory_usage())[1])
        device.memory(_MIB)
    message, found = "the total of the device's memory changes", str(sorted(totals))
    expect(len(totals) == 1, message, expected="one number", found=found)


@accounting.check("SE-169", severity=NOTE)
def figures_are_known(device: Workspace) -> None:
    """get_allocator_stats knows the figures.

    Otherwise: None: TensorFlow requires the slot and never calls it.
    Remedy: Count allocations, and return 1.
    """
    if device.get_allocator_stats().code == Code.UNAVAILABLE:
        note("get_allocator_stats returns no figures")


@accounting.check("SE-170", severity=WARNING)
def figures_agree(device: Workspace) -> None:
    """No figure is negative, and none in use is above its peak.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Count under the lock that guards the allocations; deallocate knows the size by address.
    """
    device.memory(_MIB)
    device.destroy(device.memory(_LARGE))
    stats = _stats(device)
    negative = {
        name: getattr(stats, name) for name in stats.__slots__ if (getattr(stats, name) or 0) < 0
    }
    expect(not negative, "figures are negative", expected="0 or more", found=str(negative))
    for used in ("bytes_in_use", "bytes_reserved"):
        peak = f"peak_{used}"
        expect_at_most(getattr(stats, used), getattr(stats, peak), f"{used} is above {peak}")


@accounting.check("SE-171", severity=WARNING)
def limits_hold(device: Workspace) -> None:
    """Bytes in use are within the limits that are given.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Clear has_bytes_limit where there is no limit.
    """
    device.memory(_MIB)
    stats = _stats(device)
    for used, limit in (
        ("bytes_in_use", stats.bytes_limit),
        ("bytes_reserved", stats.bytes_reservable_limit),
    ):
        if limit is not None:
            expect_at_most(getattr(stats, used), limit, f"{used} is above its limit")


@accounting.check("SE-172", severity=WARNING)
def use_rises_and_falls(device: Workspace) -> None:
    """Bytes in use rise with an allocation, and fall when it is given back.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Count under the lock that guards the allocations; deallocate knows the size by address.
    """
    before = _stats(device).bytes_in_use
    memory = device.memory(_LARGE)
    during = _stats(device).bytes_in_use
    device.destroy(memory)
    after = _stats(device).bytes_in_use
    expect_at_least(during, before + _LARGE, "bytes in use do not rise with an allocation")
    expect_equal(after, before, "bytes in use, when the memory is given back,")


@accounting.check("SE-173", severity=WARNING)
def allocations_are_counted(device: Workspace) -> None:
    """Each allocation is counted once.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: num_allocs counts allocations since the device exists; it never falls.
    """
    before = _stats(device).num_allocs
    memories = [device.memory() for _ in range(5)]
    for memory in memories[:2]:
        device.destroy(memory)
    expect_equal(_stats(device).num_allocs - before, 5, "the number of allocations in between")


@accounting.check("SE-174", severity=WARNING)
def peak_stays(device: Workspace) -> None:
    """The peak of bytes in use stays when memory is given back.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Let peak_bytes_in_use only rise.
    """
    memory = device.memory(2 * _LARGE)
    before = _stats(device).peak_bytes_in_use
    device.destroy(memory)
    after = _stats(device).peak_bytes_in_use
    expect_at_least(after, before, "the peak of bytes in use falls when memory is given back")


@accounting.check("SE-175", severity=WARNING)
def largest_is_large(device: Workspace) -> None:
    """The largest allocation is at least as large as any that was made.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Let largest_alloc_size be the largest size so far.
    """
    device.destroy(device.memory(_LARGE))
    found = _stats(device).largest_alloc_size
    expect_at_least(found, _LARGE, "the largest allocation is smaller than one that was made")


@accounting.check("SE-176", ways=RAW, severity=WARNING)
def figures_have_their_size(device: Workspace) -> None:
    """get_allocator_stats leaves struct_size set.

    Otherwise: TensorFlow logs an error and has no figures.
    Remedy: Set it to SP_ALLOCATORSTATS_STRUCT_SIZE.
    Source: TensorFlow 2.21, observed
    """
    known, stats = device.slots.read_stats()
    expect(not known or stats.word(0), "get_allocator_stats left struct_size 0", expected="96")


@accounting.check("SE-177", ways=RAW, severity=WARNING)
def flags_are_flags(device: Workspace) -> None:
    """The flags of SP_AllocatorStats are 0 or 1.

    Otherwise: A host may compare them with 1.
    Remedy: Zero the struct before filling it.
    """
    known, stats = device.slots.read_stats()
    if not known:
        raise Unsupported("get_allocator_stats returns no figures")
    for name in ("has_bytes_limit", "has_bytes_reservable_limit"):
        found = unpack_field(stats.raw(), _STATS.field(name))
        expect_in(found, (0, 1), f"SP_AllocatorStats.{name}")
