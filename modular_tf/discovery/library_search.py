"""Finding the libraries that a library needs, in the order in which the linker does.

Following ld.so(8): DT_RPATH of the library and of those that loaded it, unless it has a
DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the cache; the default directories.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linker_cache import read_linker_cache
from modular_tf.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LibrarySearch", "LinkedLibrary"]


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
        self._lib_names = _lib_names()
        self._defaults = default_directories or tuple(
            f"{root}/{lib}" for root in ("", "/usr", "/usr/local") for lib in self._lib_names
        )

    def close(self) -> None:
        """Close the system's libraries; a second call does nothing."""
        for elf in self._of_system.values():
            if elf is not None:
                elf.close()
        self._of_system.clear()

    def find(
        self, name: str, needed_by: LinkedLibrary, passed_over: list[str] | None = None
    ) -> LinkedLibrary | None:
        """Open the library that the linker would take for `name`; None if there is none.

        Like the linker it passes over files for other machines; damaged ones as well.

        Args:
            name: As DT_NEEDED has it.
            needed_by: The library that needs it.
            passed_over: Gets the paths at which a library would have been taken instead.
        """
        for path, is_companion in self._places(name, needed_by):
            elf = self._open(path) if is_companion else self._open_once(path)
            if elf is not None:
                return LinkedLibrary(name, elf, needed_by, is_companion)
            if passed_over is not None:
                passed_over.append(path)
        return None

    def _places(self, name: str, needed_by: LinkedLibrary) -> Iterator[tuple[str, bool]]:
        """Yield each path to try, and whether a library pointed there."""
        if "/" in name:
            for path in self._expand(name, needed_by):
                yield path, True
            return
        runpath = needed_by.elf.dynamic.runpath
        if not runpath:
            for directory in self._rpaths(needed_by):
                yield os.path.join(directory, name), True
        for directory in self._library_path:
            yield os.path.join(directory, name), False
        for template in runpath:
            for directory in self._expand(template, needed_by):
                yield os.path.join(directory, name), True
        for path in self._cache.get(name, ()):
            yield path, False
        for directory in self._defaults:
            yield os.path.join(directory, name), False

    def _rpaths(self, library: LinkedLibrary | None) -> Iterator[str]:
        """Yield the DT_RPATH directories of a library and of all that led to it."""
        while library is not None:
            if not library.elf.dynamic.runpath:
                for template in library.elf.dynamic.rpath:
                    yield from self._expand(template, library)
            library = library.loaded_by

    def _expand(self, template: str, library: LinkedLibrary) -> Iterator[str]:
        """Yield a path with `$ORIGIN`, `$LIB` and `$PLATFORM` filled in.

        What `$LIB` stands for was fixed when the linker was built, so each custom is tried.
        """
        for token in ("ORIGIN", "LIB", "PLATFORM"):
            template = template.replace("${" + token + "}", "$" + token)
        template = template.replace("$ORIGIN", library.origin)
        template = template.replace("$PLATFORM", os.uname().machine)
        if "$LIB" in template:
            yield from (template.replace("$LIB", lib) for lib in self._lib_names)
        else:
            yield template

    def _open_once(self, path: str) -> ElfFile | None:
        if path not in self._of_system:
            self._of_system[path] = self._open(path)
        return self._of_system[path]

    def _open(self, path: str) -> ElfFile | None:
        try:
            elf = ElfFile(path)
        except ElfError:
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


def _lib_names() -> tuple[str, ...]:
    """Return what distributions call their library directories: Debian, Fedora, all others."""
    triplet = getattr(sys.implementation, "_multiarch", "")
    return (*((f"lib/{triplet}",) if triplet else ()), "lib64", "lib")
