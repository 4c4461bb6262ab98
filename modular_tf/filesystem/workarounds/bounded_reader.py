"""Reads that end where the file ended when it was opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.filesystem.files import RandomAccessFile

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]


class BoundedReader(RandomAccessFile):
    """Asks for nothing at or behind the end of the file as it was when it was opened [any thread]

    Args:
        file: The plugin's file.
        length: The file's length in bytes.
        tail: Its last bytes, if they were read when it was opened.
    """

    __slots__ = ("_file", "_length", "_tail")

    def __init__(self, file: RandomAccessFile, length: int, tail: bytes = b"") -> None:
        self.uri = file.uri
        self._file = file
        self._length = length
        self._tail = tail

    def known_length(self) -> int:
        """Return the length that was learned when the file was opened."""
        return self._length

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        n = min(n, max(0, self._length - offset))
        at = self._place_in_tail(offset)
        return self._file.read(offset, n) if at < 0 or n < 0 else self._tail[at : at + n]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        target = memoryview(buffer).cast("B")[: max(0, self._length - offset)]
        at = self._place_in_tail(offset)
        if at < 0:
            return self._file.readinto(offset, target)
        target[:] = self._tail[at : at + len(target)]
        return len(target)

    def _place_in_tail(self, offset: int) -> int:
        """Return where in the tail a read begins; negative before it, and where there is none."""
        return offset - self._length + len(self._tail) if self._tail else -1

    def close(self) -> None:
        """Close the plugin's file."""
        self._file.close()
