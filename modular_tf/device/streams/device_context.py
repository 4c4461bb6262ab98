"""The streams that every device has, and the copies between host and devices in order.

The sequences are TensorFlow's (device-abi §B5); what they promise: a copy to the device starts
when the compute stream has done what it holds now, and the user of the bytes waits for the event
that the copy returns.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.streams.stream import Stream
from modular_tf.errors import InvalidArgumentError, unexpected
from modular_tf.native.fresh_host_memory import fresh_host_memory

if TYPE_CHECKING:
    from modular_tf.device.device_core import DeviceCore
    from modular_tf.device.memory.device_memory import DeviceMemory, HostBuffer
    from modular_tf.device.streams.event import Event

_MOST_DEVICE_TO_DEVICE = 4
_PIECE = 16 << 20
"""Bytes of the host that a copy between two plugins has in hand at a time; there are two such."""


class DeviceContext:
    """The streams of one device. [any thread]

    They are created together, when the first of them is used, in this order: compute, host to
    device, device to host, then those from device to device; and closed with the device. Copies
    raise as the operations of `Stream`.
    """

    def __init__(self, core: DeviceCore, n_device_to_device: int = 1) -> None:
        """Create a context without streams; 1 to 4 will share the copies between devices.

        Raises InvalidArgumentError for another number.
        """
        if not 1 <= n_device_to_device <= _MOST_DEVICE_TO_DEVICE:
            raise InvalidArgumentError(
                f"{core.name}: {n_device_to_device} device-to-device streams,"
                f" expected 1 to {_MOST_DEVICE_TO_DEVICE}"
            )
        self.core = core
        self._n_device_to_device = n_device_to_device
        self._lock = ForkLock()
        self._turn = count()
        self._streams: tuple[Stream, ...] = ()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """All streams, in the order of their creation; none of them is kept where one fails."""
        return self._streams or self._created()

    def _created(self) -> tuple[Stream, ...]:
        with self._lock:
            if not self._streams:
                created = (Stream.create(self.core) for _ in range(self.n_streams))
                self._streams = tuple(created)
            return self._streams

    @property
    def n_streams(self) -> int:
        """The number of streams once they are created; creates none."""
        return 3 + self._n_device_to_device

    @property
    def n_created(self) -> int:
        """The number of streams that exist now."""
        return len(self._streams)

    @property
    def compute(self) -> Stream:
        """The stream of the device's work."""
        return self.streams[0]

    @property
    def host_to_device(self) -> Stream:
        """The stream of copies to the device."""
        return self.streams[1]

    @property
    def device_to_host(self) -> Stream:
        """The stream of copies from the device."""
        return self.streams[2]

    @property
    def device_to_device(self) -> tuple[Stream, ...]:
        """The streams of copies to other devices."""
        return self.streams[3:]

    def copy_host_to_device(
        self, target: DeviceMemory, source: HostBuffer, n_bytes: int | None = None, offset: int = 0
    ) -> Event:
        """Copy to the device after the present work of the compute stream, by `Stream.memcpy_htod`.

        Returns the event of the copy's end; without a byte to copy too.
        """
        stream = self.host_to_device
        stream.wait_for(self.compute)
        stream.memcpy_htod(target, source, n_bytes, offset)
        return stream.record_event()

    def copy_device_to_host(
        self, target: HostBuffer, source: DeviceMemory, n_bytes: int | None = None, offset: int = 0
    ) -> Event:
        """Copy from the device after all its present work, by `Stream.memcpy_dtoh`.

        Returns the event of the copy's end; without a byte to copy too.
        """
        self.core.synchronize_now()
        stream = self.device_to_host
        stream.wait_for(self.compute)
        stream.memcpy_dtoh(target, source, n_bytes, offset)
        return stream.record_event()

    def copy_on_device(
        self, target: DeviceMemory, source: DeviceMemory, n_bytes: int | None = None
    ) -> None:
        """Copy within the device, on the compute stream, which orders it by itself."""
        self.compute.memcpy_dtod(target, source, n_bytes)

    def copy_to_device(
        self,
        other: DeviceContext,
        target: DeviceMemory,
        source: DeviceMemory,
        n_bytes: int | None = None,
    ) -> Event:
        """Copy to the device of another context; through the host if that is another plugin's.

        Copies all of the source by default, which is on this device. Returns the event of the
        copy's end.
        """
        if not isinstance(other, DeviceContext):
            raise unexpected(other, "copy_to_device", "the context of a device")
        if not self.core.shares_plugin_with(other.core):
            return self._copy_through_host(other, target, source, n_bytes)
        self.core.synchronize_now()
        streams = self.device_to_device
        stream = streams[next(self._turn) % len(streams)]
        stream.wait_for(self.compute)
        stream.wait_for(other.compute)
        stream.memcpy_dtod(target, source, n_bytes)
        return stream.record_event()

    def _copy_through_host(
        self, other: DeviceContext, target: DeviceMemory, source: DeviceMemory, n_bytes: int | None
    ) -> Event:
        """Copy in pieces: one is read while the one before it is written."""
        size = source.size if n_bytes is None else n_bytes
        fits = 0 <= size <= min(source.size, target.size)
        if not fits:  # or else the first pieces would be there
            raise InvalidArgumentError(
                f"{size} bytes reach outside of memories of {source.size} and {target.size} bytes"
            )
        pieces = [fresh_host_memory(min(size, _PIECE)) for _ in range(2 if size > _PIECE else 1)]
        last: Event | None = None
        for number, offset in enumerate(range(0, size, _PIECE)):
            piece = pieces[number % 2][: min(_PIECE, size - offset)]
            self.copy_device_to_host(piece, source, offset=offset).wait()
            if last is not None:
                last.wait()
            last = other.copy_host_to_device(target, piece, offset=offset)
        return other.copy_host_to_device(target, b"") if last is None else last
