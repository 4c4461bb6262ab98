"""Finding the libraries that a library needs, in the order in which the linker does.

Following ld.so(8): DT_RPATH of the library and of those that loaded it, unless it has a
DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the cache; the default directories. In each directory those
for this processor come first (`linker_properties`).

A directory may be relative, and an empty one is the current directory. Results have absolute paths.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.file import is_for_another
from modular_tf.discovery.linking.linker_cache import read_linker_cache
from modular_tf.discovery.linking.linker_properties import HWCAPS, LinkerProperties, running_linker
from modular_tf.discovery.linking.system_libraries import (
    default_library_directories,
    is_of_system,
    library_folders,
)
from modular_tf.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["LibrarySearch", "LinkedLibrary", "SearchTrail", "expand", "is_relative"]

# What the linker goes on searching after; ENAMETOOLONG, as no directory has such a name.
_ABSENT = frozenset({errno.ENOENT, errno.EACCES, errno.ENAMETOOLONG})
# `$ORIGIN` or `${ORIGIN}`, but not `$ORIGINAL`.
_TOKEN = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_])|\{(ORIGIN|LIB|PLATFORM)\})")


class LinkedLibrary(NamedTuple):
    """A library that will be loaded.

    Attributes:
        name: The name by which it was needed.
        elf: The open file.
        loaded_by: The library that needs it, None for the program itself.
        is_companion: Whether it was found where a library or LD_LIBRARY_PATH pointed to, not where
            the system keeps libraries; it may not fit this system.
    """

    name: str
    elf: ElfFile
    loaded_by: LinkedLibrary | None
    is_companion: bool

    @property
    def origin(self) -> str:
        """The directory that `$ORIGIN` stands for; links in it are kept, as the linker does."""
        return os.path.dirname(self.elf.path)


@dataclass(slots=True)
class SearchTrail:
    """The places that were searched for one plugin's libraries.

    Attributes:
        places_left: At how many more places they are looked for.
        passed_over: Paths at which a library, or a directory for libraries, would have been taken
            instead. A relative one is among them even if it was taken: it means another file in
            another directory.
    """

    places_left: int
    passed_over: dict[str, None] = field(default_factory=dict)


class LibrarySearch:
    """Finds libraries for one kind of machine on this system, as the linker does.

    The system's libraries are opened once, since most plugins need the same ones, and stay open
    until `close`; other libraries belong to the caller. [any thread, one at a time]
    """

    def __init__(
        self,
        target: tuple[int, str, int],
        *,
        library_path: str = "",
        program_origin: str = "",
        cache: Mapping[str, tuple[str, ...]] | None = None,
        default_directories: tuple[str, ...] | None = None,
        properties: LinkerProperties | None = None,
    ) -> None:
        """Create a search for libraries.

        Args:
            target: Word size, byte order and machine number that libraries must have.
            library_path: The value of LD_LIBRARY_PATH when the process started.
            program_origin: What `$ORIGIN` stands for in it.
            cache: Paths by library name; the system's own by default.
            default_directories: Where to look last; the system's own by default.
            properties: What the linker does; the one of this process is asked by default.
        """
        self._target = target
        self._library_path = library_path
        self._program_origin = program_origin
        self._cache = read_linker_cache() if cache is None else cache
        self._of_system: dict[str, ElfFile | None] = {}
        self._given_defaults = default_directories
        self._properties = properties
        self._below: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}

    def close(self) -> None:
        """Close the system's libraries; a second call does nothing."""
        for elf in self._of_system.values():
            if elf is not None:
                elf.close()
        self._of_system.clear()

    def expanded(self, name: str, needed_by: LinkedLibrary) -> str:
        """Return the name of a library as the linker compares it with others."""
        return next(self._expand(name, needed_by.origin)) if "$" in name else name

    def find(
        self, name: str, needed_by: LinkedLibrary, trail: SearchTrail | None = None
    ) -> LinkedLibrary | None:
        """Return the open library that the linker would load for `name`; None if there is none.

        Like the linker it skips files for other machines, and ends at a damaged one.

        Args:
            name: As DT_NEEDED has it.
            needed_by: The library that needs it.
            trail: Records the searched places, and limits their number.

        Raises:
            ElfError: The file that the linker takes is damaged or no shared object.
        """
        trail = trail or SearchTrail(sys.maxsize)
        trail.places_left -= 1  # a search without places takes its time too
        for path, is_companion in self._places(name, needed_by, trail):
            if trail.places_left <= 0:
                break
            trail.places_left -= 1
            elf = self._open(path) if is_companion else self._open_once(path)
            if elf is None or not os.path.isabs(path):
                trail.passed_over[path] = None
            if elf is not None:
                return LinkedLibrary(name, elf, needed_by, is_companion)
        return None

    def _places(
        self, name: str, needed_by: LinkedLibrary, trail: SearchTrail
    ) -> Iterator[tuple[str, bool]]:
        """Yield each path to try, and whether a library there is a companion."""
        if "/" in name:
            for path in self._expand(name, needed_by.origin):
                yield path, True
            return
        for directory, by_library in self._search_path(needed_by):
            for path in self._in(directory, name, trail):
                yield path, by_library or not is_of_system(path)
        for path in self._of_cache(name, needed_by):
            yield path, False
        for directory in self._default_directories(needed_by):
            for path in self._in(directory, name, trail):
                yield path, False

    def _search_path(self, needed_by: LinkedLibrary) -> Iterator[tuple[str, bool]]:
        """Yield each directory, and whether a library names it."""
        dynamic = needed_by.elf.dynamic
        for directory in () if dynamic.has_runpath else self._rpaths(needed_by):
            yield directory, True
        for directory in self._library_directories():
            yield directory, False
        for template in dynamic.runpath:
            for directory in self._expand(template, needed_by.origin):
                yield directory, True

    def _in(self, directory: str, name: str, trail: SearchTrail) -> Iterator[str]:
        """Yield the paths that a library of this name may have in a directory, the best first."""
        below, absent = self._subdirectories(directory)
        trail.passed_over.update(dict.fromkeys(absent))
        for path in below:
            yield os.path.join(path, name)
        yield os.path.join(directory, name)

    def _subdirectories(self, directory: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the subdirectories for this processor, and the highest one that does not exist."""
        if directory in self._below:
            return self._below[directory]
        present: list[str] = []
        absent: dict[str, None] = {}
        for name in self._linker().subdirectories:
            lacking = _first_absent(directory, name)
            if lacking is None:
                present.append(os.path.join(directory, name))
            else:
                absent[lacking] = None
        found = tuple(present), tuple(absent)
        if os.path.isabs(directory):  # any other is another one from elsewhere
            self._below[directory] = found
        return found

    def _library_directories(self) -> Iterator[str]:
        """Yield the directories of LD_LIBRARY_PATH; an empty one means the current directory."""
        if self._library_path:
            for template in self._library_path.replace(";", ":").split(":"):
                yield from self._expand(template, self._program_origin)

    def _rpaths(self, library: LinkedLibrary | None) -> Iterator[str]:
        """Yield the DT_RPATH directories of a library and of those that loaded it."""
        while library is not None:
            if not library.elf.dynamic.has_runpath:
                for template in library.elf.dynamic.rpath:
                    yield from self._expand(template, library.origin)
            library = library.loaded_by

    def _of_cache(self, name: str, needed_by: LinkedLibrary) -> Iterator[str]:
        """Yield the paths in the linker's cache for this processor, the best first."""
        paths = self._cache.get(name, ())
        if any(f"/{HWCAPS}/" in path for path in paths):
            levels = self._linker().subdirectories
            ranks = {path: _rank(path, levels) for path in paths if _rank(path, levels) >= 0}
            paths = tuple(sorted(ranks, key=ranks.__getitem__))
        refused = () if needed_by.elf.dynamic.searches_system else self._defaults()
        for path in paths:
            if not any(path.startswith(f"{directory}/") for directory in refused):
                yield path

    def _default_directories(self, needed_by: LinkedLibrary) -> tuple[str, ...]:
        return self._defaults() if needed_by.elf.dynamic.searches_system else ()

    def _defaults(self) -> tuple[str, ...]:
        known = self._given_defaults or self._linker().default_directories
        return known or default_library_directories()

    def _expand(self, template: str, origin: str) -> Iterator[str]:
        if "$" not in template:
            return iter((template,))
        linker = self._linker() if "LIB" in template or "PLATFORM" in template else None
        return expand(template, origin, linker)

    def _linker(self) -> LinkerProperties:
        if self._properties is None:
            self._properties = running_linker()
        return self._properties

    def _open_once(self, path: str) -> ElfFile | None:
        if path not in self._of_system:
            self._of_system[path] = self._open(path)
        return self._of_system[path]

    def _open(self, path: str) -> ElfFile | None:
        try:
            path = os.path.join(os.getcwd(), path) if path[:1] != "/" else path
            elf = ElfFile(path)
        except FileNotFoundError:  # the current directory may be gone
            return None
        except ElfError as error:
            if _is_absent(error, path) or is_for_another(path, self._target):
                return None
            raise
        if elf.target != self._target:
            elf.close()
            return None
        try:
            elf.require_shared_object()
        except BaseException:
            elf.close()
            raise
        return elf


def _is_absent(error: ElfError, path: str) -> bool:
    """Return whether nothing could be opened, so that the linker searches the next directory."""
    cause = error.__cause__
    if not isinstance(cause, OSError):
        return isinstance(cause, ValueError)  # a path that no system call accepts
    return cause.errno in _ABSENT or not os.path.isdir(os.path.dirname(path))


def _first_absent(directory: str, name: str) -> str | None:
    """Return the highest directory that does not exist between a directory and one below it."""
    path = directory or "."
    if not os.path.isdir(path):
        return path
    for part in name.split("/"):
        path = os.path.join(path, part)
        if not os.path.isdir(path):
            return path
    return None


def _rank(path: str, levels: tuple[str, ...]) -> int:
    """Return the rank of a path in the linker's cache; -1 if it is not for this processor."""
    _, is_for_some, rest = path.partition(f"/{HWCAPS}/")
    level = f"{HWCAPS}/{rest.partition('/')[0]}"
    if not is_for_some:
        return len(levels)
    return levels.index(level) if level in levels else -1


def expand(template: str, origin: str, linker: LinkerProperties | None = None) -> Iterator[str]:
    """Yield a path with `$ORIGIN`, `$LIB` and `$PLATFORM` filled in.

    The value of `$LIB` was fixed when the linker was built; if it is unknown, all usual values are
    tried.

    Args:
        template: The path.
        origin: The directory that `$ORIGIN` stands for.
        linker: What the linker does, as far as it is known.
    """
    linker = linker or LinkerProperties()
    platform = linker.platform or os.uname().machine
    known = (linker.lib,) if linker.lib else library_folders()
    for lib in known if "LIB" in template else ("",):
        words = {"ORIGIN": origin, "LIB": lib, "PLATFORM": platform}
        yield _TOKEN.sub(lambda found, w=words: w[found[1] or found[2]], template)  # type: ignore[misc]


def is_relative(directory: str) -> bool:
    """Return whether a directory of a search path depends on the current directory."""
    token = _TOKEN.match(directory)
    return not directory.startswith("/") and (token is None or "ORIGIN" not in token[0])
