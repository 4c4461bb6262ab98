"""The structs of a device plugin: lent to it, collected again, and copied to protected pages."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.concurrency.computed_once import computed_once
from modular_tf.native.host_struct import HostStruct, unpack_field
from modular_tf.native.library import address_owner, is_executable
from modular_tf.native.readonly_memory import ReadOnlyCopy, try_read
from modular_tf.rules import Violation
from modular_tf.rules.device import LENT_STRUCTS_FILLED, STRUCTS_READABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.abi.layout import Layout

_CAPACITY = 512
"""Bytes lent for each struct: far more than any dialect writes (device-abi §A6)."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One function pointer of a table, for `modular-tf inspect`; its address is 0 for none.

    `symbol` is the exported one at or below the address, `library` the mapped object around it.
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

    `announced_size` is the plugin's struct_size, None where it set none; `size` is how many bytes
    of the struct count: fields past them read as 0.
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


class LentStruct:
    """One struct that is lent to the plugin and collected again.

    The host's memory stays with this object, since the plugin may go on using it. Its struct lies
    `filled_at` there, or in the plugin itself; `raw` has the bytes as they were when collected.
    """

    def __init__(self, layout: Layout, *, unwritten_size: int | None = None) -> None:
        """Lend zeroed memory.

        `layout` is as far as the host writes into it; the plugin's own may be another.
        `unwritten_size` is a struct_size that no dialect uses, so that the host sees whether the
        plugin set one; None hands out the layout's own.
        """
        self._unwritten_size = unwritten_size
        self.memory = HostStruct(
            layout, _CAPACITY, struct_size=unwritten_size or layout.struct_size or layout.size
        )
        self.filled_at = self.memory.address
        self.raw = self.memory.raw()

    @property
    def address(self) -> int:
        """The address of the host's memory."""
        return self.memory.address

    @property
    def size_field(self) -> int:
        """The struct_size in the collected bytes."""
        return unpack_field(self.raw, self.memory.layout.field("struct_size"))

    @property
    def code_words(self) -> frozenset[int]:
        """The numbers of the 8-byte words that point to code, counted from 0.

        In a struct of the plugin's own, what lies behind its end is judged as well.
        """
        words = struct.unpack_from(f"={_CAPACITY // 8}Q", self.raw)
        return frozenset(
            index for index, word in enumerate(words) if index > 1 and word and is_executable(word)
        )

    @property
    def is_own(self) -> bool:
        """Whether the plugin replaced the host's memory by a struct of its own."""
        return self.filled_at != self.address

    def collect(self, pointer: int, field: str) -> Iterator[Violation]:
        """Copy the struct that the plugin filled, and yield broken rules.

        `pointer` is what `field`, which pointed to the host's memory, holds now. TensorFlow never
        reads it again; it is followed here, so that a plugin that replaced it is understood.
        """
        self.raw = self.memory.raw()
        if pointer == self.address:
            return
        if not pointer:
            yield Violation(LENT_STRUCTS_FILLED, f"{field} is NULL after the call")
            return
        yield Violation(LENT_STRUCTS_FILLED, f"{field} points to a struct of the plugin's own")
        raw = _read_what_is_there(pointer)
        if raw is None:
            yield Violation(
                STRUCTS_READABLE, f"{field} is {pointer:#x}, which is not readable memory"
            )
        else:
            self.filled_at, self.raw = pointer, raw

    def table(self, layout: Layout | None = None) -> DeviceTable:
        """Return the collected bytes as a write-protected table, in the plugin's own layout."""
        size = self.size_field
        announced = None if size == self._unwritten_size else size
        return DeviceTable(layout or self.memory.layout, self.raw, announced)


def _read_what_is_there(address: int) -> bytes | None:
    """Return the longest readable run of words, at most `_CAPACITY` bytes, padded to that."""
    for size in range(_CAPACITY, 0, -8):
        raw = try_read(address, size)
        if raw is not None:
            return raw.ljust(_CAPACITY, b"\0")
    return None
