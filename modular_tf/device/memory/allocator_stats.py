"""Statistics of a device's memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


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
        return cls(
            num_allocs=stats.num_allocs,
            bytes_in_use=stats.bytes_in_use,
            peak_bytes_in_use=stats.peak_bytes_in_use,
            largest_alloc_size=stats.largest_alloc_size,
            bytes_limit=stats.bytes_limit if stats.has_bytes_limit else None,
            bytes_reserved=stats.bytes_reserved,
            peak_bytes_reserved=stats.peak_bytes_reserved,
            bytes_reservable_limit=(
                stats.bytes_reservable_limit if stats.has_bytes_reservable_limit else None
            ),
            largest_free_block_bytes=stats.largest_free_block_bytes,
        )
