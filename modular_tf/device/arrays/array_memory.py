"""The three kinds of memory of arrays, and whole copies to, from and between them.

All copies are done when they return. Those of device memory go over the device context's streams,
in the order that TensorFlow has them in; pinned memory is the host's, and needs no stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from modular_tf.device.memory.device_memory import (
    DeviceMemory,
    HostMemory,
    UnifiedMemory,
    host_buffer,
)
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from typing import TypeGuard

    from modular_tf.device.executor import Executor
    from modular_tf.device.memory.device_memory import HostBuffer
    from modular_tf.device.streams.event import Event
    from modular_tf.device.streams.stream import Stream

MemoryKind: TypeAlias = Literal["device", "host", "unified"]
"""Device memory; pinned memory of the host; memory that both use."""

ArrayMemory: TypeAlias = "DeviceMemory | HostMemory"
"""Unified memory is a device memory that the host sees too."""

_KINDS = {"device": DeviceMemory, "host": HostMemory, "unified": UnifiedMemory}


def allocate(executor: Executor, n_bytes: int, kind: MemoryKind) -> ArrayMemory:
    """Return new memory of a kind; InvalidArgumentError if there is no such kind."""
    if kind not in _KINDS:
        raise InvalidArgumentError(f"memory {kind!r}: expected 'device', 'host' or 'unified'")
    made: ArrayMemory = _KINDS[kind].allocate(executor, n_bytes)
    return made


def write(executor: Executor, target: ArrayMemory, data: HostBuffer) -> None:
    """Copy bytes of the host into new memory; raises as the operations of `Stream`."""
    if _is_reached_by_streams(target, executor):
        context = executor.context
        _finish(context.copy_host_to_device(target, data), context.host_to_device)
    else:
        _copy_bytes(host_buffer(_host_side(target), writable=True), host_buffer(data))


def overwrite(executor: Executor, target: ArrayMemory, data: HostBuffer) -> None:
    """Copy bytes of the host into memory that may be in use; raises as `write`."""
    if not _is_reached_by_streams(target, executor):  # no stream waits for what is in flight
        wait_for_streams(executor)
    write(executor, target, data)


def read(executor: Executor, target: HostBuffer, source: ArrayMemory) -> None:
    """Copy a memory into bytes of the host; raises as the operations of `Stream`."""
    if _is_reached_by_streams(source, executor):
        executor.await_streams()
        context = executor.context
        _finish(context.copy_device_to_host(target, source), context.device_to_host)
    else:
        wait_for_streams(executor)
        _copy_bytes(host_buffer(target, writable=True), host_buffer(_host_side(source)))


def read_output(executor: Executor, target: HostBuffer, source: int, n_bytes: int) -> None:
    """Copy bytes at an address of the host, which the caller keeps, of a device that may be closed.

    Raises ClosedError if it was closed, and errors of `Executor.await_streams`.
    """
    executor.await_streams()
    to = host_buffer(target, writable=True)
    executor.check(lib.mtf_read_host_memory(executor.native, to, source, n_bytes), "read")


def copy(from_: Executor, source: ArrayMemory, to: Executor, target: DeviceMemory) -> None:
    """Copy a memory to another device, or to the same; raises as the operations of `Stream`."""
    if not _is_reached_by_streams(source, from_):
        wait_for_streams(from_)
        write(to, target, _host_side(source))
    elif from_ is to:
        stream = to.context.compute
        to.context.copy_on_device(target, source)
        _finish(stream.record_event(), stream)
    else:
        from_.await_streams()
        here, there = from_.context, to.context
        event = here.copy_to_device(there, target, source)
        _finish(event, *here.device_to_device, here.device_to_host, there.host_to_device)


def wait_for_streams(executor: Executor) -> None:
    """Wait until the device neither reads nor writes memory; returns at once if it was closed.

    Raises ClosedError while the device is being closed, as it works until that has ended, and
    errors of `Executor.synchronize`.
    """
    if executor.may_work:
        executor.synchronize()


def _is_reached_by_streams(memory: ArrayMemory, executor: Executor) -> TypeGuard[DeviceMemory]:
    """Whether this is memory of a device; unified memory is the host's when that was closed."""
    is_left_to_host = executor.closed and isinstance(memory, UnifiedMemory)
    return isinstance(memory, DeviceMemory) and not is_left_to_host


def _host_side(memory: ArrayMemory) -> memoryview:
    return memory.view  # type: ignore[union-attr]  # plain device memory does not get here


def _finish(event: Event, *streams: Stream) -> None:
    """Wait for a copy, and release what its streams kept for it."""
    event.wait()  # only this reports that the copy failed
    for stream in streams:
        stream.finish_passed()


def _copy_bytes(target: Any, source: Any) -> None:
    if len(target) != len(source):
        raise InvalidArgumentError(
            f"{len(source)} bytes cannot be copied over a memory of {len(target)}"
        )
    ffi.memmove(target, source, len(source))
