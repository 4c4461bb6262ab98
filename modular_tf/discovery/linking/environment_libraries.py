"""The libraries that LD_PRELOAD, LD_AUDIT and LD_LIBRARY_PATH added to this process.

Their code has run, and plugins use what they define. So they are checked with each plugin.
"""

from __future__ import annotations

import os
from functools import cache

from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.discovery.privileges import linker_variable
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.rules.shortage import raise_shortage

__all__ = ["VARIABLES", "environment_libraries"]

VARIABLES = "LD_PRELOAD, LD_AUDIT or LD_LIBRARY_PATH"
"""The variables as messages name them."""
_START = "/proc/self/environ"
_MAPS = "/proc/self/maps"
_PATH_COLUMN = 5


@cache
def environment_libraries() -> tuple[str, ...]:
    """Return the files that this program is linked with because of the variables. [any thread]

    Libraries of the system and of this package are left out. The path of a file that was removed
    since ends in ` (deleted)`, as in `/proc/self/maps`.

    Raises:
        OSError: The list of mapped files cannot be read now.
        ElfError: The program cannot be read.
    """
    library_path, preload = _variable("LD_LIBRARY_PATH"), _preload()
    if not library_path and not preload:
        return ()
    files = _linked_files(library_path, preload) - _linked_files("", "")
    mapped = _mapped_files()
    ways = [(path, path) for path in files] + [(f"{path} (deleted)", path) for path in files]
    return tuple(sorted(shown for shown, path in ways if shown in mapped and not _is_exempt(path)))


def _preload() -> str:
    return ":".join(filter(None, map(_variable, ("LD_PRELOAD", "LD_AUDIT"))))


def _variable(name: str) -> str:
    """Return the value of a variable at the start of the process; it may have changed since."""
    try:
        with open(_START, "rb") as stream:
            pairs = (entry.partition(b"=") for entry in stream.read().split(b"\0"))
        found = {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}
    except OSError as error:
        raise_shortage(error)  # else a variable that was removed since would count as unset
        found = {}
    # A program that changes its own title overwrites the variables of the start.
    return linker_variable(name, found) or linker_variable(name, os.environ)


def _linked_files(library_path: str, preload: str) -> set[str]:
    """Return the real paths of the libraries that this program is linked with.

    The places that the linker skips now are included: what it found there may have been removed.

    Raises:
        ElfError: They cannot be read.
    """
    from modular_tf.discovery.linking.link_scope import ProcessScope  # noqa: PLC0415  (few have variables)

    scope = ProcessScope(library_path=library_path, preload=preload)
    try:
        found = [library.elf.path for library in scope.others]
        return set(map(os.path.realpath, (*found, *scope.passed_over)))
    finally:
        scope.close()


def _mapped_files() -> set[str]:
    with open(_MAPS, "rb") as stream:
        rows = [os.fsdecode(line.rstrip(b"\n")).split(None, _PATH_COLUMN) for line in stream]
    return {row[_PATH_COLUMN] for row in rows if len(row) > _PATH_COLUMN}


def _is_exempt(path: str) -> bool:
    own = (f"{os.path.realpath(folder)}/" for folder in package_directories())
    return is_of_system(path) or path.startswith(tuple(own))
