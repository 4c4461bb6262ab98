"""Synchronous copies, by the plugin's sync_memcpy functions."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

from modular_tf.device.memory.device_memory import held
from modular_tf.device.memory.host_buffer import checked_size, host_buffer, writable_host_buffer
from modular_tf.device.native_object import check_natural, whole_number
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from modular_tf.device.executor import Executor
    from modular_tf.device.memory.device_memory import DeviceMemory
    from modular_tf.device.memory.host_buffer import HostBuffer


def copy_htod(
    executor: Executor, target: DeviceMemory, source: HostBuffer, n_bytes: int | None, offset: int
) -> None:
    """Copy from the host to the device; see `Stream.memcpy_htod`."""
    with host_buffer(source) as data:
        size = checked_size(n_bytes, data)
        check_natural(offset)
        native, _kept = held(target)
        if size:
            error = lib.mtf_sync_memcpy_htod(executor.native, native, index(offset), data, size)
            executor.check(error, "sync_memcpy_htod")


def copy_dtoh(
    executor: Executor, target: HostBuffer, source: DeviceMemory, n_bytes: int | None, offset: int
) -> None:
    """Copy from the device to the host; see `Stream.memcpy_dtoh`."""
    with writable_host_buffer(target) as data:
        size = checked_size(n_bytes, data)
        check_natural(offset)
        native, _kept = held(source)
        if size:
            error = lib.mtf_sync_memcpy_dtoh(executor.native, data, native, index(offset), size)
            executor.check(error, "sync_memcpy_dtoh")


def copy_dtod(
    executor: Executor,
    target: DeviceMemory,
    source: DeviceMemory,
    n_bytes: int | None,
    target_offset: int,
    source_offset: int,
) -> None:
    """Copy within the device, through the host where the plugin has no sync_memcpy_dtod."""
    (to, _target), (start, _source) = held(target), held(source)
    check_natural(target_offset, source_offset)
    target_offset, source_offset = index(target_offset), index(source_offset)
    left = source.size - source_offset
    size = left if n_bytes is None else whole_number(n_bytes, "a size or an offset")
    check_natural(size)
    if not size:
        return
    if lib.mtf_has_operation(executor.native, lib.MTF_SYNC_MEMCPY_DTOD):
        error = lib.mtf_sync_memcpy_dtod(
            executor.native, to, target_offset, start, source_offset, size
        )
        executor.check(error, "sync_memcpy_dtod")
        return
    staging = bytearray(size)
    copy_dtoh(executor, staging, source, size, source_offset)
    copy_htod(executor, target, staging, size, target_offset)
