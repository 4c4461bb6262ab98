"""Arenas over the memory of a device, for plugins with `use_bfc_allocator`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.device.memory.allocator_stats import AllocatorStats
from modular_tf.device.memory.arena import Arena
from modular_tf.device.memory.arena_source import RegionSource
from modular_tf.device.native_object import owned
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from modular_tf.device.executor import Executor
    from modular_tf.device.memory.arena import ArenaStats

_NO_LIMIT = 1 << 62


class ExecutorArena:
    """An arena over one kind of a device's memory. [any thread]

    The plugin is asked for regions only. Memory returns to the arena when nothing, a copy in
    flight included, uses it any more, and at the latest when the device is closed; the plugin gets
    its regions back when the arena is closed and nothing of it is in use.
    """

    __slots__ = ("_arena", "_bytes_limit")

    def __init__(
        self,
        executor: Executor,
        kind: int,
        bytes_limit: int | None,
        *,
        growth: bool = True,
        garbage_collection: bool = True,
    ) -> None:
        """Create an arena; the plugin is called when an allocation needs a region.

        Args:
            executor: Of the device.
            kind: `MTF_DEVICE_MEMORY` or `MTF_HOST_MEMORY`.
            bytes_limit: What regions together may reach; None for what the plugin gives.
            growth: Start with a small region; otherwise the first has the size of the limit.
            garbage_collection: Return unused regions when an allocation would fail without that.
        """
        self._bytes_limit = bytes_limit
        self._arena = Arena(
            executor_memory(executor, kind),
            _NO_LIMIT if bytes_limit is None else bytes_limit,
            growth=growth,
            garbage_collection=garbage_collection,
            name=executor.name + ("" if kind == lib.MTF_DEVICE_MEMORY else " host memory"),
        )

    @property
    def native(self) -> Any:
        """The native arena, for `mtf_arena_memory_new`."""
        return self._arena.native

    def stats(self) -> ArenaStats:
        """Return the arena's own figures."""
        return self._arena.stats()

    def allocator_stats(self) -> AllocatorStats:
        """Return the figures under TensorFlow's names."""
        stats = self._arena.stats()
        return AllocatorStats(
            num_allocs=stats.num_allocs,
            bytes_in_use=stats.bytes_in_use,
            peak_bytes_in_use=stats.peak_bytes_in_use,
            largest_alloc_size=stats.largest_alloc_size,
            bytes_limit=self._bytes_limit,
            bytes_reserved=stats.bytes_reserved,
            peak_bytes_reserved=stats.peak_bytes_reserved,
            bytes_reservable_limit=None,
            largest_free_block_bytes=stats.largest_free_block_bytes,
        )

    def close(self) -> None:
        """Refuse further allocations; regions go back with the last memory in use."""
        self._arena.close()


def executor_memory(executor: Executor, kind: int) -> RegionSource:
    """Return device memory as a source of regions, or pinned memory for `MTF_HOST_MEMORY`."""
    new, free = lib.mtf_executor_memory_new, lib.mtf_executor_memory_release
    return RegionSource(
        ffi.addressof(lib, "mtf_executor_memory_allocate"),
        ffi.addressof(lib, "mtf_executor_memory_free"),
        owned(new, free, (executor.native, kind), executor, "make an arena"),
        ffi.addressof(lib, "mtf_executor_memory_retain"),
        ffi.addressof(lib, "mtf_executor_memory_release"),
        executor,
    )
