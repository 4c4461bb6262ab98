"""The scope of a plugin: the libraries in which its symbols are looked up."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile, SymbolName
from modular_tf.discovery.linking.library_search import LibrarySearch, LinkedLibrary, SearchTrail
from modular_tf.errors import ElfError
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


__all__ = ["MAX_LIBRARIES", "LinkScope", "MissingLibrary", "ProcessScope"]

MAX_LIBRARIES = 1024
"""How many libraries one may need, directly or not; TensorFlow needs about sixty."""
_MAX_PLACES = 16_384  # a search path of twenty directories, for each of eight hundred libraries


class MissingLibrary(NamedTuple):
    """A needed library that was not found.

    Attributes:
        name: Its SONAME.
        needed_by: The library that needs it.
        error: What is wrong with the file that the linker takes, None if there is no file.
    """

    name: str
    needed_by: str
    error: ElfError | None = None


class LinkScope:
    """A library with all that is mapped with it, directly or not, in the linker's order.

    That is breadth first, but for filters (DT_AUXILIARY, DT_FILTER): those come right before the
    library that names them, and what they need before what others need.

    Attributes:
        root: The library itself.
        libraries: The library itself and those found, in order.
        missing: Those not found; without an auxiliary filter the linker goes on.
        passed_over: Paths at which another library would have been found instead.
        excess: What of it is more than is looked at, in words; the rest was not looked for.
    """

    def __init__(
        self,
        root: LinkedLibrary,
        search: LibrarySearch,
        *,
        offered: Collection[str] = (),
        outer: LinkScope | None = None,
        preloaded: Iterable[str] = (),
    ) -> None:
        """Find what `root` needs.

        Args:
            root: The library to start from; the scope does not close it.
            search: Where to look.
            offered: Names that the host replaces; they are not searched for.
            outer: A scope that is loaded already.
            preloaded: Names of libraries that come before those that are needed; like the linker it
                goes on without those that are not found.
        """
        self._outer = outer
        self.root = root
        self.libraries = [root]
        self.missing: list[MissingLibrary] = []
        self.excess: str | None = None
        self._search = search
        self._trail = SearchTrail(_MAX_PLACES)
        self._by_name: dict[str, LinkedLibrary] = {}
        self._by_file: dict[tuple[int, int], LinkedLibrary] = {}
        self._remember(root, root.name)
        try:
            for name in preloaded:
                with suppress(ElfError):
                    self._find(name, root)
            self._collect(offered)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the companions; a second call does nothing.

        The system's libraries belong to the search.
        """
        for library in self.others:
            if library.is_companion:
                library.elf.close()

    @property
    def others(self) -> tuple[LinkedLibrary, ...]:
        """All libraries but the one that it starts from."""
        return tuple(library for library in self.libraries if library is not self.root)

    @property
    def passed_over(self) -> tuple[str, ...]:
        """Paths at which another library would have been found instead."""
        return tuple(self._trail.passed_over)

    def library(self, name: str) -> LinkedLibrary | None:
        """Return the library of this name, from the outer scope or from here."""
        found = None if self._outer is None else self._outer.library(name)
        return found or self._by_name.get(name)

    def offers(self, name: str) -> bool:
        """Return whether any library here or in the outer scope defines a symbol.

        Raises:
            ElfError: The tables of one of them are damaged.
        """
        return (self._outer is not None and self._outer.offers(name)) or self._defines(name)

    def _defines(self, name: str) -> bool:
        wanted = SymbolName(name)
        return any(library.elf.find(wanted) for library in self.libraries)

    def _collect(self, offered: Collection[str]) -> None:
        missing: dict[str, MissingLibrary] = {}
        done: set[int] = set()
        at = 0
        while at < len(self.libraries) and self.excess is None:
            library = self.libraries[at]
            if id(library) in done:
                at += 1
                continue
            done.add(id(library))  # filters that now come before it are next
            self._collect_for(library, at, offered, missing)
        self.missing += missing.values()

    def _collect_for(
        self,
        library: LinkedLibrary,
        at: int,
        offered: Collection[str],
        missing: dict[str, MissingLibrary],
    ) -> None:
        """Find the libraries that one library needs, and its filters, which come before it."""
        linked = library.elf.dynamic.linked
        self._note_excess(len(linked))
        for name, is_filter, is_optional in linked:
            if self.excess is not None:
                return
            if name in missing or (name in offered and not is_filter):
                continue
            found, damage = None, None
            try:
                found = self._find(name, library)
            except ElfError as error:
                damage = error
            if found is None and not is_optional:
                missing[name] = MissingLibrary(name, library.name, damage)
            if is_filter and found is not None:
                at += self._put_before(at, found)
            self._note_excess(len(self.libraries) + len(missing))

    def _put_before(self, at: int, found: LinkedLibrary) -> bool:
        """Move a library before the one at `at`, if it comes after it; return whether it did."""
        self._trail.places_left -= 1  # it takes as long to find it here
        for place in range(len(self.libraries) - 1, at, -1):
            if self.libraries[place] is found:
                self.libraries.insert(at, self.libraries.pop(place))
                return True
        return False

    def _note_excess(self, libraries: int) -> None:
        """Record that too many libraries are needed, if so."""
        if libraries > MAX_LIBRARIES:
            self.excess = f"more than {MAX_LIBRARIES} libraries"
        elif self._trail.places_left <= 0:
            self.excess = f"a search in more than {_MAX_PLACES} places"

    def _find(self, name: str, needed_by: LinkedLibrary) -> LinkedLibrary | None:
        """Return the library that a name leads to; a new one is added at the end."""
        name = self._search.expanded(name, needed_by)
        known = self.library(name)
        if known is not None:
            return known
        found = self._search.find(name, needed_by, self._trail)
        if found is None:
            return None
        same = self._of_file(found.elf.identity)
        if same is None:
            self.libraries.append(found)
        elif found.is_companion:
            found.elf.close()
        self._remember(same or found, name)
        return same or found

    def _of_file(self, identity: tuple[int, int]) -> LinkedLibrary | None:
        """Return the library that was mapped from a file: it is mapped once, by whatever names."""
        found = None if self._outer is None else self._outer._of_file(identity)  # noqa: SLF001
        return found or self._by_file.get(identity)

    def _remember(self, library: LinkedLibrary, name: str) -> None:
        """Record a library under the name it was found by and its SONAME."""
        self._by_name.setdefault(name, library)
        self._by_file.setdefault(library.elf.identity, library)
        soname = library.elf.dynamic.soname
        if soname:
            self._by_name.setdefault(soname, library)


class ProcessScope(LinkScope):
    """This program and all libraries that it was started with."""

    def __init__(self, *, library_path: str = "", preload: str = "", audit: str = "") -> None:
        """Read the program's own file.

        Args:
            library_path: The value of LD_LIBRARY_PATH when the process started.
            preload: The value of LD_PRELOAD at that time.
            audit: The value of LD_AUDIT, where its libraries count as well.

        Raises:
            ElfError: The program cannot be read.
            ShortageError: This process has too few descriptors or too little memory now.
        """
        self._answers: dict[str, bool] = {}
        self._program = _open_program()
        origin = os.path.dirname(self._program.path)
        self.search = LibrarySearch(
            self._program.target, library_path=library_path, program_origin=origin
        )
        self.libraries = []
        try:
            root = LinkedLibrary("the program", self._program, None, is_companion=False)
            names = [*preload.replace(":", " ").split(), *filter(None, audit.split(":"))]
            super().__init__(root, self.search, preloaded=names)
        except BaseException:
            self.close()
            raise

    def offers(self, name: str) -> bool:
        """Return whether a library of the process defines a symbol; results are cached.

        Raises:
            ElfError: The tables of one of them are damaged.
        """
        if name not in self._answers:
            self._answers[name] = self._defines(name)
        return self._answers[name]

    @property
    def target(self) -> tuple[int, str, int]:
        """Word size, byte order and machine number of this process."""
        return self._program.target

    @property
    def machine(self) -> str:
        """The name of this process's machine."""
        return self._program.image.machine

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        super().close()
        self.search.close()
        self._program.close()


def _open_program() -> ElfFile:
    """Return the open file of the running program; its path matters for `$ORIGIN`."""
    try:
        return ElfFile(os.readlink("/proc/self/exe"))
    except (OSError, ElfError) as error:
        raise_shortage(error)
        return ElfFile(os.path.realpath(sys.executable))
