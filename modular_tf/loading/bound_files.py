"""Which files are mapped by `binding`: for the life of the process, once for all services."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.file_identity import FileIdentity

if TYPE_CHECKING:
    from modular_tf.native.library import Library


class Bound(NamedTuple):
    """A mapped file.

    Attributes:
        library: The library.
        mapped_as: By which path it, or a copy of it, was mapped.
        sha256: Of its bytes when it was checked, where that is known.
    """

    library: Library
    mapped_as: str
    sha256: str | None


bound: dict[tuple[int, ...] | tuple[str, ...], Bound] = {}
"""Mapped files by `file_key`, and copies by the hashes of what was copied."""


def is_bound(path: str) -> bool:
    """Tell whether this very file was mapped before; a replaced one was not. [any thread]"""
    try:
        return bool(bound) and file_key(FileIdentity.of(os.stat(path))) in bound
    except OSError:
        return False


def file_key(identity: FileIdentity) -> tuple[int, int, int, int]:
    """Return what stays the same when only owner or mode of a file change."""
    return identity.device, identity.inode, identity.size, identity.mtime_ns
