"""Copies of C tables on write-protected pages."""

from __future__ import annotations

import weakref
from typing import Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import check

_lock = ForkLock()


class ReadOnlyCopy:
    """A copy of `data` in host memory that faults when anybody writes to it.

    The pages live as long as this object; whatever uses `address` must keep it.
    """

    __slots__ = ("__weakref__", "_release", "address", "size")

    def __init__(self, data: bytes) -> None:
        copy = ffi.new("void **")
        check(lib.mtf_readonly_copy(ffi.from_buffer("char[]", data), len(data), copy))
        self.address = int(ffi.cast("uintptr_t", copy[0]))
        self.size = len(data)
        self._release = weakref.finalize(self, lib.mtf_readonly_free, copy[0], len(data))
        self._release.atexit = False

    @classmethod
    def for_ever(cls, data: bytes) -> ReadOnlyCopy:
        """Return a copy that is never freed, one for all equal `data`. [any thread]

        For tables of libraries, which stay mapped too: open files may outlive everything else
        that knows of the table.
        """
        with _lock:
            copy = _immortal.get(data)
            if copy is None:
                copy = _immortal[data] = cls(data)
                copy._release.detach()
            return copy

    @property
    def pointer(self) -> Any:
        """The copy as a C pointer."""
        return ffi.cast("void *", self.address)

    def view(self) -> memoryview:
        """Return the bytes as an immutable view; it must not outlive this object."""
        return memoryview(ffi.buffer(ffi.cast("char *", self.address), self.size)).toreadonly()


_immortal: dict[bytes, ReadOnlyCopy] = {}


def try_read(address: int, size: int) -> bytes | None:
    """Copy `size` bytes of memory that may not be mapped; None where it is not. [any thread]"""
    destination = bytearray(size)
    if size and not lib.mtf_try_read(
        ffi.cast("void *", address), ffi.from_buffer("char[]", destination), size
    ):
        return None
    return bytes(destination)
