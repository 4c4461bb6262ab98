"""What `TF_InitPlugin` leaves, as it lies in the plugin's memory: neither freed nor judged."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.layouts import PLUGIN_INFO, PLUGIN_OPS
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.loading.filesystem_tables import MAX_SCHEMES, call_init_plugin, take_offer
from modular_tf.native.ffi import ffi
from modular_tf.native.library import address_owner, is_executable
from modular_tf.native.readonly_memory import try_read
from modular_tf.native.strings import encode, read_string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.loading.filesystem_tables import FilesystemOffer
    from modular_tf.native.library import Library

TABLES = (
    "filesystem_ops",
    "random_access_file_ops",
    "writable_file_ops",
    "read_only_memory_region_ops",
)
"""The fields of an entry that lead to tables."""

_MAX_TABLE = 4096  # what says that it is larger is not looked at
_POISON = 0xCD
_FUNCTIONS = {"allocate": "void *(*)(size_t)", "free": "void(*)(void *)"}


class Block(NamedTuple):
    """Memory that the plugin hands over.

    Attributes:
        name: The field that leads to it, such as `ops[0].scheme`.
        address: Where it begins.
        size: Bytes that are known to belong to it.
    """

    name: str
    address: int
    size: int


class Reference(NamedTuple):
    """How an entry announces one table."""

    abi: int
    api: int
    size: int
    address: int


class Entry:
    """The bytes of one `TF_FilesystemPluginOps`, and of what it leads to; all of it copied.

    Attributes:
        index: Its place in the array.
        scheme: Its scheme, None where no string can be read.
        scheme_address: Where that lies, 0 for NULL.
        facts: What must be the same each time: scheme, versions, sizes, and the slots.
    """

    def __init__(self, index: int, raw: bytes) -> None:
        self.index = index
        self._raw = raw
        (address,) = struct.unpack_from("=Q", raw, PLUGIN_OPS.field("scheme").offset)
        self.scheme_address: int = address
        self.scheme = read_string(ffi.cast("char *", address)) if address else None
        tables = [self.table(field) for field in TABLES]
        self.facts = (self.scheme, *((table[:3], _content(table)) for table in tables))

    def table(self, field: str) -> Reference:
        """Return what it says of one of `TABLES`."""
        offset = PLUGIN_OPS.field(f"{field}_abi").offset
        return Reference(*struct.unpack_from("=iiQQ", self._raw, offset))

    def blocks(self) -> Iterator[Block]:
        """Yield the scheme, and the tables that are there."""
        if self.scheme is not None:
            size = len(encode(self.scheme)) + 1
            yield Block(f"ops[{self.index}].scheme", self.scheme_address, size)
        for field in TABLES:
            table = self.table(field)
            if table.address:
                size = table.size if table.size <= _MAX_TABLE else 1
                yield Block(f"ops[{self.index}].{field}", table.address, size)


class RegistrationMemory:
    """One call of `TF_InitPlugin`; its memory stays as it is until somebody here changes it.

    Attributes:
        breach: What it wrote beside the 32 bytes that it was lent, None for nothing.
        num_schemes: As it left it.
        ops: The address of the array of entries.
        entries: Copies of the entries, as far as there is memory.

    Args:
        library: The mapped plugin.

    Raises:
        PluginError: The entry is missing or no code (LD-051), or threw (LD-052).
    """

    def __init__(self, library: Library) -> None:
        self._lent = GuardedMemory(PLUGIN_INFO.size)
        self._info = ffi.cast("mtf_plugin_info *", self._lent.pointer)
        call_init_plugin(library, self._info, plugin=library.name)
        self.breach = self._lent.breach()
        self.num_schemes, self.ops, self._allocate, self._free = map(self._lent.word, range(4))
        self.entries = tuple(self._copied())

    def _copied(self) -> Iterator[Entry]:
        if not self.ops or self.num_schemes > MAX_SCHEMES:
            return
        for index in range(self.num_schemes):
            raw = try_read(self.ops + index * PLUGIN_OPS.size, PLUGIN_OPS.size)
            if raw is not None:
                yield Entry(index, raw)

    def blocks(self) -> list[Block]:
        """Return what the host has to free, as far as there is memory, the array last."""
        found = [block for entry in self.entries for block in entry.blocks()]
        if self.entries:
            found.append(Block("ops", self.ops, self.num_schemes * PLUGIN_OPS.size))
        return [block for block in found if try_read(block.address, block.size) is not None]

    def allocated_blocks(self) -> list[Block]:
        """Return those of them that can come from an allocator: no part of a mapped file."""
        return [block for block in self.blocks() if address_owner(block.address) is None]

    def allocate(self, size: int) -> int:
        """Call `plugin_memory_allocate`; 0 for NULL."""
        return int(ffi.cast("uintptr_t", self._function("allocate", self._allocate)(size)))

    def free(self, address: int) -> None:
        """Call `plugin_memory_free`, which may be given NULL."""
        self._function("free", self._free)(ffi.cast("void *", address))

    def take(self) -> FilesystemOffer:
        """Let the host read and judge it all, and free it; only the entries can be used then."""
        return take_offer(self._info)

    @property
    def has_functions(self) -> bool:
        """Whether both memory functions are there."""
        return is_executable(self._allocate) and is_executable(self._free)

    def _function(self, name: str, address: int) -> Any:
        return ffi.cast(_FUNCTIONS[name], address)


def content_of(blocks: list[Block]) -> dict[str, bytes | None]:
    """Copy what blocks hold now."""
    return {block.name: try_read(block.address, block.size) for block in blocks}


def overwrite(blocks: list[Block]) -> None:
    """Overwrite blocks, which must be writable."""
    for block in blocks:
        fill(block.address, block.size, _POISON)


def fill(address: int, size: int, byte: int) -> None:
    """Set each byte of writable memory."""
    ffi.buffer(ffi.cast("char *", address), size)[:] = bytes([byte]) * size


def _content(table: Reference) -> bytes | None:
    if not table.address or table.size > _MAX_TABLE:
        return None
    return try_read(table.address, table.size)
