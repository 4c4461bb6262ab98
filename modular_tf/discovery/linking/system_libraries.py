"""Libraries that come with no plugin: those of the system, and what variables of the linker add."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING

from modular_tf.discovery.privileges import linker_variable, variables_of_start
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterator

LINKER_CACHE = "/etc/ld.so.cache"
VARIABLES = "LD_PRELOAD, LD_AUDIT or LD_LIBRARY_PATH"
"""The variables that add libraries, as messages name them."""
_MAGIC = b"glibc-ld.so.cache1.1"  # in an old cache, of which old programs use the first part, later
_HEADER = Struct("=20sI24x")
_ENTRY = Struct("=iIIIQ")
# `$ORIGIN` or `${ORIGIN}`, but not `$ORIGINAL`.
_TOKEN = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_])|\{(ORIGIN|LIB|PLATFORM)\})")
_MULTIARCH = getattr(sys.implementation, "_multiarch", "")
# The names of library directories in distributions: Debian, Fedora, all others.
_FOLDERS = (*((f"lib/{_MULTIARCH}",) if _MULTIARCH else ()), "lib64", "lib")
_DEFAULT = frozenset(f"{top}/{name}" for top in ("", "/usr", "/usr/local") for name in _FOLDERS)
_MAPS = "/proc/self/maps"
_PATH_COLUMN = 5


def is_of_system(path: str) -> bool:
    """Return whether a library lies where the system keeps libraries; links are not followed.

    That is in a default directory of the linker, or in its cache; a damaged cache has none, as for
    the linker. A path with `..` is none of the system's, whatever it begins with. Raises
    `ShortageError`.
    """
    if "/../" in path:
        return False
    if os.path.dirname(path).partition("/glibc-hwcaps/")[0] in _DEFAULT:
        return True
    wanted = os.fsencode(path) + b"\0"
    try:
        with open(LINKER_CACHE, "rb") as stream:
            data = stream.read()
        if wanted not in data:
            return False
        data = data[data.index(_MAGIC) :]
        _, count = _HEADER.unpack_from(data)
        entries = data[_HEADER.size :][: count * _ENTRY.size]
        return any(data.startswith(wanted, at) for _, _, at, _, _ in _ENTRY.iter_unpack(entries))
    except (OSError, error, ValueError) as failure:
        raise_shortage(failure)
        return False


def expand(template: str, origin: str) -> Iterator[str]:
    """Yield a path with `$ORIGIN` (the directory `origin`), `$LIB` and `$PLATFORM` filled in.

    The value of `$LIB` was fixed when the linker was built, so all usual values are tried.
    """
    for lib in _FOLDERS if "LIB" in template else ("",):
        words = {"ORIGIN": origin, "LIB": lib, "PLATFORM": os.uname().machine}
        yield _TOKEN.sub(lambda found, w=words: w[found[1] or found[2]], template)  # type: ignore[misc]


def is_relative(directory: str) -> bool:
    """Return whether a directory of a search path depends on the current directory."""
    token = _TOKEN.match(directory)
    return not directory.startswith("/") and (token is None or "ORIGIN" not in token[0])


@cache
def environment_libraries() -> tuple[str, ...]:
    """Return the files that this program is linked with because of the variables. [any thread]

    Their code has run, and plugins use what they define. So they are checked with each plugin.
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
    files = (present | skipped).difference(*_linked_files())
    ran: set[str] = set()
    if variables_of_start().get("LD_AUDIT"):
        ran = _linked_files(library_path, "", audit)[0] - _linked_files(library_path)[0]
    with open(_MAPS, "rb") as stream:
        rows = [os.fsdecode(line.rstrip(b"\n")).split(None, _PATH_COLUMN) for line in stream]
    counted = {row[_PATH_COLUMN] for row in rows if len(row) > _PATH_COLUMN} | ran
    own = tuple(f"{os.path.realpath(folder)}/" for folder in package_directories())
    others = [path for path in files if not is_of_system(path) and not path.startswith(own)]
    shown = [form for path in others for form in (path, f"{path} (deleted)")]
    return tuple(sorted(form for form in shown if form in counted))


def _linked_files(
    library_path: str = "", preload: str = "", audit: str = ""
) -> tuple[set[str], set[str]]:
    """Return the real paths of the libraries that this program is linked with.

    The second set has the places that the linker skips now: what it found there may have been
    removed. Raises `ElfError` if they cannot be found out.
    """
    # Imported where a variable is set: most starts read no library.
    from modular_tf.discovery.linking.dynamic_linker import ask_linker  # noqa: PLC0415

    # Both are separated by colons, and LD_PRELOAD by blanks too.
    auditors = list(filter(None, audit.split(":")))
    trace = ask_linker(auditors, library_path=library_path, preload=preload)
    named = [name for name in (*preload.replace(":", " ").split(), *auditors) if "/" in name]
    present = {os.path.realpath(path) for _, path in trace.listed if path is not None}
    return present, {*map(os.path.realpath, (*trace.tried, *named))} - present
