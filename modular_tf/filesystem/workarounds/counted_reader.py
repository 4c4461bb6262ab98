"""A reader for a plugin that counts the bytes of a read before it makes the read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.errors import AbortedError
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.plugin_files import fresh_bytes

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]


class CountedReader(RandomAccessFile):
    """Finds out where a read returned more bytes than came, or the beginning of a longer file.

    The plugin asks for the length, then for the bytes, and returns the number that the length
    promised. Where the file changes in between, the end of the memory is left as it was, or the
    bytes are cut off. So the last byte is given a value before: if it has that value afterwards,
    and where a read ends at the end of the file, the length is asked for again. [any thread]

    Args:
        file: The plugin's file.
        length: Returns the file's length in bytes now.
    """

    __slots__ = ("_file", "_length")

    def __init__(self, file: RandomAccessFile, length: Callable[[], int]) -> None:
        self.uri = file.uri
        self._file = file
        self._length = length

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends.

        Raises:
            AbortedError: The file changed meanwhile.
        """
        try:
            data, target = fresh_bytes(max(n, 2))
        except (MemoryError, OverflowError):
            return self._file.read(offset, n)  # which raises an error that says so
        if n <= 0:
            return self._file.read(offset, n)
        count = self.readinto(offset, target[:n])
        return data if count == len(data) else data[:count]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read.

        Raises:
            AbortedError: The file changed meanwhile.
        """
        target = memoryview(buffer).cast("B")
        untouched = os.urandom(1)
        target[-1:] = untouched[: len(target)]
        count = self._file.readinto(offset, target)
        is_end = 0 < count < len(target)
        if is_end or (count and target[-1:] == untouched):
            end, length = offset + count, self._length()
            if length < end or (is_end and length != end):
                raise AbortedError(
                    f"read {self.uri!r}: it changed while it was read; try again",
                    path=self.uri,
                    operation="read",
                )
        return count

    def close(self) -> None:
        """Close the plugin's file."""
        self._file.close()
