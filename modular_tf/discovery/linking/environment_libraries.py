"""The libraries that LD_PRELOAD, LD_AUDIT and LD_LIBRARY_PATH added to this process.

Their code has run, and plugins use what they define. So they are checked with each plugin.
"""

from __future__ import annotations

import os
from functools import cache

from modular_tf.discovery.linking.dynamic_linker import ask_linker
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.discovery.privileges import linker_variable, variables_of_start
from modular_tf.discovery.sources.search_paths import package_directories

__all__ = ["VARIABLES", "environment_libraries"]

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
