"""Finding the libraries that a library needs, in the order in which the linker does.

Following ld.so(8): DT_RPATH of the library and of those that loaded it, unless it has a
DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the cache; the default directories.

A directory may be relative, and an empty one is the current directory. What is found by it is told
by its absolute path.
"""

from __future__ import annotations

import os
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linker_cache import read_linker_cache
from modular_tf.discovery.system_libraries import default_library_directories, library_folders
from modular_tf.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LibrarySearch", "LinkedLibrary", "expand", "is_relative"]

# `$ORIGIN` or `${ORIGIN}`, but not `$ORIGINAL`.
_TOKEN = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_])|\{(ORIGIN|LIB|PLATFORM)\})")


class LinkedLibrary(NamedTuple):
    """A library in the order of loading.

    Attributes:
        name: The name by which it was needed.
        elf: The open file.
        loaded_by: The library that needs it, None for the program itself.
        is_companion: Whether it was found where a library pointed to (RPATH, RUNPATH or a
            path), not where the system keeps libraries. It came with the plugin, and nobody
            has made sure that it fits this system.
    """

    name: str
    elf: ElfFile
    loaded_by: LinkedLibrary | None
    is_companion: bool

    @property
    def origin(self) -> str:
        """The directory that `$ORIGIN` stands for; links in it are kept, as the linker does."""
        return os.path.dirname(self.elf.path)


class LibrarySearch:
    """Where libraries for one kind of machine are found on this system.

    The system's libraries are opened once, since most plugins need the same ones, and stay open
    until `close`; what a library brought along belongs to who asked for it. [any thread, one at a
    time]
    """

    def __init__(
        self,
        target: tuple[int, str, int],
        *,
        library_path: str = "",
        cache: Mapping[str, tuple[str, ...]] | None = None,
        default_directories: tuple[str, ...] | None = None,
    ) -> None:
        """Prepare a search.

        Args:
            target: Word size, byte order and machine number that libraries must have.
            library_path: The value of LD_LIBRARY_PATH when the process started.
            cache: Paths by library name; the system's own by default.
            default_directories: Where to look last; the system's own by default.
        """
        self._target = target
        self._library_path = _split(library_path)
        self._cache = read_linker_cache() if cache is None else cache
        self._of_system: dict[str, ElfFile | None] = {}
        self._defaults = default_directories or default_library_directories()

    def close(self) -> None:
        """Close the system's libraries; a second call does nothing."""
        for elf in self._of_system.values():
            if elf is not None:
                elf.close()
        self._of_system.clear()

    def find(
        self,
        name: str,
        needed_by: LinkedLibrary,
        passed_over: list[str] | None = None,
        *,
        most: int | None = None,
    ) -> LinkedLibrary | None:
        """Open the library that the linker would take for `name`; None if there is none.

        Like the linker it passes over files for other machines; damaged ones as well.

        Args:
            name: As DT_NEEDED has it.
            needed_by: The library that needs it.
            passed_over: Gets the paths at which a library would have been taken instead. A relative
                one is among them even if it was taken: it means another file in another directory.
            most: How many places are looked at; all by default.
        """
        for path, is_companion in islice(self._places(name, needed_by), most):
            elf = self._open(path) if is_companion else self._open_once(path)
            if passed_over is not None and (elf is None or not os.path.isabs(path)):
                passed_over.append(path)
            if elf is not None:
                return LinkedLibrary(name, elf, needed_by, is_companion)
        return None

    def _places(self, name: str, needed_by: LinkedLibrary) -> Iterator[tuple[str, bool]]:
        """Yield each path to try, and whether a library pointed there."""
        if "/" in name:
            for path in expand(name, needed_by.origin):
                yield path, True
            return
        if not needed_by.elf.dynamic.has_runpath:
            for directory in self._rpaths(needed_by):
                yield os.path.join(directory, name), True
        for directory in self._library_path:
            yield os.path.join(directory, name), False
        for template in needed_by.elf.dynamic.runpath:
            for directory in expand(template, needed_by.origin):
                yield os.path.join(directory, name), True
        for path in self._cache.get(name, ()):
            yield path, False
        for directory in self._defaults:
            yield os.path.join(directory, name), False

    def _rpaths(self, library: LinkedLibrary | None) -> Iterator[str]:
        """Yield the DT_RPATH directories of a library and of all that led to it."""
        while library is not None:
            if not library.elf.dynamic.has_runpath:
                for template in library.elf.dynamic.rpath:
                    yield from expand(template, library.origin)
            library = library.loaded_by

    def _open_once(self, path: str) -> ElfFile | None:
        if path not in self._of_system:
            self._of_system[path] = self._open(path)
        return self._of_system[path]

    def _open(self, path: str) -> ElfFile | None:
        try:
            elf = ElfFile(os.path.join(os.getcwd(), path) if path[:1] != "/" else path)
        except (ElfError, FileNotFoundError):  # the current directory may be gone
            return None
        if elf.target == self._target and elf.is_shared_object:
            return elf
        elf.close()
        return None


def _split(library_path: str) -> tuple[str, ...]:
    """Return the directories of LD_LIBRARY_PATH; an empty one means the current directory."""
    if not library_path:
        return ()
    return tuple(part or "." for part in library_path.replace(";", ":").split(":"))


def expand(template: str, origin: str) -> Iterator[str]:
    """Yield a path with `$ORIGIN`, `$LIB` and `$PLATFORM` filled in.

    What `$LIB` stands for was fixed when the linker was built, so each custom is tried.

    Args:
        template: The path.
        origin: The directory that `$ORIGIN` stands for.
    """
    for lib in library_folders() if "LIB" in template else ("",):
        words = {"ORIGIN": origin, "LIB": lib, "PLATFORM": os.uname().machine}
        yield _TOKEN.sub(lambda found, w=words: w[found[1] or found[2]], template)  # type: ignore[misc]


def is_relative(directory: str) -> bool:
    """Tell whether a directory of a search path depends on the current directory."""
    token = _TOKEN.match(directory)
    return not directory.startswith("/") and (token is None or "ORIGIN" not in token[0])
