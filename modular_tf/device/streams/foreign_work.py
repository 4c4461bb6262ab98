"""Work that others put on a stream by the plugin's own handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory, held
from modular_tf.device.native_object import usable
from modular_tf.device.streams.in_flight import COST
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from modular_tf.device.arrays.array import DeviceArray
    from modular_tf.device.arrays.array_memory import ArrayMemory
    from modular_tf.device.streams.in_flight import Batch, InFlight, Used
    from modular_tf.device.streams.stream import Stream


class ForeignWork:
    """A block of code that queues work on a stream by its handle. One thread, once.

    What the work uses is held before the block begins, since its code may be interrupted when it
    has queued something; and again at its end, since others may have waited for the stream.
    """

    __slots__ = ("_batch", "_in_flight", "_native", "_stream", "_used")

    def __init__(
        self,
        stream: Stream,
        in_flight: InFlight,
        used: tuple[DeviceArray | ArrayMemory, ...],
    ) -> None:
        """Hold what the work uses; nothing counts as queued yet."""
        self._stream = stream
        self._in_flight = in_flight
        self._native: Any = None
        self._batch: Batch = []
        self._used: Used = [_hold(each) for each in used]

    def __enter__(self) -> int:
        self._native = usable(self._stream)  # kept: the stream may be closed meanwhile
        self._batch = self._in_flight.batch
        self._batch.append(self._used)
        return int(lib.mtf_stream_handle(self._native))

    def __exit__(self, *raised: object) -> None:
        in_flight = self._in_flight
        in_flight.keep(self._batch, self._used)
        in_flight.room -= COST
        if in_flight.room <= 0 and not self._stream.closed:
            in_flight.end_batch(self._stream)
        self._native = None


def _hold(used: DeviceArray | ArrayMemory) -> object:
    """Return what keeps a memory, or that of an array, whose exports wait from then on."""
    memory = used if isinstance(used, (DeviceMemory, HostMemory)) else used.memory
    return held(memory)[1] if isinstance(memory, DeviceMemory) else memory.view
