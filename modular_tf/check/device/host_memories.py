"""Checks of host and unified memory that the plugin allocates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.check import ROBUST, WARNING, Suite
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.device.address_ranges import expect_apart
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.leaks import expect_memory_returned
from modular_tf.check.expectation import Unsupported, advise, expect_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Answer, Block

suite = Suite("device", "host memory", source="device.h")

_MIB = 1 << 20
_SIZES = (1, 64, 4096, 4097, _MIB)
_BLOCKS = 24
_KEPT_SIZE = 3011
_LEAK_SIZE, _LEAK_ROUNDS = 16 * _MIB, 128
_THREADS, _ROUNDS = 8, 20
_THREAD_SIZE = 4099
_ALIGNMENT, _NEWER_ALIGNMENT = 64, 256


def _unified(device: DeviceGround) -> Callable[[int], Block]:
    if not device.subject.platform().unified_memory:
        raise Unsupported("the platform has no unified memory")
    return device.unified_block


def _use_all(device: DeviceGround, make: Callable[[int], Block], what: str) -> None:
    """Write each byte of blocks of several sizes, and read them."""
    for size in _SIZES:
        block, data = make(size), device.bytes(size)
        block.view[:] = data
        expect_bytes(bytes(block.view), data, f"{size} bytes of {what} memory")
        device.destroy(block)


def _keep_all(device: DeviceGround, make: Callable[[int], Block], what: str) -> None:
    """Hold many blocks, and look at them when all are written."""
    contents = [device.bytes(_KEPT_SIZE) for _ in range(_BLOCKS)]
    blocks = [make(_KEPT_SIZE) for _ in contents]
    expect_apart([(one.address, _KEPT_SIZE) for one in blocks], f"{what} memories")
    for block, content in zip(blocks, contents, strict=True):
        block.view[:] = content
    for block, content in zip(blocks, contents, strict=True):
        expect_bytes(bytes(block.view), content, f"{what} memory, others being written,")


@suite.check("SE-145")
def host_memory_is_usable(device: DeviceGround) -> None:
    """host_memory_allocate gives memory that the host can read and write to its end.

    Otherwise: Staging buffers of copies crash the process.
    Remedy: Allocate at least the size asked, pinned or not.
    """
    _use_all(device, device.host_block, "host")


@suite.check("SE-146", severity=WARNING)
def host_memory_is_aligned(device: DeviceGround) -> None:
    """Addresses of host memory are multiples of 256; TensorFlow up to 2.21 takes those of 64.

    Otherwise: Hosts after TensorFlow 2.21 refuse other multiples of 64; vector code crashes below
    that.
    Remedy: Use aligned_alloc(256, ...), or what the driver has for pinned memory.
    Source: TensorFlow 2.21, observed
    """
    addresses = [device.host_block(size).address for size in _SIZES * 3]
    for address in addresses:
        expect_equal(address % _ALIGNMENT, 0, f"{address:#x} modulo {_ALIGNMENT}")
    off = [hex(address) for address in addresses if address % _NEWER_ALIGNMENT]
    advise(
        not off,
        "host memory lies where hosts after TensorFlow 2.21 refuse it",
        expected=f"multiples of {_NEWER_ALIGNMENT}",
        found=", ".join(off),
    )


@suite.check("SE-147")
def host_memories_are_apart(device: DeviceGround) -> None:
    """Host memories that exist at the same time do not overlap, and keep their content.

    Otherwise: Data of the host is overwritten, without an error.
    Remedy: Give each allocation memory of its own.
    """
    _keep_all(device, device.host_block, "host")


@suite.check("SE-148", level=ROBUST)
def host_memory_comes_back(device: DeviceGround) -> None:
    """Host memory that was given back can be had again, as often as one likes.

    Otherwise: Pinned memory is scarce: long runs end without any.
    Remedy: Release the memory in host_memory_deallocate.

    More in all than most systems can pin.
    """

    def once() -> None:
        block = device.subject.host_memory_allocate(_LEAK_SIZE).must_be_ok()
        device.subject.host_memory_deallocate(block)

    what = "host_memory_allocate and host_memory_deallocate"
    expect_memory_returned(once, _LEAK_SIZE, _LEAK_ROUNDS, what)


@suite.check("SE-149", "unified_memory_allocate", "unified_memory_deallocate")
def unified_memory_is_usable(device: DeviceGround) -> None:
    """unified_memory_allocate gives memory that the host can read and write to its end.

    Otherwise: A program that uses the shared memory crashes.
    Remedy: Allocate at least the size asked, or clear SP_Platform.supports_unified_memory.
    """
    _use_all(device, _unified(device), "unified")


@suite.check("SE-150", "unified_memory_allocate", "unified_memory_deallocate")
def unified_memories_are_apart(device: DeviceGround) -> None:
    """Unified memories that exist at the same time do not overlap, and keep their content.

    Otherwise: Data of the host is overwritten, without an error.
    Remedy: Give each allocation memory of its own.
    """
    _keep_all(device, _unified(device), "unified")


@suite.check("SE-151", "unified_memory_allocate", "unified_memory_deallocate")
def device_sees_unified_memory(device: DeviceGround) -> None:
    """The device sees in unified memory what the host has written there.

    Otherwise: The device works with old bytes.
    Remedy: Make the host's writes visible before each operation that uses the memory.
    """
    block, target = _unified(device)(_KEPT_SIZE), device.memory(_KEPT_SIZE)
    for _ in range(2):
        data = device.bytes(_KEPT_SIZE)
        block.view[:] = data
        device.subject.sync_memcpy_dtod(target, block.memory, _KEPT_SIZE).must_be_ok()
        expect_bytes(device.content(target), data, "what the device copied of unified memory")


@suite.check("SE-152", level=ROBUST)
def threads_have_host_memory(device: DeviceGround) -> None:
    """Host memory can be allocated and given back by several threads at once.

    Otherwise: Data of the host is overwritten, without an error.
    Remedy: Guard what the calls share.
    """
    subject = device.subject

    def work(number: int) -> None:
        for _ in range(_ROUNDS):
            answer: Answer = subject.host_memory_allocate(_THREAD_SIZE)
            block = answer.must_be_ok()
            data = bytes((number + 1,)) * _THREAD_SIZE
            block.view[:] = data
            found = bytes(block.view)
            subject.host_memory_deallocate(block)
            expect_bytes(found, data, "host memory of one of several threads")

    run_at_once([partial(work, number) for number in range(_THREADS)])
