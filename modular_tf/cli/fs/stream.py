"""A file's bytes through one buffer of fixed size, and places that must not meet in a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.cli.fs.place import Place
    from modular_tf.filesystem.files import RandomAccessFile

CHUNK = 4 * 2**20
"""Bytes in memory at a time; large enough that a store's round trips do not dominate."""


def chunks(file: RandomAccessFile) -> Iterator[memoryview]:
    """Give the contents piece by piece; each piece is gone when the next is asked for."""
    view = memoryview(bytearray(CHUNK))
    offset = 0
    while n_read := file.readinto(offset, view):
        yield view[:n_read]
        offset += n_read


def refuse_overlap(source: Place, target: Place) -> None:
    """Refuse to copy a file onto itself, or a directory into itself.

    Raises:
        FailedPreconditionError: It would destroy the source, or never end.
    """
    if source.is_same(target):
        raise FailedPreconditionError(f"{target.uri} is the same file", path=source.uri)
    if source.holds(target) and source.is_directory():
        raise FailedPreconditionError(f"{target.uri} lies within it", path=source.uri)
