"""Structs in host memory that a plugin fills in, and their fields by name."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import Kind
from modular_tf.native.ffi import ffi

if TYPE_CHECKING:
    from modular_tf.abi.layouts import Field, Layout

_FORMATS: dict[tuple[Kind, int], str] = {
    (Kind.POINTER, 8): "=Q",
    (Kind.FUNCTION, 8): "=Q",
    (Kind.UNSIGNED, 8): "=Q",
    (Kind.SIGNED, 8): "=q",
    (Kind.SIGNED, 4): "=i",
    (Kind.SIGNED, 1): "=b",
    (Kind.BOOLEAN, 1): "=B",
    (Kind.REAL, 8): "=d",
}


def unpack_field(raw: bytes | memoryview, field: Field) -> int:
    """Return an integer, truth value or address out of a struct's bytes.

    A field past the end of `raw` reads as 0: its writer did not know it.
    """
    if field.end > len(raw):
        return 0
    value: int = struct.unpack_from(_FORMATS[field.kind, field.size], raw, field.offset)[0]
    return value


class HostStruct:
    """A zeroed struct that the host lends to a plugin, with spare memory past its end.

    The memory lives as long as this object; keep it as long as `address`, which is aligned to 8, is
    used. `layout` is what the host writes and reads back, `capacity` the number of bytes that a
    plugin of any dialect may write.
    """

    __slots__ = ("_memory", "address", "capacity", "layout")

    def __init__(self, layout: Layout, capacity: int, **values: int) -> None:
        self.layout = layout
        self.capacity = max(capacity, layout.size)
        self._memory = ffi.new("uint64_t[]", (self.capacity + 7) // 8)
        self.address = int(ffi.cast("uintptr_t", self._memory))
        for name, value in values.items():
            self.set(name, value)

    @property
    def pointer(self) -> Any:
        """The struct as a C pointer."""
        return ffi.cast("void *", self._memory)

    def get(self, name: str) -> int:
        """Return the present value of a field."""
        return unpack_field(self.raw(), self.layout.field(name))

    def set(self, name: str, value: int) -> None:
        """Write the value of a field."""
        field = self.layout.field(name)
        buffer = ffi.buffer(self._memory)
        struct.pack_into(_FORMATS[field.kind, field.size], buffer, field.offset, value)

    def raw(self) -> bytes:
        """Return a copy of all bytes, including those past the layout's end."""
        return bytes(ffi.buffer(self._memory, self.capacity))
