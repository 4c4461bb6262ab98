"""Sequential reads of a random-access file, by bytes or by lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import InvalidArgumentError, OutOfRangeError
from modular_tf.filesystem.whole_reads import SHORT_FILE, read_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.files import RandomAccessFile

# A seek is often followed by one short read, a scan by many: blocks start small and double.
FIRST_BLOCK = 16 << 10
LARGEST_BLOCK = 512 << 10


class ReadBuffer:
    """A position in a file with a buffer of the last block. One thread at a time.

    A read moves the position last: one that failed or was interrupted can be tried again, and no
    byte is lost. The position may be set to where it was before.

    Args:
        file: The open file; closed by `close`.
        size: Tells the length of the file now, in bytes.
        first: What its first block was, where that was read already.

    Attributes:
        position: Where the next read begins; it may lie outside of the block.
    """

    __slots__ = ("_data", "_file", "_next_size", "_size", "_start", "position")

    def __init__(self, file: RandomAccessFile, size: Callable[[], int], first: bytes = b"") -> None:
        self._file = file
        self._size = size
        self._next_size = 2 * FIRST_BLOCK if first else FIRST_BLOCK
        self._data = first
        self._start = 0
        self.position = 0

    def close(self) -> None:
        """Close the underlying file."""
        self._file.close()

    def forget(self) -> None:
        """Discard the buffer: the file may have changed."""
        self._data = b""
        self._start = self.position

    def read(self, n: int) -> bytes:
        """Return the next `n` bytes, fewer only at the end of the file.

        Raises:
            InvalidArgumentError: `n` is negative.
        """
        if n < 0:
            raise InvalidArgumentError(f"read: the number of bytes is negative: {n}")
        begin = self.position - self._start
        data = self._data[begin : begin + n] if begin >= 0 else b""
        if len(data) < n:
            data += self._read_behind_the_block(self.position + len(data), n - len(data))
        self.position += len(data)
        return data

    def _read_behind_the_block(self, offset: int, n: int) -> bytes:
        if n >= LARGEST_BLOCK:
            return self._file.read(offset, n)
        self._fill(offset, n)
        return self._data[:n]

    def _fill(self, offset: int, at_least: int = 1) -> None:
        self._data = self._file.read(offset, max(self._next_size, at_least))
        self._start = offset
        self._next_size = min(2 * self._next_size, LARGEST_BLOCK)

    def read_rest(self) -> bytes:
        """Return everything from here to the end of the file.

        A short rest costs no question for the size of the file.
        """
        begin = self.position
        try:
            rest = self.read(SHORT_FILE)
            if len(rest) == SHORT_FILE:
                rest = read_on(self._file, begin, rest, self._size)
            end = begin + len(rest)
        except BaseException:
            self.position = begin
            raise
        self.position = end
        return rest

    def readline(self) -> bytes:
        r"""Return what stands before and including the next `\n`, or the rest of the file."""
        begin = self.position - self._start
        if begin < 0:
            return self._readline_behind_the_block(b"")
        end = self._data.find(b"\n", begin) + 1
        if end:
            self.position = self._start + end
            return self._data[begin:end]
        return self._readline_behind_the_block(self._data[begin:])

    def _readline_behind_the_block(self, line: bytes) -> bytes:
        pieces = [line]
        offset = self.position + len(line)
        while not pieces[-1].endswith(b"\n"):
            self._fill(offset)
            end = self._data.find(b"\n") + 1 or len(self._data)
            if not end:
                break
            pieces.append(self._data[:end])
            offset += end
        line = b"".join(pieces)
        self.position = offset
        return line

    def seek(self, position: int) -> None:
        """Set the position, in bytes from the start.

        Raises:
            InvalidArgumentError: It lies before the start.
            OutOfRangeError: It lies past the end; the position is then the end.
        """
        if position < 0:
            raise InvalidArgumentError(f"seek: position {position} lies before the start")
        if position and not self._start <= position <= self._start + len(self._data):
            self._next_size = FIRST_BLOCK
            self._fill(position - 1)  # holds a byte only if the file is that long
            if not self._data:
                self._stop_at_the_end(position)
        self.position = position

    def _stop_at_the_end(self, wanted: int) -> None:
        self.position = self._size()
        self.forget()
        if wanted > self.position:
            raise OutOfRangeError(
                f"seek: position {wanted} lies past the end, which is {self.position}"
            )
