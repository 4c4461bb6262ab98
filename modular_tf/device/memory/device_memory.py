"""Memory of a device, and host memory that a device can reach."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from modular_tf.device.native_object import NativeObject, check_natural, usable
from modular_tf.errors import InvalidArgumentError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from modular_tf.device.executor import Executor


class DeviceMemory(NativeObject):
    """Bytes on a device. [any thread]

    Attributes:
        size: In bytes.
        hold: What keeps the memory; None when closed. A copy in flight has a reference to it.
    """

    __slots__ = ("_address", "hold", "size")

    def __init__(self, executor: Executor, native: Any, size: int, owner: object = None) -> None:
        """Wrap a native memory.

        Args:
            executor: Of the device.
            native: The native part.
            size: In bytes.
            owner: What has to live as long as anything uses the memory, besides `native`.
        """
        self._address = lib.mtf_memory_address(native)
        self.size = size
        self.hold: Any = native if owner is None else (native, owner)
        super().__init__(executor, native)

    @property
    def address(self) -> int:
        """The plugin's handle; for most plugins an address, which the host may not read.

        Raises:
            ClosedError: The memory, or its device, was closed.
        """
        if self.closed:
            is_own = self.native is None and not self._executor.has_ended(self)
            what = "the device memory" if is_own else "the device of the memory"
            raise self._executor.closed_error(what)
        return int(self._address)

    @classmethod
    def borrow(
        cls, executor: Executor, address: int, size: int, *, owner: object, payload: int = 0
    ) -> DeviceMemory:
        """Return memory that its owner frees: an arena, or a larger allocation.

        Args:
            executor: Of the device that it lies on.
            address: The plugin's `opaque`.
            size: In bytes.
            owner: Is kept until the memory is closed and no copy uses it any more; dropping it
                may free the memory.
            payload: The plugin's, where it gave one.
        """
        return cls(executor, executor.borrow_native(address, size, payload), size, owner)

    def part(self, offset: int, size: int) -> DeviceMemory:
        """Return a piece of this memory, which keeps the whole.

        Raises:
            InvalidArgumentError: It reaches outside.
            ClosedError: The memory was closed.
        """
        check_natural(offset, size)
        offset, size = index(offset), index(size)  # numpy's may overflow
        if offset + size > self.size:
            raise InvalidArgumentError(
                f"{size} bytes at offset {offset} reach outside of a memory of {self.size} bytes"
            )
        native, hold = held(self)
        return self.borrow(
            self._executor,
            self._address + offset,
            size,
            owner=hold,
            payload=lib.mtf_memory_payload(native),
        )

    def close(self) -> None:
        """Release the memory after the last copy that uses it. Safe to call twice."""
        self.native = None
        self.hold = None

    def __len__(self) -> int:
        return self.size


class HostMemory:
    """Host memory that the plugin allocated, for asynchronous copies. [any thread]

    Views of `view` keep the memory, and with it the device, even when the service is closed.

    Attributes:
        size: In bytes.
    """

    __slots__ = ("__weakref__", "_address", "_executor", "_view", "size")

    def __init__(self, executor: Executor, native: Any, size: int, owner: object = None) -> None:
        """Wrap a native memory, which the view keeps from now on, and what has to live as long."""
        self._address = lib.mtf_memory_address(native)
        self.size = size
        self._executor = executor
        kept = native, owner
        start = ffi.gc(ffi.cast("char *", self._address), lambda _: kept)  # it keeps the memory
        self._view: memoryview | None = memoryview(ffi.buffer(start, size)).cast("B")

    @property
    def address(self) -> int:
        """The address of its first byte.

        Raises:
            ClosedError: The memory was closed.
        """
        if self._view is None:
            raise self._executor.closed_error("the host memory")
        return int(self._address)

    @property
    def view(self) -> memoryview:
        """The bytes, writable; each call returns a new view, which can be released separately.

        Raises:
            ClosedError: The memory was closed.
        """
        view = self._view
        if view is None:
            raise self._executor.closed_error("the host memory")
        return memoryview(view)

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
        return f"<{type(self).__name__} of {self._executor.name}, {self.size} bytes>"


class UnifiedMemory(DeviceMemory):
    """Memory that both the device and the host use at one address. [any thread]

    The plugin says when one side sees what the other has written; `synchronize` is always enough.
    """

    __slots__ = ("_host",)

    def __init__(self, executor: Executor, native: Any, size: int) -> None:
        """Wrap a native memory, which its view keeps from now on."""
        self._host = HostMemory(executor, native, size)
        borrowed = executor.borrow_native(self._host.address, size, 0)
        super().__init__(executor, borrowed, size, self._host.view)

    @property
    def address(self) -> int:
        """The address on both; the host may still use it after the device was closed.

        Raises:
            ClosedError: The memory was closed.
        """
        return self._host.address

    @property
    def view(self) -> memoryview:
        """The bytes, as the host sees them; it keeps the memory.

        Raises:
            ClosedError: The memory was closed.
        """
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


def host_memory_end(executor: Executor) -> Callable[[Any], None]:
    """Return a function that frees a native host memory (or NULL) and releases a closed device."""
    free = lib.mtf_memory_free_of_host

    def end(native: Any) -> None:
        # The collector may have freed the executor's own native part before: it is not to be asked.
        executor.host_memory_ended(left=free(native))

    return end
