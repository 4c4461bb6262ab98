"""Checks of what a device tells of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.layouts import layout
from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.device.raw_subject import raw_subject
from modular_tf.check.expectation import Unsupported, expect, expect_equal, expect_in, note
from modular_tf.check.level import Level
from modular_tf.native.host_struct import unpack_field

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.device.memory.allocator_stats import AllocatorStats

CHECKS = CheckList("device", "accounting")

_MIB = 1 << 20
_LARGE = 3 * _MIB
_STATS = layout("SP_AllocatorStats")
_LOOKS = 20


def _usage(ground: DeviceGround) -> tuple[int, int]:
    answer = ground.subject.device_memory_usage()
    if answer.code == Code.UNAVAILABLE:
        raise Unsupported("device_memory_usage returns no figures")
    found: tuple[int, int] = expect_ok(answer, "device_memory_usage")
    return found


def _stats(ground: DeviceGround) -> AllocatorStats:
    answer = ground.subject.get_allocator_stats()
    if answer.code == Code.UNAVAILABLE:
        raise Unsupported("get_allocator_stats returns no figures")
    found: AllocatorStats = expect_ok(answer, "get_allocator_stats")
    return found


@CHECKS.check("SE-165", Level.WORKS)
def usage_is_known(ground: DeviceGround) -> None:
    """Tried before any work, and after some."""
    for _ in range(2):
        answer = ground.subject.device_memory_usage()
        expect(answer.ok, "device_memory_usage returns no figures", expected="free and total bytes")
        ground.memory()


@CHECKS.check("SE-166", Level.WORKS)
def usage_is_believable(ground: DeviceGround) -> None:
    """Tried while some memory is allocated."""
    ground.memory(_MIB)
    free, total = _usage(ground)
    expect(
        0 <= free <= total and total > 0,
        "free and total bytes are impossible",
        expected="0 <= free <= total",
        found=f"free {free}, total {total}",
    )


@CHECKS.check("SE-167", Level.WORKS)
def total_stays(ground: DeviceGround) -> None:
    """Tried before and while memory is allocated."""
    totals = set()
    for _ in range(_LOOKS):
        totals.add(_usage(ground)[1])
        ground.memory(_MIB)
    expect(
        len(totals) == 1,
        "the total of the device's memory changes",
        expected="one number",
        found=str(sorted(totals)),
    )


@CHECKS.check("SE-169", Level.WORKS)
def figures_are_known(ground: DeviceGround) -> None:
    """Tried once; nothing else depends on the figures."""
    if ground.subject.get_allocator_stats().code == Code.UNAVAILABLE:
        note("get_allocator_stats returns no figures")


@CHECKS.check("SE-170", Level.WORKS)
def figures_agree(ground: DeviceGround) -> None:
    """With some memory in use, and some given back."""
    ground.memory(_MIB)
    ground.destroy(ground.memory(_LARGE))
    stats = _stats(ground)
    negative = {
        name: getattr(stats, name) for name in stats.__slots__ if (getattr(stats, name) or 0) < 0
    }
    expect(not negative, "figures are negative", expected="0 or more", found=str(negative))
    for used, peak in (
        ("bytes_in_use", "peak_bytes_in_use"),
        ("bytes_reserved", "peak_bytes_reserved"),
    ):
        expect(
            getattr(stats, used) <= getattr(stats, peak),
            f"{used} is above {peak}",
            expected=f"at most {getattr(stats, peak)}",
            found=str(getattr(stats, used)),
        )


@CHECKS.check("SE-171", Level.WORKS)
def limits_hold(ground: DeviceGround) -> None:
    """Tried where the plugin gives limits."""
    ground.memory(_MIB)
    stats = _stats(ground)
    for used, limit in (
        ("bytes_in_use", stats.bytes_limit),
        ("bytes_reserved", stats.bytes_reservable_limit),
    ):
        expect(
            limit is None or getattr(stats, used) <= limit,
            f"{used} is above its limit",
            expected=f"at most {limit}",
            found=str(getattr(stats, used)),
        )


@CHECKS.check("SE-172", Level.WORKS)
def use_rises_and_falls(ground: DeviceGround) -> None:
    """Tried with one large allocation."""
    before = _stats(ground).bytes_in_use
    memory = ground.memory(_LARGE)
    during = _stats(ground).bytes_in_use
    ground.destroy(memory)
    after = _stats(ground).bytes_in_use
    expect(
        during >= before + _LARGE,
        "bytes in use do not rise with an allocation",
        expected=f"at least {before + _LARGE}",
        found=str(during),
    )
    expect_equal(after, before, "bytes in use, when the memory is given back,")


@CHECKS.check("SE-173", Level.WORKS)
def allocations_are_counted(ground: DeviceGround) -> None:
    """Five, of which two are given back."""
    before = _stats(ground).num_allocs
    memories = [ground.memory() for _ in range(5)]
    for memory in memories[:2]:
        ground.destroy(memory)
    expect_equal(_stats(ground).num_allocs - before, 5, "the number of allocations in between")


@CHECKS.check("SE-174", Level.WORKS)
def peak_stays(ground: DeviceGround) -> None:
    """When what made it is given back."""
    memory = ground.memory(2 * _LARGE)
    before = _stats(ground).peak_bytes_in_use
    ground.destroy(memory)
    after = _stats(ground).peak_bytes_in_use
    expect(
        after >= before,
        "the peak of bytes in use falls when memory is given back",
        expected=f"at least {before}",
        found=str(after),
    )


@CHECKS.check("SE-175", Level.WORKS)
def largest_is_large(ground: DeviceGround) -> None:
    """Tried after an allocation of known size."""
    ground.destroy(ground.memory(_LARGE))
    found = _stats(ground).largest_alloc_size
    expect(
        found >= _LARGE,
        "the largest allocation is smaller than one that was made",
        expected=f"at least {_LARGE}",
        found=str(found),
    )


@CHECKS.check("SE-176", Level.WORKS, passes=RAW)
def figures_have_their_size(ground: DeviceGround) -> None:
    """Of a struct whose size the host had set."""
    known, stats = raw_subject(ground).memory.stats()
    expect(not known or stats.word(0), "get_allocator_stats left struct_size 0", expected="96")


@CHECKS.check("SE-177", Level.WORKS, passes=RAW)
def flags_are_flags(ground: DeviceGround) -> None:
    """Tried on both flags."""
    known, stats = raw_subject(ground).memory.stats()
    if not known:
        raise Unsupported("get_allocator_stats returns no figures")
    for name in ("has_bytes_limit", "has_bytes_reservable_limit"):
        found = unpack_field(stats.raw(), _STATS.field(name))
        expect_in(found, (0, 1), f"SP_AllocatorStats.{name}")
