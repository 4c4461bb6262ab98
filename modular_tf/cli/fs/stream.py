"""Reading a file block by block, and a check that a copy does not overlap its source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import DataLossError, FailedPreconditionError
from modular_tf.filesystem.files import known_length
from modular_tf.filesystem.overlap import Overlap, is_link, is_one_name, overlap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.cli.fs.place import Place
    from modular_tf.filesystem.files import RandomAccessFile

CHUNK = 4 * 2**20
"""Bytes in memory at a time; large enough that a store's round trips do not dominate."""


def chunks(file: RandomAccessFile, start: int = 0, end: int | None = None) -> Iterator[memoryview]:
    """Yield the contents block by block; each block is valid until the next one.

    Args:
        file: The file to read.
        start: The position of the first byte.
        end: The position behind the last byte; None for the end of the file.

    Raises:
        DataLossError: The file ended before the length that it told when it was opened.
    """
    whole = known_length(file) if end is None else None
    length = CHUNK if end is None else min(CHUNK, max(0, end - start))
    view = memoryview(bytearray(length))
    offset = start
    while view and (n_read := file.readinto(offset, view)):
        yield view[:n_read]
        offset += n_read
        if end is not None:
            view = view[: end - offset]
    if whole is not None and offset < whole:
        raise DataLossError(
            f"read {file.uri!r}: it ended after {offset} of {whole} bytes; try again",
            path=file.uri,
            operation="read",
        )


def refuse_overlap(source: Place, target: Place, *, is_move: bool = False) -> None:
    """Raise if a file is copied onto itself, or a directory into itself.

    Args:
        source: What is copied or moved.
        target: Where it shall arrive.
        is_move: Of two hard links of one file, the source is removed and the target stays.

    Raises:
        FailedPreconditionError: It would destroy the source, or never end.
    """
    found = overlap(source.pair, target.pair)
    if found is Overlap.SAME and not (is_move and _are_hard_links(source, target)):
        raise FailedPreconditionError(f"{target.uri} is the same file", path=source.uri)
    if found is Overlap.HOLDS and source.is_directory():
        raise FailedPreconditionError(f"{target.uri} lies within it", path=source.uri)


def _are_hard_links(source: Place, target: Place) -> bool:
    """Return whether two names of one file are independent of each other."""
    is_either_link = is_link(*source.pair) or is_link(*target.pair)
    return not (is_either_link or is_one_name(source.pair, target.pair))
