"""Allocation of an executor's memory, and its statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.device.memory.allocator_stats import AllocatorStats, MemoryUsage
from modular_tf.device.native_object import call_and_own, whole_number
from modular_tf.errors import (
    InvalidArgumentError,
    ModularTFError,
    OutOfMemoryError,
    UnavailableError,
)
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.executor import Executor

_MAX_BYTES = (1 << 63) - 1
_OPERATIONS = {
    lib.MTF_DEVICE_MEMORY: "allocate",
    lib.MTF_HOST_MEMORY: "host_memory_allocate",
    lib.MTF_UNIFIED_MEMORY: "unified_memory_allocate",
}
_new_memory = lib.mtf_memory_new
_new_arena_memory = lib.mtf_arena_memory_new


def new_memory(executor: Executor, kind: int, n_bytes: int, free: Callable[[Any], None]) -> Any:
    """Return native memory of an executor, of a kind `MTF_*_MEMORY`; or raise if there is none.

    A failed attempt is repeated after releasing the memory that streams have passed. `free` is
    called with the native memory when its owner has gone.

    Raises:
        OutOfMemoryError: The plugin or the arena has no such block.
        InvalidArgumentError: The size is no whole number, negative, or too large for any device.
        ModularTFError: The plugin's own status.
    """
    n_bytes = whole_number(n_bytes, f"{executor.name}: bytes to allocate")
    if not 0 <= n_bytes <= _MAX_BYTES:
        raise InvalidArgumentError(f"{executor.name}: {n_bytes} bytes cannot be allocated")
    native = _try_allocate(executor, kind, n_bytes, free)
    if native:
        return native
    failure = _failure(executor, kind)
    if isinstance(failure, OutOfMemoryError) and executor.release_passed():
        native = _try_allocate(executor, kind, n_bytes, free)
        if native:
            return native
        failure = _failure(executor, kind)
    raise failure


def _try_allocate(executor: Executor, kind: int, n_bytes: int, free: Callable[[Any], None]) -> Any:
    arena = None if executor.arenas is None else executor.arenas.of(kind)
    if arena is None:
        return call_and_own(_new_memory, (executor.native, kind, n_bytes), free)
    return call_and_own(_new_arena_memory, (executor.native, arena.native, kind, n_bytes), free)


def _failure(executor: Executor, kind: int) -> ModularTFError:
    error = executor.failure(lib.mtf_take_error(), _OPERATIONS[kind])
    if error.code is not Code.RESOURCE_EXHAUSTED:
        return error
    return OutOfMemoryError(error.message, plugin=error.plugin, operation=error.operation)


def memory_usage(executor: Executor) -> MemoryUsage:
    """Return what the plugin says of free and total bytes; see `Executor.memory_usage`."""
    free, total = ffi.new("int64_t *"), ffi.new("int64_t *")
    known = ffi.new("int32_t *")
    error = lib.mtf_device_memory_usage(executor.native, free, total, known)
    _require_known(executor, error, known[0], "device_memory_usage")
    return MemoryUsage(free[0], total[0])


def allocator_stats(executor: Executor) -> AllocatorStats:
    """Return the figures of the arena or the plugin; see `Executor.allocator_stats`."""
    arena = None if executor.arenas is None else executor.arenas.of(lib.MTF_DEVICE_MEMORY)
    if arena is not None and lib.mtf_executor_is_open(executor.native):
        return arena.allocator_stats()
    stats, known = ffi.new("mtf_allocator_stats *"), ffi.new("int32_t *")
    error = lib.mtf_get_allocator_stats(executor.native, stats, known)
    _require_known(executor, error, known[0], "get_allocator_stats")
    return AllocatorStats.from_native(stats)


def _require_known(executor: Executor, error: Any, known: int, operation: str) -> None:
    executor.check(error, operation)
    if not known:
        raise UnavailableError(
            f"{executor.name}: {operation}: the plugin does not know (plugin {executor.plugin})",
            plugin=executor.plugin,
            operation=operation,
        )
