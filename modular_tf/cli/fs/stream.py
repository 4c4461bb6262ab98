"""Bytes from one place to another, through one buffer of fixed size."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError, ModularTFError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.cli.fs.place import Place
    from modular_tf.filesystem.files import RandomAccessFile, WritableFile

CHUNK = 4 * 2**20
"""Bytes in memory at a time; large enough that a store's round trips do not dominate."""


def chunks(file: RandomAccessFile) -> Iterator[memoryview]:
    """Give the contents piece by piece; each piece is gone when the next is asked for."""
    view = memoryview(bytearray(CHUNK))
    offset = 0
    while n_read := file.readinto(offset, view):
        yield view[:n_read]
        offset += n_read


def copy_bytes(source: Place, target: Place, advance: Callable[[int], None]) -> int:
    """Copy a file between any two filesystems and return its size in bytes.

    A target that could not be completed is removed: half a file under its final name is worse
    than none.

    Args:
        source: A file.
        target: Where it goes; overwritten if it is there.
        advance: Told the number of bytes of each piece that has arrived.
    """
    with source.filesystem.new_random_access_file(source.uri) as reader:
        writer = target.filesystem.new_writable_file(target.uri)
        try:
            n_bytes = _pump(reader, writer, advance)
            writer.close()
        except BaseException:
            _abandon(target, writer)
            raise
    return n_bytes


def _pump(reader: RandomAccessFile, writer: WritableFile, advance: Callable[[int], None]) -> int:
    n_bytes = 0
    for chunk in chunks(reader):
        writer.append(chunk)
        n_bytes += len(chunk)
        advance(len(chunk))
    return n_bytes


def _abandon(target: Place, writer: WritableFile) -> None:
    """Undo a write as far as possible; the error that led here is the one that counts."""
    with suppress(ModularTFError):
        writer.close()
    with suppress(ModularTFError):
        target.filesystem.delete_file(target.uri)


def refuse_overlap(source: Place, target: Place) -> None:
    """Refuse to copy a file onto itself, or a directory into itself.

    Raises:
        FailedPreconditionError: It would destroy the source, or never end.
    """
    if source.is_same(target):
        raise FailedPreconditionError(f"{target.uri} is the same file", path=source.uri)
    if source.holds(target) and source.is_directory():
        raise FailedPreconditionError(f"{target.uri} lies within it", path=source.uri)
