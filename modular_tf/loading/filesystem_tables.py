"""The tables of a filesystem plugin: copied, checked, and write-protected.

`TF_InitPlugin` leaves an array of `TF_FilesystemPluginOps`, one per scheme, each with up to four
tables in the plugin's memory. Here every byte is copied before it is believed, and what passes
the rules (`FS-nnn`) is laid out anew in the host's own order on read-only pages.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    PLUGIN_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
    filesystem_ops_layout,
)
from modular_tf.abi.registered_names import SCHEME
from modular_tf.errors import PluginError
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.library import address_owner, is_executable
from modular_tf.native.plugin_names import named
from modular_tf.native.readonly_memory import ReadOnlyCopy, try_read
from modular_tf.native.status import drop, take_error
from modular_tf.native.strings import read_string
from modular_tf.rules import Violation
from modular_tf.rules import filesystem as rules
from modular_tf.rules.loading import INIT_RETURNS, INIT_SYMBOL_IS_CODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from modular_tf.abi.layouts import Layout
    from modular_tf.native.library import Library

MAX_SCHEMES = 1024
_HOST_ABI = 0
_HOST_API = 0


@dataclass(frozen=True, slots=True)
class _TableKind:
    """One of the four tables: the field that refers to it, and its required slots."""

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
    """A copy of one table, in the plugin's own layout."""

    kind: str  # the C struct's name
    size: int  # bytes that the plugin said it has
    layout: Layout
    slots: Mapping[str, int]  # addresses of those that the size covers, read-only; 0 for NULL

    def has(self, slot: str) -> bool:
        """Whether the plugin implements this operation."""
        return bool(self.slots.get(slot))


class WorkerUse(Protocol):
    """The worker process of a plugin, as a filesystem uses it."""

    handle: Any
    environment: Mapping[str, str]

    def why_refused(self) -> str:
        """Return what may have refused its plugin something, for a message; "" for nothing."""

    def keep_options(self, filesystem: int, options: Sequence[Any], *, is_single: bool) -> None:
        """Have options that were set also set in each process that is started anew."""

    def join(self) -> None:
        """Count one more filesystem that uses it."""

    def leave(self) -> None:
        """Count one less; the last one ends the process."""


class WorkerPlace(NamedTuple):
    """Which filesystem of which worker it is."""

    worker: WorkerUse
    number: int
    store: int  # the number of the first one there that has the same files


@dataclass(frozen=True, slots=True)
class FilesystemTables:
    """The accepted tables of one scheme."""

    scheme: str  # the URI scheme; empty for plain paths
    # by C struct name, read-only; without those that the plugin left out
    tables: Mapping[str, Table]
    # The host's copy, on pages that fault when written: the structs of `TF_FilesystemOps` (264
    # bytes, whatever layout the plugin used), the three file tables, then the plugin's allocator:
    # allocate and free. They are never unmapped.
    protected: ReadOnlyCopy
    warnings: tuple[Violation, ...]  # rules that were broken without refusing
    place: WorkerPlace | None = None  # where the plugin runs, if not in this process

    def offers(self, operation: str) -> bool:
        """Whether the plugin itself has this operation of `TF_FilesystemOps`."""
        return self.tables[FILESYSTEM_OPS.name].has(operation)


@dataclass(frozen=True, slots=True)
class RefusedTables:
    """One scheme whose tables break a rule."""

    scheme: str | None  # None where even that could not be read
    violations: tuple[Violation, ...]  # errors and warnings


def read_entry(
    address: int, index: int, allocator: tuple[int, int]
) -> FilesystemTables | RefusedTables:
    """Return the checked copy of an entry of the `ops` array; reads mapped memory only.

    The allocator is the addresses of `plugin_memory_allocate` and `plugin_memory_free`.
    """
    raw = try_read(address + index * PLUGIN_OPS.size, PLUGIN_OPS.size)
    if raw is None:
        place = f"TF_FilesystemPluginInfo.ops[{index}] at {address:#x}"
        message = f"{place}: expected {PLUGIN_OPS.size} bytes of memory, found none that is mapped"
        return RefusedTables(None, (Violation(rules.OPS_READABLE, message),))
    pointer = _value(raw, "scheme")
    scheme = read_string(ffi.cast("char *", pointer)) if pointer else None
    violations = []
    if scheme is None:
        found = "a pointer to none" if pointer else "NULL"
        message = f"TF_FilesystemPluginOps.scheme: expected a string, found {found}"
        violations.append(Violation(rules.SCHEME_READABLE, message))
    elif not SCHEME.fullmatch(scheme):
        violations.append(rules.scheme_misspelt("TF_FilesystemPluginOps.scheme", scheme))
    tables: dict[str, Table] = {}
    for kind in _KINDS:
        table = _copy_table(raw, kind, violations)
        if table is not None:
            tables[kind.layout.name] = table
    for kind in _KINDS:
        if (table := tables.get(kind.layout.name)) is None:
            continue
        is_first = kind.layout is FILESYSTEM_OPS
        broken = rules.INIT_AND_CLEANUP_SET if is_first else rules.FILE_SLOTS_SET
        missing = [slot for slot in kind.required if not table.has(slot)]
        violations.extend(Violation(broken, _null_slot(table, slot)) for slot in missing)
        violations.extend(
            rules.not_code(f"{table.kind}.{slot}", function)
            for slot, function in table.slots.items()
            if function and not is_executable(function)
        )
    operations = tables.get(FILESYSTEM_OPS.name)
    for kind in _KINDS:
        if operations is None:
            break
        table = tables.get(kind.layout.name)
        for opener in kind.openers:
            if operations.has(opener) and not _value(raw, kind.field):
                expected = f"expected a table, since TF_FilesystemOps.{opener} is set"
                message = f"{kind.field}: {expected}, found NULL"
                violations.append(Violation(rules.OPENER_HAS_TABLE, message))
        for slot, opener in kind.advised:
            if table is not None and operations.has(opener) and not table.has(slot):
                violations.append(Violation(rules.FILES_USABLE, _null_slot(table, slot)))
    if any(violation.is_error for violation in violations):
        return RefusedTables(scheme, tuple(violations))
    protected = ReadOnlyCopy.for_ever(_canonical_block(tables, allocator))
    return FilesystemTables(scheme or "", MappingProxyType(tables), protected, tuple(violations))


def _copy_table(raw: bytes, kind: _TableKind, violations: list[Violation]) -> Table | None:
    """Return a copy of a table that an entry refers to; append broken rules to the list."""
    address, size = _value(raw, kind.field), _value(raw, f"{kind.field}_size")
    if not address:
        if kind.layout is FILESYSTEM_OPS:
            message = "TF_FilesystemPluginOps.filesystem_ops: expected a table, found NULL"
            violations.append(Violation(rules.TABLE_SET, message))
        return None
    for number, expected, broken in (
        ("abi", _HOST_ABI, rules.ABI_NUMBER),
        ("api", _HOST_API, rules.API_NUMBER),
    ):
        name = f"{kind.field}_{number}"
        if (given := _value(raw, name, "=i")) != expected:
            violations.append(Violation(broken, f"{name}: expected {expected}, found {given}"))
    if size % 8 or size < kind.minimum:
        message = f"{kind.field}_size: expected a multiple of 8, at least {kind.minimum}"
        violations.append(Violation(rules.TABLE_SIZE, f"{message}, found {size}"))
        return None
    layout = filesystem_ops_layout(size) if kind.layout is FILESYSTEM_OPS else kind.layout
    if size > layout.size:
        message = f"{kind.field}_size: expected at most {layout.size}, found {size}"
        violations.append(Violation(rules.TABLE_KNOWN_WHOLE, f"{message}; the rest is ignored"))
    table = try_read(address, min(size, layout.size))
    if table is None:
        message = f"{kind.field} at {address:#x}: expected {size} bytes of memory"
        message = f"{message}, found less that is mapped"
        violations.append(Violation(rules.TABLE_READABLE, message))
        return None
    covered = [slot for slot in layout.slots if slot.end <= size]
    slots = {slot.name: struct.unpack_from("=Q", table, slot.offset)[0] for slot in covered}
    return Table(layout.name, size, layout, MappingProxyType(slots))


def tables_in_worker(
    scheme: str, tables: Mapping[str, Table], place: WorkerPlace
) -> FilesystemTables:
    """Return tables of functions that call a worker, for the slots that a plugin has there."""
    slots = _canonical_block(dict(tables), (0, 0))
    block = ffi.new("char[]", lib.mtf_worker_tables_size())
    lib.mtf_worker_tables(ffi.from_buffer("char[]", slots), block)
    protected = ReadOnlyCopy.for_ever(bytes(ffi.buffer(block)))
    return FilesystemTables(scheme, MappingProxyType(dict(tables)), protected, (), place)


def handed_over(address: int, count: int) -> Iterator[tuple[str, int]]:
    """Yield name and address of each block that the host must free: schemes, tables, the array."""
    for index in range(count):
        raw = try_read(address + index * PLUGIN_OPS.size, PLUGIN_OPS.size)
        if raw is not None:
            for name in ("scheme", *(kind.field for kind in _KINDS)):
                yield f"ops[{index}].{name}", _value(raw, name)
    yield "ops", address


def _null_slot(table: Table, slot: str) -> str:
    return f"{table.kind}.{slot}: expected a function, found NULL"


def _canonical_block(tables: dict[str, Table], allocator: tuple[int, int]) -> bytes:
    """Return a block with the slots in the host's order, and the plugin's allocator."""
    block = bytearray()
    for kind in _KINDS:
        table = tables.get(kind.layout.name)
        slots = table.slots if table is not None else {}
        block += b"".join(struct.pack("=Q", slots.get(slot.name, 0)) for slot in kind.layout.slots)
    return bytes(block) + struct.pack("=2Q", *allocator)


def _value(entry: bytes, field: str, form: str = "=Q") -> int:
    """Return the value of a field in the bytes of a TF_FilesystemPluginOps."""
    value: int = struct.unpack_from(form, entry, PLUGIN_OPS.field(field).offset)[0]
    return value


FILESYSTEM_INIT = "TF_InitPlugin"


@dataclass(frozen=True, slots=True)
class FilesystemOffer:
    """What `TF_InitPlugin` registered, copied and checked; the plugin's memory is freed."""

    entries: tuple[FilesystemTables | RefusedTables, ...]  # one per scheme, in the plugin's order
    violations: tuple[Violation, ...]  # of the plugin as a whole; an error leaves no entry


def init_filesystems(library: Library, *, plugin: str) -> FilesystemOffer:
    """Return what `TF_InitPlugin` of a mapped library registers. [any thread]"""
    info = ffi.new("mtf_plugin_info *")
    call_init_plugin(library, info, plugin=plugin)
    return take_offer(info)


def call_init_plugin(library: Library, info: Any, *, plugin: str) -> None:
    """Call `TF_InitPlugin` of a mapped library on an `mtf_plugin_info`, which it zeroes first.

    Raises `PluginError` if the entry is missing or no code (LD-051), or threw (LD-052).
    """
    entry = library.symbol(FILESYSTEM_INIT)
    if entry is None or not is_executable(entry):
        message = f"{library.path}: {FILESYSTEM_INIT} is not a function"
        raise Violation(INIT_SYMBOL_IS_CODE, message).error(PluginError, plugin=plugin)
    error = lib.mtf_init_filesystem_plugin(ffi.cast("void *", entry), named(plugin), info)
    if error:
        cause = take_error(error, plugin=plugin, operation=FILESYSTEM_INIT)
        raise PluginError(
            f"{cause.message} (rule {INIT_RETURNS})",
            plugin=plugin,
            path=library.path,
            rule=INIT_RETURNS,
        ) from cause


def take_offer(info: Any) -> FilesystemOffer:
    """Return the checked copy of a filled `mtf_plugin_info`, and free its blocks."""
    violations = tuple(_check_info(info))
    if any(violation.is_error for violation in violations):
        return FilesystemOffer((), violations)
    address, allocate, free = (
        int(ffi.cast("uintptr_t", value)) for value in (info.ops, info.allocate, info.free)
    )
    entries: list[FilesystemTables | RefusedTables] = []
    seen: set[str] = set()
    for index in range(info.num_schemes):
        entry = read_entry(address, index, (allocate, free))
        if isinstance(entry, FilesystemTables) and entry.scheme in seen:
            message = f"scheme {entry.scheme!r} stands twice in TF_FilesystemPluginInfo.ops"
            entry = RefusedTables(entry.scheme, (Violation(rules.SCHEME_NAMED_ONCE, message),))
        elif isinstance(entry, FilesystemTables):
            seen.add(entry.scheme)
        entries.append(entry)
    return FilesystemOffer(tuple(entries), (*violations, *_free_all(info)))


def _check_info(info: Any) -> list[Violation]:
    found = []
    for broken, field, function in (
        (rules.ALLOCATE_SET, "plugin_memory_allocate", info.allocate),
        (rules.FREE_SET, "plugin_memory_free", info.free),
    ):
        if not function:
            message = f"TF_FilesystemPluginInfo.{field}: expected a function, found NULL"
            found.append(Violation(broken, message))
        elif not is_executable(address := int(ffi.cast("uintptr_t", function))):
            found.append(rules.not_code(f"TF_FilesystemPluginInfo.{field}", address))
    if info.num_schemes > MAX_SCHEMES:
        message = f"num_schemes: expected at most {MAX_SCHEMES}, found {info.num_schemes}"
        found.append(Violation(rules.SCHEMES_BOUNDED, message))
    elif info.num_schemes and not info.ops:
        message = f"TF_FilesystemPluginInfo.ops: expected {info.num_schemes} entries, found NULL"
        found.append(Violation(rules.OPS_READABLE, message))
    elif not info.num_schemes:
        found.append(Violation(rules.SCHEMES_OFFERED, "num_schemes: expected at least 1, found 0"))
    return found


def _free_all(info: Any) -> list[Violation]:
    """Free the plugin's blocks, each once; return those that it cannot have allocated.

    A `free` that is given anything else usually ends the process.
    """
    found = []
    freed = set()
    for name, pointer in list(handed_over(int(ffi.cast("uintptr_t", info.ops)), info.num_schemes)):
        why = "the block of another" if pointer in freed else None
        if try_read(pointer, 1) is None:
            why = f"{pointer:#x}, where no memory is mapped"
        elif (owner := address_owner(pointer)) is not None:
            why = f"memory of {owner.path} itself"
        if pointer and why is not None:
            message = f"{name}: expected a block of its own, found {why}"
            found.append(Violation(rules.BLOCKS_ALLOCATED, message))
        else:
            freed.add(pointer)
            # An exception that the plugin's free throws is dropped.
            drop(lib.mtf_plugin_free(info.free, ffi.cast("void *", pointer)))
    return found
