"""Access to host memory for copies, by Python's buffer protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from modular_tf.device.memory.device_memory import HostMemory
from modular_tf.device.native_object import whole_number
from modular_tf.errors import InvalidArgumentError, unexpected
from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from typing_extensions import Buffer

HostBuffer: TypeAlias = "Buffer | HostMemory"
"""An object with contiguous bytes (bytes, bytearray, memoryview, array, mmap, numpy array), or
pinned memory."""


def host_buffer(found: HostBuffer) -> Any:
    """Return the bytes of an object; they stay in place as long as the result lives.

    Raises InvalidArgumentError if they are not contiguous, or it has none.
    """
    return _bytes_of(found, writable=False)


def writable_host_buffer(found: HostBuffer) -> Any:
    """Return the writable bytes of an object; they stay in place as long as the result lives.

    Raises InvalidArgumentError if they are read-only or not contiguous, or it has none.
    """
    return _bytes_of(found, writable=True)


def _bytes_of(found: Any, *, writable: bool) -> Any:
    if isinstance(found, HostMemory):
        found = found.view
    try:
        return ffi.from_buffer("char[]", found, writable)
    except (BufferError, ValueError) as error:
        raise InvalidArgumentError(f"{type(found).__name__} as a host buffer: {error}") from None
    except TypeError:
        expected = "an object with contiguous bytes, such as a bytearray or a numpy array"
        raise unexpected(found, "a host buffer", expected) from None


def release(data: Any) -> None:
    """Release the bytes of a copy that failed.

    The traceback keeps what the functions on its way had. Python before 3.11.9 and 3.12.3 crashes
    when its collector finds a memoryview there together with what uses its bytes (gh-77894).
    """
    ffi.release(data)


def checked_size(n_bytes: int | None, data: Any) -> int:
    """Return how many bytes of a host buffer to copy: all where `n_bytes` is None.

    Raises InvalidArgumentError if the buffer is smaller.
    """
    available = len(data)
    if n_bytes is None:
        return available
    size = whole_number(n_bytes, "bytes to copy")
    if not 0 <= size <= available:
        raise InvalidArgumentError(f"{n_bytes} bytes of a host buffer of {available} bytes")
    return size
