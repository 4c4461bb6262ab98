"""The tables of a filesystem plugin: read out, checked on copies, write-protected.

`TF_InitPlugin` leaves an array of `TF_FilesystemPluginOps`, one per scheme, each with up to four
tables in the plugin's memory. Here every byte is copied before it is believed, and what passes
the rules (`FS-nnn`) is laid out anew in the host's own order on read-only pages.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    PLUGIN_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
    filesystem_ops_layout,
)
from modular_tf.native.ffi import ffi
from modular_tf.native.library import is_executable
from modular_tf.native.readonly_memory import ReadOnlyCopy, try_read
from modular_tf.native.strings import read_string
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.abi.layouts import Layout

MAX_SCHEMES = 1024
_HOST_ABI = 0
_HOST_API = 0
_SCHEME = re.compile(r"(?:[A-Za-z][A-Za-z0-9.]+)?")


@dataclass(frozen=True, slots=True)
class _TableKind:
    """One of the four tables: where its reference lies, and what it must have."""

    field: str
    layout: Layout
    required: tuple[str, ...]
    openers: tuple[str, ...] = ()
    advised: tuple[tuple[str, str], ...] = ()  # (slot, the opener that makes it matter)

    @property
    def minimum(self) -> int:
        """The smallest size that covers the required slots."""
        return max(self.layout.field(name).end for name in self.required)


_KINDS = (
    _TableKind("filesystem_ops", FILESYSTEM_OPS, ("init", "cleanup")),
    _TableKind(
        "random_access_file_ops",
        RANDOM_ACCESS_FILE_OPS,
        ("cleanup",),
        ("new_random_access_file",),
        (("read", "new_random_access_file"),),
    ),
    _TableKind(
        "writable_file_ops",
        WRITABLE_FILE_OPS,
        ("cleanup",),
        ("new_writable_file", "new_appendable_file"),
        (("append", "new_writable_file"), ("close", "new_writable_file")),
    ),
    _TableKind(
        "read_only_memory_region_ops",
        READ_ONLY_MEMORY_REGION_OPS,
        ("cleanup", "data", "length"),
        ("new_read_only_memory_region_from_file",),
    ),
)


@dataclass(frozen=True, slots=True)
class Table:
    """A copy of one table, in the plugin's own layout.

    Attributes:
        kind: The C struct's name.
        size: Bytes that the plugin said it has.
        layout: Which generation of the struct it follows.
        slots: Address of each slot that the plugin's size covers; 0 where it left NULL.
    """

    kind: str
    size: int
    layout: Layout
    slots: dict[str, int]

    def has(self, slot: str) -> bool:
        """Whether the plugin offers this operation."""
        return bool(self.slots.get(slot))


@dataclass(frozen=True, slots=True)
class FilesystemTables:
    """The accepted tables of one scheme.

    Attributes:
        scheme: The URI scheme; empty for plain paths.
        tables: By C struct name; a table that the plugin left out is absent.
        protected: The host's copy, on pages that fault when written: the structs of
            `TF_FilesystemOps` (264 bytes, whatever layout the plugin used), the three file tables,
            then the address of the plugin's free.
        warnings: Rules that were broken without refusing.
    """

    scheme: str
    tables: dict[str, Table]
    protected: ReadOnlyCopy
    warnings: tuple[Violation, ...]

    def offers(self, operation: str) -> bool:
        """Whether the plugin itself has this operation of `TF_FilesystemOps`."""
        return self.tables[FILESYSTEM_OPS.name].has(operation)


@dataclass(frozen=True, slots=True)
class RefusedTables:
    """One scheme whose tables break a rule.

    Attributes:
        scheme: Its text, None where even that could not be read.
        violations: Every broken rule, errors and warnings.
    """

    scheme: str | None
    violations: tuple[Violation, ...]


def read_entry(address: int, index: int, free_address: int) -> FilesystemTables | RefusedTables:
    """Copy and check the entry for one scheme; never touches memory that is not mapped.

    Args:
        address: The `ops` array.
        index: Which entry.
        free_address: The plugin's `plugin_memory_free`.
    """
    raw = try_read(address + index * PLUGIN_OPS.size, PLUGIN_OPS.size)
    if raw is None:
        found = Violation("FS-003", f"TF_FilesystemPluginInfo.ops[{index}] is not readable memory")
        return RefusedTables(None, (found,))
    entry = _Entry(raw)
    violations = list(entry.check_scheme())
    tables: dict[str, Table] = {}
    for kind in _KINDS:
        violations.extend(entry.check_reference(kind))
        table = entry.copy_table(kind, violations)
        if table is not None:
            tables[kind.layout.name] = table
    violations.extend(_check_slots(tables))
    violations.extend(entry.check_openers(tables))
    if any(violation.is_error for violation in violations):
        return RefusedTables(entry.scheme, tuple(violations))
    protected = ReadOnlyCopy(_canonical_block(tables, free_address))
    return FilesystemTables(entry.scheme or "", tables, protected, tuple(violations))


def entry_pointers(address: int, index: int) -> list[int]:
    """Return the five pointers of an entry that the host must free: the scheme, then the tables."""
    raw = try_read(address + index * PLUGIN_OPS.size, PLUGIN_OPS.size)
    if raw is None:
        return []
    names = ["scheme", *(kind.field for kind in _KINDS)]
    return [_unsigned(raw, PLUGIN_OPS.field(name).offset) for name in names]


class _Entry:
    """The copied bytes of one TF_FilesystemPluginOps."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        pointer = self._value("scheme")
        self.scheme = read_string(ffi.cast("char *", pointer)) if pointer else None
        self._scheme_is_null = not pointer

    def _value(self, field: str) -> int:
        return _unsigned(self._raw, PLUGIN_OPS.field(field).offset)

    def _int(self, field: str) -> int:
        value: int = struct.unpack_from("=i", self._raw, PLUGIN_OPS.field(field).offset)[0]
        return value

    def check_scheme(self) -> Iterator[Violation]:
        if self.scheme is None:
            found = "NULL" if self._scheme_is_null else "not a readable string"
            yield Violation("FS-006", f"TF_FilesystemPluginOps.scheme is {found}")
        elif not _SCHEME.fullmatch(self.scheme):
            yield Violation(
                "FS-007", f"TF_FilesystemPluginOps.scheme is {self.scheme!r}: no URI can name it"
            )

    def check_reference(self, kind: _TableKind) -> Iterator[Violation]:
        if not self._value(kind.field):
            if kind.layout is FILESYSTEM_OPS:
                yield Violation("FS-008", "TF_FilesystemPluginOps.filesystem_ops is NULL")
            return
        abi, api = self._int(f"{kind.field}_abi"), self._int(f"{kind.field}_api")
        if abi != _HOST_ABI:
            yield Violation("FS-009", f"{kind.field}_abi: found {abi}, host has {_HOST_ABI}")
        if api != _HOST_API:
            yield Violation("FS-010", f"{kind.field}_api: found {api}, host has {_HOST_API}")

    def copy_table(self, kind: _TableKind, violations: list[Violation]) -> Table | None:
        """Copy the table if its size can be right; append what is wrong."""
        address, size = self._value(kind.field), self._value(f"{kind.field}_size")
        if not address:
            return None
        if size % 8 or size < kind.minimum:
            message = f"{kind.field}_size: found {size}, expected a multiple of 8, at least"
            violations.append(Violation("FS-011", f"{message} {kind.minimum}"))
            return None
        layout = filesystem_ops_layout(size) if kind.layout is FILESYSTEM_OPS else kind.layout
        if size > layout.size:
            message = f"{kind.field}_size: found {size}, host knows {layout.size}; the rest is ignored"
            violations.append(Violation("FS-021", message))
        raw = try_read(address, min(size, layout.size))
        if raw is None:
            message = f"{kind.field}: {size} bytes at {address:#x} are not readable memory"
            violations.append(Violation("FS-012", message))
            return None
        slots = {slot.name: _unsigned(raw, slot.offset) for slot in layout.slots if slot.end <= size}
        return Table(layout.name, size, layout, slots)

    def check_openers(self, tables: dict[str, Table]) -> Iterator[Violation]:
        """Every opener has the table of what it opens, and that table is of use."""
        filesystem = tables.get(FILESYSTEM_OPS.name)
        if filesystem is None:
            return
        for kind in _KINDS:
            table = tables.get(kind.layout.name)
            for opener in kind.openers:
                if filesystem.has(opener) and not self._value(kind.field):
                    message = f"TF_FilesystemOps.{opener} is set, but {kind.field} is NULL"
                    yield Violation("FS-015", message)
            for slot, opener in kind.advised:
                if table is not None and filesystem.has(opener) and not table.has(slot):
                    yield Violation("FS-020", f"{table.kind}.{slot} is NULL")


def _check_slots(tables: dict[str, Table]) -> Iterator[Violation]:
    """Required slots are set, and every slot that is set points to code."""
    for kind in _KINDS:
        table = tables.get(kind.layout.name)
        if table is None:
            continue
        for slot in kind.required:
            if not table.has(slot):
                rule_id = "FS-013" if kind.layout is FILESYSTEM_OPS else "FS-014"
                yield Violation(rule_id, f"{table.kind}.{slot} is NULL")
        for slot, address in table.slots.items():
            if address and not is_executable(address):
                yield Violation("FS-016", f"{table.kind}.{slot} is {address:#x}, which is not code")


def _canonical_block(tables: dict[str, Table], free_address: int) -> bytes:
    """Lay the slots out in the host's own order, whatever the plugin's was."""
    block = bytearray()
    for kind in _KINDS:
        table = tables.get(kind.layout.name)
        slots = table.slots if table is not None else {}
        block += b"".join(
            struct.pack("=Q", slots.get(slot.name, 0)) for slot in kind.layout.slots
        )
    return bytes(block) + struct.pack("=Q", free_address)


def _unsigned(raw: bytes, offset: int) -> int:
    value: int = struct.unpack_from("=Q", raw, offset)[0]
    return value
