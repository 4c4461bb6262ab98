"""Arenas over the memory of a device: what a plugin with `use_bfc_allocator` wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.device.arena import Arena
from modular_tf.device.arena_source import RegionSource
from modular_tf.device.memory import DeviceMemory
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.device.arena import ArenaStats
    from modular_tf.device.executor import Executor


class ExecutorArena:
    """Device memory by way of an arena: the plugin is asked for regions only. [any thread].

    What it gives out is ordinary `DeviceMemory`, which returns to the arena when nothing, a copy in
    flight included, uses it any more. When the device is closed the plugin gets its regions back,
    and the arena gives nothing more.
    """

    __slots__ = ("_executor", "arena")

    def __init__(
        self,
        executor: Executor,
        bytes_limit: int,
        *,
        growth: bool = True,
        garbage_collection: bool = True,
    ) -> None:
        """Make an arena over `allocate` and `deallocate`; see `Arena` for the arguments.

        Args:
            executor: Of the device.
            bytes_limit: What regions together may reach (`memory_limit.device_bytes_limit`).
            growth: Start with a small region; otherwise the first has the size of the limit.
            garbage_collection: Return unused regions when an allocation would fail without that.
        """
        self._executor = executor
        self.arena = Arena(
            executor_memory(executor),
            bytes_limit,
            growth=growth,
            garbage_collection=garbage_collection,
            name=executor.name,
        )

    def allocate(self, n_bytes: int) -> DeviceMemory:
        """Allocate; 0 bytes need no plugin and no room.

        Raises:
            OutOfMemoryError: The limit or the device is exhausted; with the arena's picture.
            InvalidArgumentError: The size is negative.
            ClosedError: The arena or the device was closed.
        """
        block, address = self.arena.allocate_block(n_bytes)
        return DeviceMemory.borrow(self._executor, address, n_bytes, owner=block)

    def stats(self) -> ArenaStats:
        """Return the arena's figures."""
        return self.arena.stats()

    def close(self) -> None:
        """Refuse further allocations; regions go back with the last memory in use."""
        self.arena.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def executor_memory(executor: Executor, kind: int = lib.MTF_DEVICE_MEMORY) -> RegionSource:
    """Return the device's memory, or another kind of it, as a source of regions for one arena.

    Args:
        executor: Of the device; an arena keeps it alive.
        kind: `MTF_DEVICE_MEMORY`, `MTF_HOST_MEMORY` for an arena of pinned memory, or
            `MTF_UNIFIED_MEMORY`. Whoever drops an arena of the latter two tells the executor so,
            by `host_memory_ended`.
    """
    made = ffi.new("mtf_executor_memory **")
    executor.check(lib.mtf_executor_memory_new(executor.native, kind, made), "make an arena")
    return RegionSource(
        ffi.addressof(lib, "mtf_executor_memory_allocate"),
        ffi.addressof(lib, "mtf_executor_memory_free"),
        made[0],
        ffi.addressof(lib, "mtf_executor_memory_release"),
        executor,
    )
