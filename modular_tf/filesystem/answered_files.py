"""Files of plugins with known defects, each class one answer; they stack on the plugin's own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from modular_tf.errors import ClosedError, InternalError
from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion, WritableFile
from modular_tf.filesystem.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]


class PiecewiseReader(RandomAccessFile):
    """Asks for no more bytes at once than the plugin survives. [any thread]"""

    __slots__ = ("_file", "_most")

    def __init__(self, file: RandomAccessFile, most: int) -> None:
        self.uri = file.uri
        self._file = file
        self._most = most

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        target = memoryview(buffer).cast("B")
        done = 0
        while done < len(target):
            piece = target[done : done + self._most]
            count = self._file.readinto(offset + done, piece)
            done += count
            if count < len(piece):
                break
        return done

    def close(self) -> None:
        """Close the plugin's file."""
        self._file.close()


class BlockReader(RandomAccessFile):
    """Fetches large blocks and serves small reads from the last one. [any thread]"""

    __slots__ = ("_block", "_block_at", "_file", "_lock", "_size")

    def __init__(self, file: RandomAccessFile, block_size: int) -> None:
        self.uri = file.uri
        self._file = file
        self._size = block_size
        self._block = b""
        self._block_at = 0
        self._lock = threading.Lock()

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        target = memoryview(buffer).cast("B")
        done = 0
        with self._lock:
            while done < len(target):
                piece = self._held(offset + done) or self._fetch(offset + done)
                if not piece:
                    break
                count = min(len(piece), len(target) - done)
                target[done : done + count] = piece[:count]
                done += count
        return done

    def _held(self, offset: int) -> memoryview:
        """Return what the block has from `offset` on."""
        at = offset - self._block_at
        return memoryview(self._block)[at:] if at >= 0 else memoryview(b"")

    def _fetch(self, offset: int) -> memoryview:
        self._block = self._file.read(offset, self._size)
        self._block_at = offset
        return memoryview(self._block)

    def close(self) -> None:
        """Close the plugin's file."""
        self._block = b""
        self._file.close()


class RangeVerifiedReader(RandomAccessFile):
    """Reads at offsets only from servers that were seen to honour them. [any thread]

    The first read of a host asks for one byte in the middle. A plugin that gets the whole file
    instead cannot put it into that one byte and fails; then files of this host are read whole.

    Args:
        file: The plugin's file.
        size: Returns the file's length in bytes.
        verdicts: Hosts and whether they honour ranges; shared by all files of a filesystem.
    """

    __slots__ = ("_file", "_size", "_verdicts", "_whole")

    def __init__(
        self, file: RandomAccessFile, size: Callable[[str], int], verdicts: dict[str, bool]
    ) -> None:
        self.uri = file.uri
        self._file = file
        self._size = size
        self._verdicts = verdicts
        self._whole: bytes | None = None

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        if self._honours_ranges():
            return self._file.readinto(offset, buffer)
        if self._whole is None:
            self._whole = self._file.read(0, self._size(self.uri))
        target = memoryview(buffer).cast("B")
        piece = self._whole[offset : offset + len(target)]
        target[: len(piece)] = piece
        return len(piece)

    def _honours_ranges(self) -> bool:
        host = parse_uri(self.uri).host
        if host not in self._verdicts:
            if self._size(self.uri) < 2:  # noqa: PLR2004  (no byte that could tell)
                return False
            try:
                self._file.read(1, 1)
            except InternalError:
                self._verdicts[host] = False
            else:
                self._verdicts[host] = True
        return self._verdicts[host]

    def close(self) -> None:
        """Close the plugin's file."""
        self._whole = None
        self._file.close()


class AnsweredWriter(WritableFile):
    """A writer that counts its own position, and touches a file that nothing is written to.

    Args:
        file: The plugin's own file.
        position: Bytes that the file has already; None to ask the plugin for `tell`.
        touch: Append no bytes before closing an untouched file.
    """

    __slots__ = ("_file", "_position", "_touch")

    def __init__(self, file: WritableFile, *, position: int | None, touch: bool) -> None:
        self.uri = file.uri
        self._file = file
        self._position = position
        self._touch = touch

    def append(self, data: Buffer) -> None:
        """Add all of `data` at the end."""
        self._file.append(data)
        self._touch = False
        if self._position is not None:
            self._position += memoryview(data).nbytes

    def tell(self) -> int:
        """Return the position at which the next byte will be written."""
        return self._file.tell() if self._position is None else self._position

    def flush(self) -> None:
        """Call the plugin's flush."""
        self._file.flush()

    def sync(self) -> None:
        """Call the plugin's sync."""
        self._file.sync()

    def close(self) -> None:
        """Close the plugin's file."""
        touch, self._touch = self._touch, False
        try:
            if touch:
                self._file.append(b"")
        finally:
            self._file.close()


class MemoryRegion(ReadOnlyMemoryRegion):
    """A file's bytes, read into memory of the host."""

    __slots__ = ("_data",)

    def __init__(self, uri: str, data: bytes) -> None:
        self.uri = uri
        self._data: bytes | None = data

    def view(self) -> memoryview:
        """Return the bytes, read-only."""
        if self._data is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return memoryview(self._data)

    def __len__(self) -> int:
        return len(self._data or b"")

    def close(self) -> None:
        """Give the bytes up."""
        self._data = None
