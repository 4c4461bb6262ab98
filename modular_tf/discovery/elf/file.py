"""One ELF library, opened for reading its facts."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from modular_tf.discovery.elf.dynamic import (
    DynamicSection,
    VersionNeed,
    VersionRecord,
    version_definitions,
    version_needs,
    version_records,
)
from modular_tf.discovery.elf.image import ET_DYN, Image
from modular_tf.discovery.elf.source import ByteSource
from modular_tf.discovery.elf.symbols import Symbol, SymbolName, SymbolTable, UndefinedSymbol
from modular_tf.rules import loading as rules

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class ElfFile:
    """An ELF library; none of its code is executed. [any thread, one at a time]

    A context manager. What needs more than a few reads is a method, and most methods read the file
    again at each call.
    """

    __slots__ = ("_found", "_source", "_symbols", "_undefined", "_versions", "dynamic", "image")

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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

    def find(self, name: SymbolName | str) -> Symbol | None:
        """Return the exported symbol of this name, as dlsym would."""
        wanted = SymbolName(name) if isinstance(name, str) else name
        if wanted.text not in self._found:  # plugins ask the same libraries for the same names
            self._found[wanted.text] = self._table().find(wanted)
        return self._found[wanted.text]

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
        """Return the symbol versions that the library needs of others."""
        return version_needs(self.image, self.dynamic)

    def version_records(self) -> tuple[VersionRecord, ...]:
        """Return the records of the libraries of which the library needs symbol versions."""
        return version_records(self.image, self.dynamic)

    def version_indices(self) -> tuple[int, ...]:
        """Return the version index of each symbol; 0 and 1 mean none."""
        table = self._table()
        return table.version_indices(table.count())

    def version_definitions(self) -> frozenset[str]:
        """Return the symbol versions that the library defines; empty if it is unversioned."""
        if self._versions is None:  # every plugin asks the C library for its own
            self._versions = version_definitions(self.image, self.dynamic)
        return self._versions

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
