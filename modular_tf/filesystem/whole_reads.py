"""Reads of a file to its end, by as few calls as its length allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import NotFoundError
from modular_tf.filesystem.files import known_length

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.filesystem.files import RandomAccessFile

SHORT_FILE = 64 << 10
"""Bytes: a file that is shorter is read whole without asking for its length."""
_BLOCK = 512 << 10


def read_whole(file: RandomAccessFile, length: Callable[[], int]) -> bytes:
    """Return the bytes of a file that was opened right now.

    Args:
        file: What to read.
        length: Tells its length in bytes; asked for a long file that does not know it.
    """
    known = known_length(file)
    if known is not None:
        return file.read(0, known)
    first = file.read(0, SHORT_FILE)
    return first if len(first) < SHORT_FILE else read_on(file, 0, first, length)


def read_on(file: RandomAccessFile, start: int, first: bytes, length: Callable[[], int]) -> bytes:
    """Return what a file holds from `start` on, where `first` was read and more may follow.

    A long file is read again from `start` in one piece, because joining two pieces would copy it.
    """
    expected = _length_now(length) - start
    if expected > len(first):
        return file.read(start, expected)
    # Some lengths lie, such as that of a file in /proc.
    return first + b"".join(_blocks(file, start + len(first)))


def _length_now(length: Callable[[], int]) -> int:
    """Return the length, 0 for a file that was deleted since it was opened: it still reads."""
    try:
        return length()
    except NotFoundError:
        return 0


def _blocks(file: RandomAccessFile, offset: int) -> Iterator[bytes]:
    while block := file.read(offset, _BLOCK):
        yield block
        offset += len(block)
