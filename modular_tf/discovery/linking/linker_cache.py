"""The dynamic linker's cache of library names and paths."""

from __future__ import annotations

import os
from struct import Struct, error
from typing import TYPE_CHECKING

from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LINKER_CACHE", "read_linker_cache"]

LINKER_CACHE = "/etc/ld.so.cache"
_OLD_MAGIC = b"ld.so-1.7.0\0"
_OLD_ENTRY_BYTES = 12
_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_NEW_HEADER = Struct("=20sIIB3xI12x")
_NEW_ENTRY = Struct("=iIIIQ")


def read_linker_cache(path: str = LINKER_CACHE) -> Mapping[str, tuple[str, ...]]:
    """Return the paths for each library name, best first; empty where there is no cache.

    A name may have paths for several machines; who uses one looks at the library itself. A
    damaged cache counts as none, as it does for the linker.

    Raises:
        ShortageError: This process has too few descriptors or too little memory now.
    """
    try:
        with open(path, "rb") as stream:
            return _parse(stream.read())
    except (OSError, error, ValueError) as failure:
        raise_shortage(failure)
        return {}


def _parse(data: bytes) -> Mapping[str, tuple[str, ...]]:
    start = _start_of_new_format(data)
    magic, count, _, _, _ = _NEW_HEADER.unpack_from(data, start)
    if magic != _NEW_MAGIC:
        return {}
    entries = data[start + _NEW_HEADER.size :][: count * _NEW_ENTRY.size]
    found: dict[str, tuple[str, ...]] = {}
    for _, name_at, path_at, _, _ in _NEW_ENTRY.iter_unpack(entries):
        name = _string(data, start + name_at)
        found[name] = (*found.get(name, ()), _string(data, start + path_at))
    return found


def _start_of_new_format(data: bytes) -> int:
    """Return the start of the new format; an old cache may precede it for old programs."""
    if not data.startswith(_OLD_MAGIC):
        return 0
    head = len(_OLD_MAGIC) + 4
    (count,) = Struct("=I").unpack_from(data, head - 4)
    end: int = head + count * _OLD_ENTRY_BYTES
    return (end + 7) & ~7


def _string(data: bytes, at: int) -> str:
    return os.fsdecode(data[at : data.index(b"\0", at)])
