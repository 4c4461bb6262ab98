"""Properties of the running dynamic linker that differ between machines; the linker reports them.

In each directory of a search path it looks first into subdirectories for particular processors:
`glibc-hwcaps/x86-64-v3` and, before glibc 2.37, combinations of names such as `tls/x86_64`. The
list depends on glibc, the processor, and GLIBC_TUNABLES. The values of `$LIB` and `$PLATFORM` and
the default directories were fixed when the linker was built.
"""

from __future__ import annotations

import errno
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.privileges import linker_variable
from modular_tf.errors import ElfError
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HWCAPS", "LinkerProperties", "running_linker"]

HWCAPS = "glibc-hwcaps"
_PROGRAM = "/proc/self/exe"
_TIMEOUT_S = 10.0
# A directory that does not exist: the linker prints where it looks for a library that is missing.
_NOWHERE = "/modular_tf-no-such-directory"
_NO_LIBRARY = "libmodular_tf-no-such-library.so"
_LIBRARY_PATH = f"{_NOWHERE}:{_NOWHERE}/lib=/$LIB:{_NOWHERE}/platform=/$PLATFORM"
_SEARCH_PATH = re.compile(r"search path=(\S*)\s+\((LD_LIBRARY_PATH|system search path)\)")


class LinkerProperties(NamedTuple):
    """What one dynamic linker does; an empty field is unknown.

    Attributes:
        subdirectories: The subdirectories that it searches before each directory itself.
        lib: The value of `$LIB`.
        platform: The value of `$PLATFORM`.
        default_directories: The directories that it searches last.
    """

    subdirectories: tuple[str, ...] = ()
    lib: str = ""
    platform: str = ""
    default_directories: tuple[str, ...] = ()


_UNKNOWN = LinkerProperties()
_known: dict[str, LinkerProperties] = {}


def running_linker() -> LinkerProperties:
    """Return the properties of this process's linker, which is run once for that. [any thread]

    All are unknown if it cannot be run, as with another C library than glibc, or where this process
    may start no others.

    Raises:
        ShortageError: It cannot be run now. Without its output the search would miss directories,
            so no plugin is probed.
    """
    tunables = linker_variable("GLIBC_TUNABLES", os.environ)
    if tunables not in _known:
        try:
            output = _run_linker(os.readlink(_PROGRAM), tunables)
        except (OSError, ElfError) as error:
            raise_shortage(error)
            return _UNKNOWN
        _known[tunables] = _parse(output)
    return _known[tunables]


def _run_linker(program: str, tunables: str) -> str:
    """Return what the linker prints when it lists the program's libraries; no code of it runs.

    Raises:
        OSError: No process can be started, or it does not end.
        ElfError: The program cannot be read.
    """
    import subprocess  # noqa: PLC0415  (known plugins need none of this)

    with ElfFile(program) as elf:
        linker = elf.image.interpreter()
    if linker is None:
        return ""
    environment = {"LD_DEBUG": "libs", "LD_LIBRARY_PATH": _LIBRARY_PATH, "LD_PRELOAD": _NO_LIBRARY}
    if tunables:
        environment["GLIBC_TUNABLES"] = tunables
    try:
        done = subprocess.run(  # noqa: S603  (the linker that this program names)
            [linker, "--list", program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(errno.EAGAIN, str(error), linker) from error
    return os.fsdecode(done.stderr)


def _parse(output: str) -> LinkerProperties:
    """Return the properties by where the linker looked for the missing library."""
    paths: dict[str, list[str]] = {}
    for directories, origin in _SEARCH_PATH.findall(output):
        paths.setdefault(origin, directories.split(":"))
    searched = paths.get("LD_LIBRARY_PATH", [])
    if _NOWHERE not in searched:
        return _UNKNOWN
    below = searched[: searched.index(_NOWHERE)]
    subdirectories = tuple(dict.fromkeys(path.removeprefix(f"{_NOWHERE}/") for path in below))
    return LinkerProperties(
        subdirectories,
        _value_of(searched, "lib"),
        _value_of(searched, "platform"),
        _without(subdirectories, paths.get("system search path", [])),
    )


def _value_of(searched: Sequence[str], name: str) -> str:
    start = f"{_NOWHERE}/{name}=/"
    found = [path.removeprefix(start) for path in searched if path.startswith(start)]
    return min(found, key=len, default="")  # paths with a subdirectory are longer


def _without(subdirectories: Sequence[str], directories: Sequence[str]) -> tuple[str, ...]:
    """Return the directories without the subdirectories that the linker adds."""
    ends = tuple(f"/{name}" for name in subdirectories)
    return tuple(path for path in directories if not path.endswith(ends))
