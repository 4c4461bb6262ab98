"""Memory of a device, host memory that a device can reach, and other host memory for copies."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from modular_tf.abi.status_codes import Code
from modular_tf.device.device_core import (
    NativeObject,
    call_and_own,
    check_natural,
    owned,
    usable,
    whole_number,
)
from modular_tf.errors import InvalidArgumentError, ModularTFError, OutOfMemoryError, unexpected
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer, Self

    from modular_tf.device.device_core import DeviceCore

HostBuffer: TypeAlias = "Buffer | HostMemory"
"""An object with contiguous bytes (bytes, bytearray, memoryview, array, mmap, numpy array), or
pinned memory."""

MemoryKind: TypeAlias = Literal["device", "host", "unified"]
"""Device memory; pinned memory of the host; memory that both use."""

ArrayMemory: TypeAlias = "DeviceMemory | HostMemory"
"""Unified memory is a device memory that the host sees too."""

_MAX_BYTES = (1 << 63) - 1
_OPERATIONS = {
    lib.MTF_DEVICE_MEMORY: "allocate",
    lib.MTF_HOST_MEMORY: "host_memory_allocate",
    lib.MTF_UNIFIED_MEMORY: "unified_memory_allocate",
}
_new_memory = lib.mtf_memory_new
_new_arena_memory = lib.mtf_arena_memory_new
_free_memory = lib.mtf_memory_free


class DeviceMemory(NativeObject):
    """Bytes on a device. [any thread]

    What needs the memory raises ClosedError once it, or its device, was closed.

    Attributes:
        size: In bytes.
        hold: What keeps the memory; None when closed. A copy in flight has a reference to it.
    """

    __slots__ = ("_address", "hold", "size")

    def __init__(self, core: DeviceCore, native: Any, size: int, owner: object = None) -> None:
        """Wrap a native memory; `owner` lives as long as anything uses it."""
        self._address = lib.mtf_memory_address(native)
        self.size = size
        self.hold: Any = native if owner is None else (native, owner)
        super().__init__(core, native)

    @classmethod
    def allocate(cls, core: DeviceCore, n_bytes: int) -> DeviceMemory:
        """Return new memory; see `Device.allocate`. 0 bytes need no plugin."""
        free = core.free_host_memory if core.is_host else _free_memory
        return cls(core, _allocated(core, lib.MTF_DEVICE_MEMORY, n_bytes, free), n_bytes)

    @classmethod
    def borrow(
        cls, core: DeviceCore, address: int, size: int, *, owner: object, payload: int = 0
    ) -> DeviceMemory:
        """Return memory that its owner frees: an arena, or a larger allocation.

        The address is the plugin's `opaque`, the payload the plugin's. The owner is kept until the
        memory is closed and no copy uses it any more; dropping it may free the memory.
        """
        return cls(core, borrowed(core, address, size, payload), size, owner)

    @property
    def is_borrowed(self) -> bool:
        """Whether it is a part of other memory, or a kernel's own; False once it was closed."""
        return isinstance(self.hold, tuple)

    @property
    def address(self) -> int:
        """The plugin's handle; for most plugins an address, which the host may not read."""
        if self.closed:
            is_own = self.native is None and not self._core.has_ended(self)
            what = "the device memory" if is_own else "the device of the memory"
            raise self._core.closed_error(what)
        return int(self._address)

    def part(self, offset: int, size: int) -> DeviceMemory:
        """Return a piece of this memory, which keeps the whole.

        Raises:
            InvalidArgumentError: It reaches outside.
        """
        offset, size = _checked_part(offset, size, self.size)
        native, hold = held(self)
        address, payload = self._address + offset, lib.mtf_memory_payload(native)
        return DeviceMemory.borrow(self._core, address, size, owner=hold, payload=payload)

    def close(self) -> None:
        """Release the memory after the last copy that uses it. Safe to call twice."""
        self.native = None
        self.hold = None

    def __len__(self) -> int:
        return self.size


class HostMemory:
    """Host memory that the plugin allocated, for asynchronous copies. [any thread]

    Views of `view` keep the memory, and with it the device, even when the service is closed. Its
    attributes raise ClosedError once it was closed.

    Attributes:
        size: In bytes.
    """

    __slots__ = ("__weakref__", "_address", "_core", "_view", "size")

    def __init__(self, core: DeviceCore, native: Any, size: int, owner: object = None) -> None:
        """Wrap a native memory, which the view keeps from now on, and what has to live as long."""
        self._address = lib.mtf_memory_address(native)
        self.size = size
        self._core = core
        kept = native, owner
        start = ffi.gc(ffi.cast("char *", self._address), lambda _: kept)  # it keeps the memory
        self._view: memoryview | None = memoryview(ffi.buffer(start, size)).cast("B")

    @classmethod
    def allocate(
        cls, core: DeviceCore, n_bytes: int, kind: int = lib.MTF_HOST_MEMORY
    ) -> HostMemory:
        """Return new memory of a kind that the host sees; see `Device.allocate_host`."""
        return cls(core, _allocated(core, kind, n_bytes, core.free_host_memory), n_bytes)

    @property
    def address(self) -> int:
        """The address of its first byte."""
        if self._view is None:
            raise self._core.closed_error("the host memory")
        return int(self._address)

    @property
    def view(self) -> memoryview:
        """The bytes, writable; each call returns a new view, which can be released separately."""
        view = self._view
        if view is None:
            raise self._core.closed_error("the host memory")
        return memoryview(view)

    def part(self, offset: int, size: int) -> HostMemory:
        """Return a piece of this memory, which keeps the whole; raises as `DeviceMemory.part`."""
        offset, size = _checked_part(offset, size, self.size)
        native = borrowed(self._core, self.address + offset, size)
        return HostMemory(self._core, native, size, self.view)

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._view is None

    def close(self) -> None:
        """Release the memory after the last view or copy that uses it. Safe to call twice."""
        self._view = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._core.name}, {self.size} bytes>"


class UnifiedMemory(DeviceMemory):
    """Memory that both the device and the host use at one address. [any thread]

    The plugin says when one side sees what the other has written; `synchronize` is always enough.
    """

    __slots__ = ("_host",)

    def __init__(self, core: DeviceCore, host: HostMemory) -> None:
        self._host = host
        native = borrowed(core, host.address, host.size)
        super().__init__(core, native, host.size, host.view)

    @classmethod
    def allocate(cls, core: DeviceCore, n_bytes: int) -> UnifiedMemory:
        """Return new memory; see `Device.allocate_unified`."""
        return cls(core, HostMemory.allocate(core, n_bytes, lib.MTF_UNIFIED_MEMORY))

    @property
    def address(self) -> int:
        """The address on both; the host may still use it after the device was closed."""
        return self._host.address

    def part(self, offset: int, size: int) -> UnifiedMemory:
        """Return a piece of this memory, which keeps the whole; raises as `DeviceMemory.part`."""
        return UnifiedMemory(self._core, self._host.part(offset, size))

    @property
    def view(self) -> memoryview:
        """The bytes, as the host sees them; it keeps the memory."""
        return self._host.view

    def close(self) -> None:
        """Release the memory after the last view or copy that uses it. Safe to call twice."""
        super().close()
        self._host.close()


def held(memory: DeviceMemory) -> tuple[Any, Any]:
    """Return the native part of a memory, and an object that keeps it after a close.

    Raises ClosedError if it was closed, TypeError if it is no memory of a device.
    """
    try:
        hold, native = memory.hold, memory.native  # in this order: closing drops the hold last
    except AttributeError:
        hold = native = None
    return (native, hold) if native is not None else (usable(memory, DeviceMemory), None)


def _checked_part(offset: int, size: int, whole: int) -> tuple[int, int]:
    check_natural(offset, size)
    offset, size = index(offset), index(size)  # numpy's may overflow
    if offset + size > whole:
        raise InvalidArgumentError(
            f"{size} bytes at offset {offset} reach outside of a memory of {whole} bytes"
        )
    return offset, size


# -- allocation ------------------------------------------------------------------------------------


def borrowed(core: DeviceCore, address: int, size: int, payload: int = 0) -> Any:
    """Return a native memory that its owner frees."""
    arguments = core.native, ffi.cast("void *", address), size, payload
    return owned(lib.mtf_memory_borrow, _free_memory, arguments, core, "borrow")


def _allocated(core: DeviceCore, kind: int, n_bytes: int, free: Callable[[Any], None]) -> Any:
    """Return native memory of a kind `MTF_*_MEMORY`; or raise, as `Device.allocate` says.

    A failed attempt is repeated after releasing the memory that streams have passed. `free` is
    called with the native memory when its owner has gone.
    """
    n_bytes = whole_number(n_bytes, f"{core.name}: bytes to allocate")
    if not 0 <= n_bytes <= _MAX_BYTES:
        raise InvalidArgumentError(f"{core.name}: {n_bytes} bytes cannot be allocated")
    native = _try_allocate(core, kind, n_bytes, free)
    if native:
        return native
    failure = _failure(core, kind)
    if isinstance(failure, OutOfMemoryError) and core.release_passed():
        native = _try_allocate(core, kind, n_bytes, free)
        if native:
            return native
        failure = _failure(core, kind)
    raise failure


def _try_allocate(core: DeviceCore, kind: int, n_bytes: int, free: Callable[[Any], None]) -> Any:
    arena = None if core.arena_of is None else core.arena_of(kind)
    if arena is None:
        return call_and_own(_new_memory, (core.native, kind, n_bytes), free)
    return call_and_own(_new_arena_memory, (core.native, arena, kind, n_bytes), free)


def _failure(core: DeviceCore, kind: int) -> ModularTFError:
    error = core.failure(lib.mtf_take_error(), _OPERATIONS[kind])
    if error.code is not Code.RESOURCE_EXHAUSTED:
        return error
    return OutOfMemoryError(error.message, plugin=error.plugin, operation=error.operation)


# -- any memory of the host ------------------------------------------------------------------------


def host_buffer(found: HostBuffer, *, writable: bool = False) -> Any:
    """Return the bytes of an object; they stay in place as long as the result lives.

    Raises InvalidArgumentError if they are not contiguous, or read-only where they are to be
    written, or it has none.
    """
    if isinstance(found, HostMemory):
        found = found.view
    try:
        return ffi.from_buffer("char[]", found, writable)
    except (BufferError, ValueError) as error:
        raise InvalidArgumentError(f"{type(found).__name__} as a host buffer: {error}") from None
    except TypeError:
        expected = "an object with contiguous bytes, such as a bytearray or a numpy array"
        raise unexpected(found, "a host buffer", expected) from None


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
