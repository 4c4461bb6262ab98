"""One accepted struct of a device plugin: a write-protected copy with access to its fields."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.concurrency.computed_once import computed_once
from modular_tf.native.host_struct import unpack_field
from modular_tf.native.library import address_owner
from modular_tf.native.readonly_memory import ReadOnlyCopy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.abi.layout import Layout


@dataclass(frozen=True, slots=True)
class Slot:
    """One function pointer of a table, for `modular-tf inspect`.

    Attributes:
        name: The field of the C struct.
        offset: Where it lies, in bytes.
        address: What it points to; 0 when the plugin left it out.
        symbol: The exported symbol at or below the address, if there is one.
        library: The mapped object that the address lies in, if there is one.
    """

    name: str
    offset: int
    address: int
    symbol: str | None
    library: str | None

    @property
    def present(self) -> bool:
        """Whether the plugin offers the function."""
        return bool(self.address)


class DeviceTable:
    """The host's read-only copy of a struct that a plugin filled. [any thread]

    Attributes:
        layout: Where its fields lie.
        announced_size: The plugin's struct_size; None where the plugin did not set one.
        size: How many bytes of it count: fields behind them read as 0.
    """

    def __init__(self, layout: Layout, raw: bytes, announced_size: int | None) -> None:
        own_size = announced_size or layout.size  # 0 breaks a rule of its own
        # The RFC's macro for SP_PlatformFns ends before four slots that its readers do set.
        whole = own_size >= (layout.struct_size or layout.size)
        self.layout = layout
        self.announced_size = announced_size
        self.size = layout.size if whole else own_size
        self._copy = ReadOnlyCopy(_cut(layout, raw, self.size))

    @property
    def address(self) -> int:
        """The address of the copy, valid as long as this object lives."""
        return self._copy.address

    @computed_once
    def _raw(self) -> bytes:
        return bytes(self._copy.view())

    def value(self, name: str) -> int:
        """Return the value of a field: a number, or an unchecked address."""
        return unpack_field(self._raw, self.layout.field(name))

    def has(self, name: str) -> bool:
        """Whether a field is there and set at all."""
        return self.layout.has(name, self.size) and self.value(name) != 0

    def in_layout(self, target: Layout) -> DeviceTable:
        """Return a table with the same fields in the layout of another dialect.

        Fields that this table's dialect lacks, or its size leaves out, are 0.
        """
        if target == self.layout:
            return self
        block = bytearray(target.size)
        for field in target.fields:
            if self.layout.has(field.name, self.size):
                own = self.layout.field(field.name)
                block[field.offset : field.end] = self._raw[own.offset : own.end]
        return DeviceTable(target, bytes(block), None)

    def slots(self) -> Iterator[Slot]:
        """Yield every function pointer of the layout, set or not, in order."""
        for field in self.layout.slots:
            address = self.value(field.name)
            owner = address_owner(address) if address else None
            yield Slot(
                field.name,
                field.offset,
                address,
                owner.symbol if owner else None,
                owner.path if owner else None,
            )


def _cut(layout: Layout, raw: bytes, size: int) -> bytes:
    """Return the bytes of a struct: the fields that `size` covers, zeros, a correct struct_size.

    Fields are taken over one by one, so that padding never carries what was on a stack.
    """
    block = bytearray(layout.size)
    for field in layout.fields:
        if field.end <= size:
            block[field.offset : field.end] = raw[field.offset : field.end]
    header = layout.field("struct_size")
    announced = min(size, layout.struct_size or layout.size)
    block[header.offset : header.end] = announced.to_bytes(header.size, sys.byteorder)
    return bytes(block)
