"""Which files are mapped by `binding`: for the life of the process, once for all services."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.file_identity import FileIdentity

if TYPE_CHECKING:
    from modular_tf.native.library import Library, MappedObject


class Newcomers(NamedTuple):
    """What came into the process with a plugin, beside it and its companions.

    It came while the plugin was mapped, or while its init functions ran.

    Attributes:
        stub: By which path the stub was mapped, before all that came.
        objects: What came: what they need, what their code opened, and what other threads did
            meanwhile.
        wanted: For plugin and companions, by their paths, the names of what is mapped with each.
        alone: Whether there was no other thread.
    """

    stub: str
    objects: tuple[MappedObject, ...]
    wanted: dict[str, tuple[str, ...]]
    alone: bool


class Bound(NamedTuple):
    """A mapped file.

    Attributes:
        library: The library.
        mapped_as: By which path it, or a copy of it, was mapped.
        sha256: Of its bytes when it was checked, where that is known.
        newcomers: What came into the process with it.
    """

    library: Library
    mapped_as: str
    sha256: str | None
    newcomers: Newcomers


bound: dict[tuple[int, ...] | tuple[str, ...], Bound] = {}
"""Mapped files by `file_key`, and copies by the hashes of what was copied."""


by_init: dict[str, list[Newcomers]] = {}
"""What came each time that init functions ran, by stubs: a later service judges it again."""

refused: set[MappedObject] = set()
"""Newcomers that must not be used: they stay mapped, and the next plugin may need them too."""

own_paths: set[str] = set()
"""By which paths `binding` had libraries mapped, and what it made itself."""


def newcomers_with(library: Library) -> Newcomers:
    """Return what came into the process with a library that `binding` mapped."""
    found = list(bound.values())  # at once: other threads add to it
    return next(one.newcomers for one in found if one.library.handle == library.handle)


def is_alone() -> bool:
    """Tell whether this process has no other thread. [any thread]

    Raises:
        OSError: Nobody can tell now.
    """
    return len(os.listdir("/proc/self/task")) == 1


def is_bound(path: str) -> bool:
    """Tell whether this very file was mapped before; a replaced one was not. [any thread]"""
    try:
        return bool(bound) and file_key(FileIdentity.of(os.stat(path))) in bound
    except OSError:
        return False


def file_key(identity: FileIdentity) -> tuple[int, int, int, int]:
    """Return what stays the same when only owner or mode of a file change."""
    return identity.device, identity.inode, identity.size, identity.mtime_ns
