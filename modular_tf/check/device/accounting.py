"""Checks of what a device tells of its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.layouts import layout
from modular_tf.abi.status_codes import Code
from modular_tf.check.check import NOTE, RAW, WARNING, Suite
from modular_tf.check.device.raw_subject import raw_subject
from modular_tf.check.expectation import Unsupported, expect, expect_equal, expect_in, note
from modular_tf.native.host_struct import unpack_field

if TYPE_CHECKING:
    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.device.memory.allocator_stats import AllocatorStats

suite = Suite("device", "accounting", source="device.h")

_MIB = 1 << 20
_LARGE = 3 * _MIB
_STATS = layout("SP_AllocatorStats")
_LOOKS = 20


def _usage(device: DeviceGround) -> tuple[int, int]:
    answer = device.subject.device_memory_usage()
    if answer.code == Code.UNAVAILABLE:
        raise Unsupported("device_memory_usage returns no figures")
    found: tuple[int, int] = answer.must_be_ok()
    return found


def _stats(device: DeviceGround) -> AllocatorStats:
    answer = device.subject.get_allocator_stats()
    if answer.code == Code.UNAVAILABLE:
        raise Unsupported("get_allocator_stats returns no figures")
    found: AllocatorStats = answer.must_be_ok()
    return found


@suite.check("SE-165")
def usage_is_known(device: DeviceGround) -> None:
    """device_memory_usage knows free and total bytes.

    Otherwise: TensorFlow does not create the device: it computes its memory limit from them.
    Remedy: Set both and return 1; the host's memory will do for a device that shares it.
    Source: TensorFlow 2.21, observed
    """
    for _ in range(2):
        answer = device.subject.device_memory_usage()
        expect(answer.ok, "device_memory_usage returns no figures", expected="free and total bytes")
        device.memory()


@suite.check("SE-166")
def usage_is_believable(device: DeviceGround) -> None:
    """Free bytes are from 0 to the total, and the total is above 0.

    Otherwise: The memory limit that a host computes is nonsense.
    Remedy: Report bytes of the device's memory, in 64-bit numbers.
    Source: TensorFlow 2.21, observed
    """
    device.memory(_MIB)
    free, total = _usage(device)
    expect(
        0 <= free <= total and total > 0,
        "free and total bytes are impossible",
        expected="0 <= free <= total",
        found=f"free {free}, total {total}",
    )


@suite.check("SE-167", severity=WARNING)
def total_stays(device: DeviceGround) -> None:
    """The total does not change from call to call.

    Otherwise: Limits that are a share of the total differ from run to run.
    Remedy: Report the size of the device's memory, not what is free of it.
    """
    totals = set()
    for _ in range(_LOOKS):
        totals.add(_usage(device)[1])
        device.memory(_MIB)
    expect(
        len(totals) == 1,
        "the total of the device's memory changes",
        expected="one number",
        found=str(sorted(totals)),
    )


@suite.check("SE-169", severity=NOTE)
def figures_are_known(device: DeviceGround) -> None:
    """get_allocator_stats knows the figures.

    Otherwise: None: TensorFlow requires the slot and never calls it.
    Remedy: Count allocations, and return 1.
    """
    if device.subject.get_allocator_stats().code == Code.UNAVAILABLE:
        note("get_allocator_stats returns no figures")


@suite.check("SE-170", severity=WARNING)
def figures_agree(device: DeviceGround) -> None:
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


@suite.check("SE-171", severity=WARNING)
def limits_hold(device: DeviceGround) -> None:
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
        expect(
            limit is None or getattr(stats, used) <= limit,
            f"{used} is above its limit",
            expected=f"at most {limit}",
            found=str(getattr(stats, used)),
        )


@suite.check("SE-172", severity=WARNING)
def use_rises_and_falls(device: DeviceGround) -> None:
    """Bytes in use rise with an allocation, and fall when it is given back.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Count under the lock that guards the allocations; deallocate knows the size by address.
    """
    before = _stats(device).bytes_in_use
    memory = device.memory(_LARGE)
    during = _stats(device).bytes_in_use
    device.destroy(memory)
    after = _stats(device).bytes_in_use
    expect(
        during >= before + _LARGE,
        "bytes in use do not rise with an allocation",
        expected=f"at least {before + _LARGE}",
        found=str(during),
    )
    expect_equal(after, before, "bytes in use, when the memory is given back,")


@suite.check("SE-173", severity=WARNING)
def allocations_are_counted(device: DeviceGround) -> None:
    """Each allocation is counted once.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: num_allocs counts allocations since the device exists; it never falls.
    """
    before = _stats(device).num_allocs
    memories = [device.memory() for _ in range(5)]
    for memory in memories[:2]:
        device.destroy(memory)
    expect_equal(_stats(device).num_allocs - before, 5, "the number of allocations in between")


@suite.check("SE-174", severity=WARNING)
def peak_stays(device: DeviceGround) -> None:
    """The peak of bytes in use stays when memory is given back.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Let peak_bytes_in_use only rise.
    """
    memory = device.memory(2 * _LARGE)
    before = _stats(device).peak_bytes_in_use
    device.destroy(memory)
    after = _stats(device).peak_bytes_in_use
    expect(
        after >= before,
        "the peak of bytes in use falls when memory is given back",
        expected=f"at least {before}",
        found=str(after),
    )


@suite.check("SE-175", severity=WARNING)
def largest_is_large(device: DeviceGround) -> None:
    """The largest allocation is at least as large as any that was made.

    Otherwise: The figures mislead users who look for a leak or choose a model's size.
    Remedy: Let largest_alloc_size be the largest size so far.
    """
    device.destroy(device.memory(_LARGE))
    found = _stats(device).largest_alloc_size
    expect(
        found >= _LARGE,
        "the largest allocation is smaller than one that was made",
        expected=f"at least {_LARGE}",
        found=str(found),
    )


@suite.check("SE-176", ways=RAW, severity=WARNING)
def figures_have_their_size(device: DeviceGround) -> None:
    """get_allocator_stats leaves struct_size set.

    Otherwise: TensorFlow logs an error and has no figures.
    Remedy: Set it to SP_ALLOCATORSTATS_STRUCT_SIZE.
    Source: TensorFlow 2.21, observed
    """
    known, stats = raw_subject(device).memory.stats()
    expect(not known or stats.word(0), "get_allocator_stats left struct_size 0", expected="96")


@suite.check("SE-177", ways=RAW, severity=WARNING)
def flags_are_flags(device: DeviceGround) -> None:
    """The flags of SP_AllocatorStats are 0 or 1.

    Otherwise: A host may compare them with 1.
    Remedy: Zero the struct before filling it.
    """
    known, stats = raw_subject(device).memory.stats()
    if not known:
        raise Unsupported("get_allocator_stats returns no figures")
    for name in ("has_bytes_limit", "has_bytes_reservable_limit"):
        found = unpack_field(stats.raw(), _STATS.field(name))
        expect_in(found, (0, 1), f"SP_AllocatorStats.{name}")
