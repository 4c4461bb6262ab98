"""The library of a filesystem plugin, and what its entry point leaves, ready for checks."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.abi.layouts import PLUGIN_INFO, PLUGIN_OPS
from modular_tf.check.expectation import Blocked
from modular_tf.check.load_trial import first_contact_of, try_loading
from modular_tf.check.native.guarded_memory import GuardedMemory
from modular_tf.check.session import LibrarySession, blocked_by, mapped_library
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.discovery.candidate import Candidate, LoadFacts, Source
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import probe
from modular_tf.errors import PluginError
from modular_tf.first_contact.finding import Limits
from modular_tf.loading.filesystem_tables import (
    MAX_SCHEMES,
    FilesystemTables,
    call_init_plugin,
    take_offer,
)
from modular_tf.native.ffi import ffi
from modular_tf.native.library import address_owner, is_executable
from modular_tf.native.readonly_memory import try_read
from modular_tf.native.strings import encode, read_string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.workspace import FilesystemWorkspace
    from modular_tf.check.load_trial import LoadTrial
    from modular_tf.discovery.probe import Probe
    from modular_tf.first_contact.finding import Finding
    from modular_tf.loading.filesystem_tables import FilesystemOffer
    from modular_tf.native.library import Library
    from modular_tf.rules import Violation

_TRIAL_S = 10.0

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


class FilesystemLibrary(LibrarySession):
    """A library that is mapped, and whose `TF_InitPlugin` is called, when a check needs it.

    What a check cannot survive is tried in a child before: a check that is about something else
    is `Blocked` by it. An option of the target, `load_seconds`, is how long loading may take.
    """

    @computed_once
    def probe(self) -> Probe:
        """What the bytes of the file say; nothing of it runs."""
        path = self.target.path
        try:
            found = os.lstat(path)
            identity = (found.st_dev, found.st_ino)
        except OSError:
            identity = (0, 0)
        name, real = os.path.basename(path), os.path.realpath(path)
        candidate = Candidate(path, real, Source.ARGUMENT, path, None, identity, name)
        return probe(candidate, host_exports())

    @computed_once
    def trial(self) -> LoadTrial:
        """How far loading came in a child; to be asked before it is mapped here."""
        return try_loading(self.target, self._load_seconds(_TRIAL_S))

    def _load_seconds(self, default: float) -> float:
        return self.target.options.load_seconds or default

    def first_contact(self) -> Finding:
        """Return what loading it as a host does came to, in a child that is watched."""
        self.require_loadable()
        return self._first_contact

    @computed_once
    def _first_contact(self) -> Finding:
        limits = Limits(seconds=self._load_seconds(Limits().seconds))
        return first_contact_of(self.probe, LoadFacts.of(self.probe), limits)

    @property
    def broken_rules(self) -> list[str]:
        """The rules by which the file cannot be mapped."""
        return [problem.rule_id for problem in self.probe.problems if problem.is_error]

    def require_loadable(self) -> None:
        """Go on where nothing in the file speaks against mapping it."""
        if not os.path.lexists(self.target.path):
            raise Blocked("there is no such file", "LD-001")
        if self.broken_rules:
            raise Blocked("the library will not load here", *self.broken_rules)

    def library(self) -> Library:
        """Return the mapped library."""
        self.require_loadable()
        if not self.is_mapped and not self.trial.mapped:
            raise Blocked("the library cannot be mapped", "LD-050")
        return self.map()

    # -- TF_InitPlugin ----------------------------------------------------------------------------

    _registration: RegistrationMemory | None = None

    def call_init_plugin(self) -> RegistrationMemory:
        """Return what the first call of `TF_InitPlugin` left; that may end the process.

        Raises:
            PluginError: It threw, or is no function.
        """
        self.library()
        if self._registration is None:
            self._registration = self._register()
        return self._registration

    def _register(self) -> RegistrationMemory:
        library = self.map()
        self.journal.enter("TF_InitPlugin(&info)")
        registration = RegistrationMemory(library)
        self.journal.leave("TF_InitPlugin(&info)", f"{registration.num_schemes} schemes")
        return registration

    def registration(self) -> RegistrationMemory:
        """Return what the first call of `TF_InitPlugin` left; its blocks may be freed already."""
        self.library()
        if self._registration is None and not self.trial.returned:
            raise Blocked("TF_InitPlugin does not return", "FS-130", "LD-051", "LD-052")
        return self.call_init_plugin()

    def second_registration(self) -> RegistrationMemory:
        """Call `TF_InitPlugin` again, which may end the process."""
        self.offer()
        return self._register()

    def fresh_registration(self) -> RegistrationMemory:
        """Return what another call of `TF_InitPlugin` leaves; it is the check's."""
        self.registration()
        if self.trial.taken and not self.trial.repeated:
            raise Blocked("TF_InitPlugin does not return when it is called again", "FS-106")
        return self._register()

    def entries(self) -> tuple[Entry, ...]:
        """Return copies of the entries of the first call."""
        entries = self.registration().entries
        if not entries:
            raise Blocked("TF_InitPlugin leaves no scheme", "FS-003", "FS-004", "FS-005")
        return entries

    # -- what the host makes of it ----------------------------------------------------------------

    def offer(self) -> FilesystemOffer:
        """Return what the host makes of what the first call left, which it frees."""
        self.registration()
        if not self.trial.taken:
            raise Blocked("the host cannot take what TF_InitPlugin leaves", "FS-129")
        return self._offer

    @computed_once
    def _offer(self) -> FilesystemOffer:
        registration = self.registration()
        self.journal.enter("plugin_memory_free")
        return registration.take()

    def tables(self) -> list[FilesystemTables]:
        """Return the tables of the schemes that the host accepts."""
        accepted = [found for found in self.offer().entries if isinstance(found, FilesystemTables)]
        if not accepted:
            raise Blocked("the host accepts no scheme of the plugin")
        return accepted

    def violations(self) -> list[tuple[str, Violation]]:
        """Return what the host finds wrong, with the scheme that it concerns, or ""."""
        offer = self.offer()
        found = [("", violation) for violation in offer.violations]
        for entry in offer.entries:
            broken = entry.warnings if isinstance(entry, FilesystemTables) else entry.violations
            known = entry.scheme is not None
            name = f"scheme {entry.scheme!r}" if known else "scheme that cannot be read"
            found += [(name, violation) for violation in broken]
        return found


def registration_of(fs: FilesystemWorkspace) -> RegistrationMemory:
    """Call `TF_InitPlugin` once more; what it leaves is the caller's.

    Raises:
        Blocked: It fails.
    """
    fs.access.journal.enter("TF_InitPlugin(&info)")
    with blocked_by(PluginError):
        return RegistrationMemory(mapped_library(fs.target))
