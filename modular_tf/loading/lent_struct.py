"""A struct of the host that is lent to a plugin, which fills it or replaces it by its own."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from modular_tf.loading.device_table import DeviceTable
from modular_tf.native.host_struct import HostStruct, unpack_field
from modular_tf.native.library import is_executable
from modular_tf.native.readonly_memory import try_read
from modular_tf.rules import Violation
from modular_tf.rules.device import LENT_STRUCTS_FILLED, STRUCTS_READABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.abi.layouts import Layout

_CAPACITY = 512
"""Bytes lent for each struct: far more than any dialect writes (device-abi §A6)."""


class LentStruct:
    """One struct that is lent to the plugin and collected again.

    The host's memory stays with this object, since the plugin may go on using it.

    Attributes:
        memory: What the host lent.
        filled_at: Where the plugin's struct lies: there, or in the plugin itself.
        raw: Its bytes as they were when collected, zeros behind what could be read.
    """

    def __init__(self, layout: Layout, *, unwritten_size: int | None = None) -> None:
        """Lend zeroed memory.

        Args:
            layout: As far as the host writes into it; the plugin's own may be another.
            unwritten_size: A struct_size that no dialect uses, so that the host sees whether the
                plugin set one; None to hand out the layout's own.
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

        Args:
            pointer: What the field that pointed to the host's memory holds now. TensorFlow never
                looks at it again; we follow it, so that a plugin that replaced it is understood.
            field: That field's name, for messages.
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
        """Return the collected bytes as a write-protected table.

        Args:
            layout: The plugin's, where it may differ from the one that the memory was lent with.
        """
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
