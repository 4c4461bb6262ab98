"""Where kernels work: one device, with its memory and its streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.device.native_object import owned, usable
from modular_tf.device.streams.stream import Stream
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.strings import encode

if TYPE_CHECKING:
    from modular_tf.device.device import Device
    from modular_tf.device.executor import Executor
    from modular_tf.kernel.variable import Variable

__all__ = ["KernelSite"]


class KernelSite:
    """A device as kernels see it. [any thread]"""

    __slots__ = ("device", "executor", "is_host", "native", "variables")

    def __init__(self, device: Device) -> None:
        """Make the site of a device, which may be the first use of that.

        Errors as of `Device.executor`.
        """
        self.device = device
        # those in its memory, which end with the service
        self.variables: LiveObjects[Variable] = LiveObjects()
        self.executor: Executor = device.executor
        # the memory of the device is the host's; then kernels have no stream
        self.is_host = device.is_host
        arenas = self.executor.arenas
        arena = None if arenas is None else arenas.of(lib.MTF_DEVICE_MEMORY)
        arguments = (
            self.executor.native,
            ffi.NULL if arena is None else arena.native,
            encode(device.full_name),
            device.index,
            self.is_host,
        )
        new, free = lib.mtf_kernel_site_new, lib.mtf_kernel_site_free
        self.native: Any = owned(new, free, arguments, self.executor, "the site of kernels")

    def checked_stream(self, stream: object) -> Stream:
        """Return a caller's stream; kernels would take any handle for one of their device.

        Raises InvalidArgumentError if it is of another device, TypeError if it is no stream,
        ClosedError if it was closed.
        """
        if not isinstance(stream, Stream):
            raise TypeError(f"stream: expected a Stream of {self.device.name}, found {stream!r}")
        if not stream.is_of(self.executor):
            raise InvalidArgumentError(
                f"stream: expected one of {self.device.name}, found {stream!r} of another device"
                " or service; device.create_stream() makes one"
            )
        usable(stream)
        return stream
