"""Statistics of a device's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.errors import UnavailableError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from modular_tf.device.device_core import DeviceCore


class MemoryUsage(NamedTuple):
    """The free and total bytes of a device's memory."""

    free: int
    total: int


@dataclass(frozen=True, slots=True)
class AllocatorStats:
    """The figures of an allocator (SP_AllocatorStats). Sizes are in bytes.

    Attributes:
        num_allocs: Allocations so far.
        bytes_in_use: Now.
        peak_bytes_in_use: The most there ever was at once.
        largest_alloc_size: The largest single allocation.
        bytes_limit: What may be used, None where there is no limit.
        bytes_reserved: Taken from the system now.
        peak_bytes_reserved: The most of that at once.
        bytes_reservable_limit: What may be taken, None where there is no limit.
        largest_free_block_bytes: The largest piece that is free in one.
    """

    num_allocs: int
    bytes_in_use: int
    peak_bytes_in_use: int
    largest_alloc_size: int
    bytes_limit: int | None
    bytes_reserved: int
    peak_bytes_reserved: int
    bytes_reservable_limit: int | None
    largest_free_block_bytes: int

    @classmethod
    def from_native(cls, stats: Any) -> AllocatorStats:
        """Return the values of an `mtf_allocator_stats`."""
        values = {name: getattr(stats, name) for name in cls.__slots__}
        for limit in ("bytes_limit", "bytes_reservable_limit"):
            if not getattr(stats, f"has_{limit}"):
                values[limit] = None
        return cls(**values)


def memory_usage(core: DeviceCore) -> MemoryUsage:
    """Return what the plugin says of free and total bytes; see `Device.memory_usage`."""
    free, total = ffi.new("int64_t *"), ffi.new("int64_t *")
    known = ffi.new("int32_t *")
    error = lib.mtf_device_memory_usage(core.native, free, total, known)
    _require_known(core, error, known[0], "device_memory_usage")
    return MemoryUsage(free[0], total[0])


def allocator_stats(core: DeviceCore) -> AllocatorStats:
    """Return the figures of the arena or the plugin; see `Device.allocator_stats`."""
    stats, known = ffi.new("mtf_allocator_stats *"), ffi.new("int32_t *")
    arena = None if core.arena_of is None else core.arena_of(lib.MTF_DEVICE_MEMORY)
    if arena is not None and lib.mtf_executor_is_open(core.native):
        lib.mtf_arena_get_stats(arena, stats)
    else:
        error = lib.mtf_get_allocator_stats(core.native, stats, known)
        _require_known(core, error, known[0], "get_allocator_stats")
    return AllocatorStats.from_native(stats)


def _require_known(core: DeviceCore, error: Any, known: int, operation: str) -> None:
    core.check(error, operation)
    if not known:
        raise UnavailableError(
            f"{core.name}: {operation}: the plugin does not know (plugin {core.plugin})",
            plugin=core.plugin,
            operation=operation,
        )
