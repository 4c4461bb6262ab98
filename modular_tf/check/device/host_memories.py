"""Checks of host and unified memory that the plugin allocates."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from modular_tf.check.answers import expect_ok
from modular_tf.check.check import CheckList
from modular_tf.check.concurrency import run_at_once
from modular_tf.check.device.address_ranges import expect_apart
from modular_tf.check.device.expected_bytes import expect_bytes
from modular_tf.check.device.leaks import expect_memory_returned
from modular_tf.check.expectation import Unsupported, advise, expect_equal
from modular_tf.check.level import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.device.subject import Answer, Block

CHECKS = CheckList("device", "host memory")

_MIB = 1 << 20
_SIZES = (1, 64, 4096, 4097, _MIB)
_BLOCKS = 24
_KEPT_SIZE = 3011
_LEAK_SIZE, _LEAK_ROUNDS = 16 * _MIB, 128
_THREADS, _ROUNDS = 8, 20
_THREAD_SIZE = 4099
_ALIGNMENT, _NEWER_ALIGNMENT = 64, 256
_UNIFIED = ("unified_memory_allocate", "unified_memory_deallocate")


def _unified(ground: DeviceGround) -> Callable[[int], Block]:
    if not ground.subject.platform().unified_memory:
        raise Unsupported("the platform has no unified memory")
    return ground.unified_block


def _use_all(ground: DeviceGround, make: Callable[[int], Block], what: str) -> None:
    """Write each byte of blocks of several sizes, and read them."""
    for size in _SIZES:
        block, data = make(size), ground.bytes(size)
        block.view[:] = data
        expect_bytes(bytes(block.view), data, f"{size} bytes of {what} memory")
        ground.destroy(block)


def _keep_all(ground: DeviceGround, make: Callable[[int], Block], what: str) -> None:
    """Hold many blocks, and look at them when all are written."""
    contents = [ground.bytes(_KEPT_SIZE) for _ in range(_BLOCKS)]
    blocks = [make(_KEPT_SIZE) for _ in contents]
    expect_apart([(one.address, _KEPT_SIZE) for one in blocks], f"{what} memories")
    for block, content in zip(blocks, contents, strict=True):
        block.view[:] = content
    for block, content in zip(blocks, contents, strict=True):
        expect_bytes(bytes(block.view), content, f"{what} memory, others being written,")


@CHECKS.check("SE-145", Level.WORKS)
def host_memory_is_usable(ground: DeviceGround) -> None:
    """Tried by reading and writing on the host."""
    _use_all(ground, ground.host_block, "host")


@CHECKS.check("SE-146", Level.WORKS)
def host_memory_is_aligned(ground: DeviceGround) -> None:
    """Tried with several sizes."""
    addresses = [ground.host_block(size).address for size in _SIZES * 3]
    for address in addresses:
        expect_equal(address % _ALIGNMENT, 0, f"{address:#x} modulo {_ALIGNMENT}")
    off = [hex(address) for address in addresses if address % _NEWER_ALIGNMENT]
    advise(
        not off,
        "host memory lies where hosts after TensorFlow 2.21 refuse it",
        expected=f"multiples of {_NEWER_ALIGNMENT}",
        found=", ".join(off),
    )


@CHECKS.check("SE-147", Level.WORKS)
def host_memories_are_apart(ground: DeviceGround) -> None:
    """Tried with several blocks that are filled and compared."""
    _keep_all(ground, ground.host_block, "host")


@CHECKS.check("SE-148", Level.ROBUST)
def host_memory_comes_back(ground: DeviceGround) -> None:
    """More in all than most systems can pin."""

    def once() -> None:
        block = expect_ok(ground.subject.host_memory_allocate(_LEAK_SIZE), "host_memory_allocate")
        ground.subject.host_memory_deallocate(block)

    what = "host_memory_allocate and host_memory_deallocate"
    expect_memory_returned(once, _LEAK_SIZE, _LEAK_ROUNDS, what)


@CHECKS.check("SE-149", Level.WORKS, needs=_UNIFIED)
def unified_memory_is_usable(ground: DeviceGround) -> None:
    """Tried by reading and writing on the host."""
    _use_all(ground, _unified(ground), "unified")


@CHECKS.check("SE-150", Level.WORKS, needs=_UNIFIED)
def unified_memories_are_apart(ground: DeviceGround) -> None:
    """Tried with several blocks that are filled and compared."""
    _keep_all(ground, _unified(ground), "unified")


@CHECKS.check("SE-151", Level.WORKS, needs=_UNIFIED)
def device_sees_unified_memory(ground: DeviceGround) -> None:
    """It copies from there what the host has written, twice."""
    block, target = _unified(ground)(_KEPT_SIZE), ground.memory(_KEPT_SIZE)
    for _ in range(2):
        data = ground.bytes(_KEPT_SIZE)
        block.view[:] = data
        answer = ground.subject.sync_memcpy_dtod(target, block.memory, _KEPT_SIZE)
        expect_ok(answer, "sync_memcpy_dtod of unified memory")
        expect_bytes(ground.content(target), data, "what the device copied of unified memory")


@CHECKS.check("SE-152", Level.ROBUST)
def threads_have_host_memory(ground: DeviceGround) -> None:
    """Each writes its own, and finds it so."""
    subject = ground.subject

    def work(number: int) -> None:
        for _ in range(_ROUNDS):
            answer: Answer = subject.host_memory_allocate(_THREAD_SIZE)
            block = expect_ok(answer, "host_memory_allocate, while other threads do,")
            data = bytes((number + 1,)) * _THREAD_SIZE
            block.view[:] = data
            found = bytes(block.view)
            subject.host_memory_deallocate(block)
            expect_bytes(found, data, "host memory of one of several threads")

    run_at_once([partial(work, number) for number in range(_THREADS)])
