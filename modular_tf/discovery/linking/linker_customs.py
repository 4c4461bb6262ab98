"""What the running dynamic linker decides by itself: it is asked, since machines differ in that.

Below each directory of a search path it looks into others first, those for particular processors:
`glibc-hwcaps/x86-64-v3` and, before glibc 2.37, combinations of names such as `tls/x86_64`. Which
ones depends on glibc, the processor, and GLIBC_TUNABLES. What `$LIB` and `$PLATFORM` stand for, and
where it looks last, was fixed when it was built.
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

__all__ = ["HWCAPS", "LinkerCustoms", "running_linker"]

HWCAPS = "glibc-hwcaps"
_PROGRAM = "/proc/self/exe"
_TIMEOUT_S = 10.0
# Where nothing is: the linker shows where it looks for a library that nobody has.
_NOWHERE = "/modular_tf-no-such-directory"
_NO_LIBRARY = "libmodular_tf-no-such-library.so"
_QUESTION = f"{_NOWHERE}:{_NOWHERE}/lib=/$LIB:{_NOWHERE}/platform=/$PLATFORM"
_ANSWER = re.compile(r"search path=(\S*)\s+\((LD_LIBRARY_PATH|system search path)\)")


class LinkerCustoms(NamedTuple):
    """What one dynamic linker does. What is empty is not known.

    Attributes:
        subdirectories: Where it looks below each directory, before the directory itself.
        lib: What `$LIB` stands for.
        platform: What `$PLATFORM` stands for.
        default_directories: Where it looks last.
    """

    subdirectories: tuple[str, ...] = ()
    lib: str = ""
    platform: str = ""
    default_directories: tuple[str, ...] = ()


_UNKNOWN = LinkerCustoms()
_known: dict[str, LinkerCustoms] = {}


def running_linker() -> LinkerCustoms:
    """Return what the linker of this process does; it is asked once. [any thread]

    Nothing of it is known where it cannot be asked, as with another C library than glibc, or where
    this process may start no others.

    Raises:
        ShortageError: It cannot be asked now. It would take libraries from directories that nobody
            looked into, so no plugin is judged without its answer.
    """
    tunables = linker_variable("GLIBC_TUNABLES", os.environ)
    if tunables not in _known:
        try:
            answer = _ask(os.readlink(_PROGRAM), tunables)
        except (OSError, ElfError) as error:
            raise_shortage(error)
            return _UNKNOWN
        _known[tunables] = _read(answer)
    return _known[tunables]


def _ask(program: str, tunables: str) -> str:
    """Let the linker list the libraries of this program, and tell how; nothing of it is run.

    Raises:
        OSError: No process can be started, or it does not end.
        ElfError: The program cannot be read.
    """
    import subprocess  # noqa: PLC0415  (known plugins need none of this)

    with ElfFile(program) as elf:
        linker = elf.image.interpreter()
    if linker is None:
        return ""
    environment = {"LD_DEBUG": "libs", "LD_LIBRARY_PATH": _QUESTION, "LD_PRELOAD": _NO_LIBRARY}
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


def _read(answer: str) -> LinkerCustoms:
    """Read where it looked first for the library that nobody has."""
    paths: dict[str, list[str]] = {}
    for directories, why in _ANSWER.findall(answer):
        paths.setdefault(why, directories.split(":"))
    asked = paths.get("LD_LIBRARY_PATH", [])
    if _NOWHERE not in asked:
        return _UNKNOWN
    below = asked[: asked.index(_NOWHERE)]
    subdirectories = tuple(dict.fromkeys(path.removeprefix(f"{_NOWHERE}/") for path in below))
    return LinkerCustoms(
        subdirectories,
        _word(asked, "lib"),
        _word(asked, "platform"),
        _without(subdirectories, paths.get("system search path", [])),
    )


def _word(asked: Sequence[str], name: str) -> str:
    start = f"{_NOWHERE}/{name}=/"
    found = [path.removeprefix(start) for path in asked if path.startswith(start)]
    return min(found, key=len, default="")  # those with a subdirectory are longer


def _without(subdirectories: Sequence[str], directories: Sequence[str]) -> tuple[str, ...]:
    """Return the directories that were named, and not those that the linker adds."""
    ends = tuple(f"/{name}" for name in subdirectories)
    return tuple(path for path in directories if not path.endswith(ends))
