"""Where kernels work: one device, with its memory and its streams, and the tensors there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.device.device_core import owned, usable
from modular_tf.device.streams.stream import Stream
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.strings import encode

if TYPE_CHECKING:
    from modular_tf.abi.data_types import DataType
    from modular_tf.device.device import Device
    from modular_tf.device.executor import Executor

__all__ = ["KernelInput", "KernelSite"]


class KernelInput(NamedTuple):
    """A tensor as a kernel gets it."""

    address: int  # of its first element
    n_bytes: int  # of all elements
    shape: tuple[int, ...]
    type: DataType
    is_on_host: bool  # in host memory
    kept: Any  # what keeps the memory
    variable: Any = None  # the native variable of a resource or reference


class KernelSite:
    """A device as kernels see it. [any thread]"""

    __slots__ = ("device", "executor", "is_host", "native", "variables")

    def __init__(self, device: Device) -> None:
        """Make the site of a device, which may be the first use of that.

        Errors as of `Device.executor`.
        """
        self.device = device
        # those in its memory, which end with the service
        self.variables: LiveObjects[Any] = LiveObjects()
        self.executor: Executor = device.executor
        # the memory of the device is the host's; then kernels have no stream
        self.is_host = device.is_host
        arena_of = self.executor.arena_of
        arena = None if arena_of is None else arena_of(lib.MTF_DEVICE_MEMORY)
        arguments = (
            self.executor.native,
            ffi.NULL if arena is None else arena,
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
