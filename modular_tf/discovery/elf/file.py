"""One ELF library, opened for reading its facts."""

from __future__ import annotations

from contextlib import closing
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf.dynamic import DynamicSection
from modular_tf.discovery.elf.image import ET_DYN, Image
from modular_tf.discovery.elf.source import ByteSource
from modular_tf.discovery.elf.symbols import Symbol, SymbolTable, UndefinedSymbol
from modular_tf.rules import loading as rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self


_WEAK = 2
_HIDDEN = 0x8000  # a mark on the number, no part of it
# A library needs some ten versions; glibc itself defines about fifty.
_MAX_RECORDS = 16_384


class VersionNeed(NamedTuple):
    """One version that a library needs."""

    library: str  # SONAME of the library that must define it
    version: str  # such as "GLIBC_2.34"
    weak: bool  # the library may go without
    number: int  # by which symbols refer to it


class VersionRecord(NamedTuple):
    """What a library needs of one other library."""

    address: int  # its last four bytes are the distance to the next record, 0 in the last one
    library: str  # SONAME of the other library
    needs: tuple[VersionNeed, ...]


class ElfFile:
    """An ELF library; none of its code is executed. [any thread, one at a time]

    A context manager. What needs more than a few reads is a method, and most methods read the file
    again at each call.
    """

    def __init__(self, path: str) -> None:
        """Open and read the headers of `path`.

        Raises `ElfError` for what is no readable, whole ELF file (LD-002 to LD-005) or none of 64
        bits in little endian (LD-006 to LD-008), and `ShortageError`.
        """
        self._source = ByteSource(path)
        try:
            self.image = Image(self._source)
            self.dynamic = DynamicSection(self.image)
        except BaseException:
            self._source.close()
            raise
        self._found: dict[str, Symbol | None] = {}
        self._symbols: SymbolTable | None = None
        self._undefined: tuple[UndefinedSymbol, ...] | None = None
        self._versions: frozenset[str] | None = None

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def path(self) -> str:
        """The path that was opened."""
        return self._source.path

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode number of the file."""
        return self._source.identity

    @property
    def size(self) -> int:
        """Length of the file in bytes."""
        return self._source.size

    @property
    def is_shared_object(self) -> bool:
        """Whether dlopen would accept its type."""
        return not self._why_not_shared()

    def require_shared_object(self) -> None:
        """Check that dlopen would accept the type of the file."""
        reason = self._why_not_shared()
        if reason:
            raise self._source.error(rules.SHARED_OBJECT, f"is {reason}, not a shared object")

    def find(self, name: str) -> Symbol | None:
        """Return the exported symbol of this name, as dlsym would."""
        if name not in self._found:  # plugins ask the same libraries for the same names
            self._found[name] = self._table().find(name)
        return self._found[name]

    def exports(self) -> frozenset[str]:
        """Return the names of all exported symbols; takes time in proportion to their number."""
        return self._table().exports()

    def undefined(self) -> tuple[UndefinedSymbol, ...]:
        """Return the symbols that others have to define; one pass over all symbols."""
        if self._undefined is None:
            versions = {need.number: need.version for need in self.version_needs()}
            self._undefined = self._table().undefined(versions)
        return self._undefined

    def version_needs(self) -> tuple[VersionNeed, ...]:
        """Return the symbol versions that the library needs of others, in order."""
        return tuple(need for record in self.version_records() for need in record.needs)

    def version_records(self) -> tuple[VersionRecord, ...]:
        """Return the records of the libraries of which the library needs symbol versions."""
        records = []
        n_needs = 0
        text = self.dynamic.strings.text
        for at, (_, _, file, aux, _) in self._linked(self.dynamic.version_needs_address, "<HHIII"):
            library, needs = text(file), []
            for _, (_, flags, number, name, _) in self._linked(at + aux, "<IHHII"):
                weak = bool(flags & _WEAK)
                needs.append(VersionNeed(library, text(name), weak, number & ~_HIDDEN))
                n_needs += 1
                if n_needs > _MAX_RECORDS:
                    raise self._source.damaged(f"it needs more than {_MAX_RECORDS} symbol versions")
            records.append(VersionRecord(at, library, tuple(needs)))
        return tuple(records)

    def version_indices(self) -> tuple[int, ...]:
        """Return the version index of each symbol; 0 and 1 mean none."""
        table = self._table()
        return table.version_indices(table.count())

    def version_definitions(self) -> frozenset[str]:
        """Return the symbol versions that the library defines; empty if it is unversioned."""
        if self._versions is None:  # every plugin asks the C library for its own
            names = set()
            address = self.dynamic.version_definitions_address
            for at, fields in self._linked(address, "<HHHHIII"):
                # The first of the linked names is the version's own, the rest are its parents.
                data = self.image.read_at(at + fields[5], 8, "a version definition")
                names.add(self.dynamic.strings.text(Struct("<II").unpack(data)[0]))
            self._versions = frozenset(names)
        return self._versions

    def _linked(self, address: int, fields: str) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Yield address and fields of records that each end in the distance to the next.

        The dynamic linker reads no count of them, so none is trusted here. Address 0 has none.
        """
        record = Struct(fields)
        for _ in range(_MAX_RECORDS if address else 0):
            values = record.unpack(self.image.read_at(address, record.size, "a symbol version"))
            yield address, values
            if values[-1] == 0:
                return
            address += values[-1]
        if address:
            raise self._source.damaged(
                f"it has more than {_MAX_RECORDS} records of symbol versions"
            )

    def _table(self) -> SymbolTable:
        if self._symbols is None:
            self._symbols = SymbolTable(self.image, self.dynamic)
        return self._symbols

    def _why_not_shared(self) -> str:
        image, types = self.image, {1: "an object file", 2: "a program", 4: "a core dump"}
        if image.type != ET_DYN:
            return types.get(image.type, f"an ELF file of type {image.type}")
        if self.dynamic.is_program:
            return "a position-independent program"
        if self.dynamic.refuses_dlopen:
            return "linked with -z nodlopen"
        if image.dynamic is None or not image.loads:
            return "without a dynamic section, as debug information files are"
        return ""


def wants_executable_stack(path: str) -> bool:
    """Return whether loading a library makes the process's stacks executable, by its headers."""
    with closing(ByteSource(path)) as source:
        return Image(source).wants_executable_stack


def parse_glibc(version: str) -> tuple[int, ...] | None:
    """Return the numbers of "GLIBC_2.34"; None for any other version name."""
    prefix, _, numbers = version.partition("_")
    parts = numbers.split(".")
    if prefix != "GLIBC" or not all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts):  # noqa: PLR2004
        return None
    return tuple(int(part) for part in parts)


def glibc_floor(needs: tuple[VersionNeed, ...]) -> str | None:
    """Return the newest glibc version among `needs` that is not weak, such as "GLIBC_2.34"."""
    known = [(parse_glibc(need.version), need.version) for need in needs if not need.weak]
    found = [(numbers, name) for numbers, name in known if numbers is not None]
    return max(found)[1] if found else None
