"""Where the system keeps libraries: the linker's cache and its default directories."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING

from modular_tf.discovery.linking.dynamic_linker import ask_linker
from modular_tf.discovery.privileges import linker_variable, variables_of_start
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterator

LINKER_CACHE = "/etc/ld.so.cache"
_MAGIC = b"glibc-ld.so.cache1.1"  # in an old cache, of which old programs use the first part, later
_HEADER = Struct("=20sI24x")
_ENTRY = Struct("=iIIIQ")
# `$ORIGIN` or `${ORIGIN}`, but not `$ORIGINAL`.
_TOKEN = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_])|\{(ORIGIN|LIB|PLATFORM)\})")


def is_of_system(path: str) -> bool:
    """Return whether a library lies where the system keeps libraries; links are not followed.

    A path with `..` is none of the system's, whatever it begins with. Raises `ShortageError`.
    """
    if "/../" in path:
        return False
    directory = os.path.dirname(path).partition("/glibc-hwcaps/")[0]
    return directory in _default_directories() or _is_in_cache(os.fsencode(path) + b"\0")


def _is_in_cache(path: bytes) -> bool:
    """Return whether the linker's cache has a path; a damaged cache has none, as for the linker."""
    try:
        with open(LINKER_CACHE, "rb") as stream:
            data = stream.read()
        if path not in data:
            return False
        data = data[data.index(_MAGIC) :]
        _, count = _HEADER.unpack_from(data)
        entries = data[_HEADER.size :][: count * _ENTRY.size]
        return any(data.startswith(path, at) for _, _, at, _, _ in _ENTRY.iter_unpack(entries))
    except (OSError, error, ValueError) as failure:
        raise_shortage(failure)
        return False


@cache
def _default_directories() -> frozenset[str]:
    return frozenset(
        f"{root}/{folder}" for root in ("", "/usr", "/usr/local") for folder in _library_folders()
    )


@cache
def _library_folders() -> tuple[str, ...]:
    """Return the names of library directories in distributions: Debian, Fedora, all others."""
    triplet = getattr(sys.implementation, "_multiarch", "")
    return (*((f"lib/{triplet}",) if triplet else ()), "lib64", "lib")


def expand(template: str, origin: str) -> Iterator[str]:
    """Yield a path with `$ORIGIN` (the directory `origin`), `$LIB` and `$PLATFORM` filled in.

    The value of `$LIB` was fixed when the linker was built, so all usual values are tried.
    """
    for lib in _library_folders() if "LIB" in template else ("",):
        words = {"ORIGIN": origin, "LIB": lib, "PLATFORM": os.uname().machine}
        yield _TOKEN.sub(lambda found, w=words: w[found[1] or found[2]], template)  # type: ignore[misc]


def is_relative(directory: str) -> bool:
    """Return whether a directory of a search path depends on the current directory."""
    token = _TOKEN.match(directory)
    return not directory.startswith("/") and (token is None or "ORIGIN" not in token[0])


VARIABLES = "LD_PRELOAD, LD_AUDIT or LD_LIBRARY_PATH"
"""The variables as messages name them."""
_MAPS = "/proc/self/maps"
_PATH_COLUMN = 5


@cache
def environment_libraries() -> tuple[str, ...]:
    """Return the files that this program is linked with because of the variables. [any thread]

    Libraries of the system and of this package are left out. The path of a file that was removed
    since ends in ` (deleted)`, as in `/proc/self/maps`. What LD_AUDIT names counts though it is not
    mapped: the linker runs its constructors, and unmaps it where it has no `la_version`.

    Raises `OSError` if the list of mapped files cannot be read now, and `ElfError` if it cannot be
    found out what the program is linked with.
    """
    library_path, preload, audit = (
        linker_variable(name, os.environ) for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT")
    )
    if not library_path and not preload and not audit:
        return ()
    present, skipped = _linked_files(library_path, preload, audit)
    own = set().union(*_linked_files())
    files = (present | skipped) - own
    ran: set[str] = set()
    if variables_of_start().get("LD_AUDIT"):
        ran = _linked_files(library_path, "", audit)[0] - _linked_files(library_path)[0]
    mapped = _mapped_files()
    ways = [(path, path) for path in files] + [(f"{path} (deleted)", path) for path in files]
    found = [(shown, path) for shown, path in ways if shown in mapped or shown in ran]
    return tuple(sorted(shown for shown, path in found if not _is_exempt(path)))


def _linked_files(
    library_path: str = "", preload: str = "", audit: str = ""
) -> tuple[set[str], set[str]]:
    """Return the real paths of the libraries that this program is linked with.

    The second set has the places that the linker skips now: what it found there may have been
    removed. Raises `ElfError` if they cannot be found out.
    """
    # Both are separated by colons, and LD_PRELOAD by blanks too.
    auditors = list(filter(None, audit.split(":")))
    trace = ask_linker(auditors, library_path=library_path, preload=preload)
    named = [name for name in (*preload.replace(":", " ").split(), *auditors) if "/" in name]
    present = {os.path.realpath(path) for _, path in trace.listed if path is not None}
    return present, {*map(os.path.realpath, (*trace.tried, *named))} - present


def _mapped_files() -> set[str]:
    with open(_MAPS, "rb") as stream:
        rows = [os.fsdecode(line.rstrip(b"\n")).split(None, _PATH_COLUMN) for line in stream]
    return {row[_PATH_COLUMN] for row in rows if len(row) > _PATH_COLUMN}


def _is_exempt(path: str) -> bool:
    own = (f"{os.path.realpath(folder)}/" for folder in package_directories())
    return is_of_system(path) or path.startswith(tuple(own))
