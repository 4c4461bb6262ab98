"""The streams on which consumers of the C exchange table work, since the table waits for none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.abi.dlpack_devices import HOST, DeviceType
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.device.native_object import usable
from modular_tf.native.ffi import lib
from modular_tf.native.tensor import set_work_stream_query

if TYPE_CHECKING:
    from modular_tf.device.executor import Executor

_EXECUTORS: dict[tuple[int, int], LiveObjects[Executor]] = {}
"""Whose memory a DLPack device is; several where the configuration calls them all by one type."""


def note_device(place: tuple[int, int], executor: Executor) -> None:
    """Remember that memory of a DLPack device is an executor's. [any thread]"""
    if place == HOST:  # has no streams, and is waited for
        return
    known = _EXECUTORS.get(place)
    if known is None:
        known = _EXECUTORS.setdefault(place, LiveObjects())
    known.add(executor)


def current_work_stream(device_type: int, number: int) -> int:
    """Return the stream on which a consumer's work comes after the present work of a device.

    For kDLExtDev that is the address of the plugin's SP_Stream of the device's compute stream,
    which waits for all other streams of the device from then on. A vendor's types have streams of
    their own, which nothing here can make of an SP_Stream: the work is waited for, and the default
    stream, 0, is right. It is 0 too for devices that no array here was on. Raises ClosedError if
    the device was closed meanwhile, and errors of `Executor.synchronize`.
    """
    known = _EXECUTORS.get((device_type, number))
    executors = [] if known is None else [each for each in known.all() if not each.closed]
    if device_type == DeviceType.EXT_DEV and len(executors) == 1:
        stream = executors[0].context.compute
        executors[0].order_after_all(stream)
        return int(lib.mtf_stream_handle(usable(stream)))
    for executor in executors:
        executor.synchronize()
    return 0


set_work_stream_query(current_work_stream)
