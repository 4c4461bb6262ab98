"""Where the system keeps libraries: the linker's cache and its default directories."""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from struct import Struct, error
from typing import TYPE_CHECKING

from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LINKER_CACHE", "expand", "is_of_system", "is_relative"]

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
