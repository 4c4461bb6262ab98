"""The libraries that symbols of a plugin are looked up in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile, SymbolName
from modular_tf.discovery.library_search import LibrarySearch, LinkedLibrary
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
    """

    name: str
    needed_by: str


class LinkScope:
    """A library with all that it needs, directly or not, breadth first as the linker does.

    Attributes:
        libraries: The library itself and those found, in order.
        missing: Those not found.
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
            offered: Names that somebody else stands in for; they are not looked for.
            outer: A scope that is loaded already.
            preloaded: Names of libraries that come before those that are needed; like the linker it
                goes on without those that are not found.
        """
        self._outer = outer
        self.libraries = [root]
        self.missing: list[MissingLibrary] = []
        self.passed_over: list[str] = []
        self.excess: str | None = None
        self._by_name: dict[str, LinkedLibrary] = {}
        self._remember(root)
        try:
            for name in preloaded:
                self._take(search.find(name, root))
            self._collect(search, offered)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close what was brought along; a second call does nothing.

        The system's libraries belong to the search.
        """
        for library in self.libraries[1:]:
            if library.is_companion:
                library.elf.close()

    def library(self, name: str) -> LinkedLibrary | None:
        """Return the library of this name, from here or from the outer scope."""
        found = self._by_name.get(name)
        if found is None and self._outer is not None:
            return self._outer.library(name)
        return found

    def offers(self, name: str) -> bool:
        """Tell whether any library here or in the outer scope defines a symbol.

        Raises:
            ElfError: The tables of one of them are damaged.
        """
        return (self._outer is not None and self._outer.offers(name)) or self._defines(name)

    def _defines(self, name: str) -> bool:
        wanted = SymbolName(name)
        return any(library.elf.find(wanted) for library in self.libraries)

    def _collect(self, search: LibrarySearch, offered: Collection[str]) -> None:
        missing: dict[str, MissingLibrary] = {}
        for library in self.libraries:  # which grows meanwhile
            needed = library.elf.dynamic.needed
            self._note_excess(len(needed))
            for name in needed:
                if self.excess is not None:
                    return
                if name in missing or name in offered or self.library(name) is not None:
                    continue
                places_left = _MAX_PLACES - len(self.passed_over)
                if not self._take(search.find(name, library, self.passed_over, most=places_left)):
                    missing[name] = MissingLibrary(name, library.name)
                self._note_excess(len(self.libraries) + len(missing))
        self.missing += missing.values()

    def _note_excess(self, libraries: int) -> None:
        """Take note of what is more than is looked at, if so many libraries are needed."""
        if libraries > MAX_LIBRARIES:
            self.excess = f"more than {MAX_LIBRARIES} libraries"
        elif len(self.passed_over) >= _MAX_PLACES:
            self.excess = f"a search in more than {_MAX_PLACES} places"

    def _take(self, found: LinkedLibrary | None) -> bool:
        if found is None:
            return False
        self.libraries.append(found)
        self._remember(found)
        return True

    def _remember(self, library: LinkedLibrary) -> None:
        """A library answers to the name it was found by and to its SONAME."""
        self._by_name[library.name] = library
        soname = library.elf.dynamic.soname
        if soname:
            self._by_name.setdefault(soname, library)


class ProcessScope(LinkScope):
    """This program and all libraries that it was started with."""

    def __init__(self, *, library_path: str = "", preload: str = "") -> None:
        """Read the program's own file.

        Args:
            library_path: The value of LD_LIBRARY_PATH when the process started.
            preload: Likewise of LD_PRELOAD.

        Raises:
            ElfError: That is not possible.
            ShortageError: Nothing can be said of it now.
        """
        self._answers: dict[str, bool] = {}
        self._program = _open_program()
        self.search = LibrarySearch(self._program.target, library_path=library_path)
        self.libraries = []
        try:
            root = LinkedLibrary("the program", self._program, None, is_companion=False)
            super().__init__(root, self.search, preloaded=preload.replace(":", " ").split())
        except BaseException:
            self.close()
            raise

    def offers(self, name: str) -> bool:
        """Tell whether any library of the process defines a symbol; plugins ask for the same ones.

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
    """Open the running program; what it is called matters for `$ORIGIN`."""
    import os  # noqa: PLC0415  (only here)

    try:
        return ElfFile(os.readlink("/proc/self/exe"))
    except (OSError, ElfError) as error:
        raise_shortage(error)
        return ElfFile(os.path.realpath(sys.executable))
