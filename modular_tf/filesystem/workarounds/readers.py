"""Readers for plugins with known defects: each class is one workaround around another reader."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import (
    ClosedError,
    InvalidArgumentError,
    ModularTFError,
    ResourceExhaustedError,
)
from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion
from modular_tf.filesystem.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]

_MAX_UNKNOWN_LENGTH = 1 << 32


class _OverflowError(Exception):
    """A server sent more bytes than were requested."""


class PiecewiseReader(RandomAccessFile):
    """Splits reads into pieces that the plugin can handle [any thread]

    Args:
        file: The plugin's file.
        most: The largest piece in bytes.
    """

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


class BoundedReader(RandomAccessFile):
    """Reads nothing at or behind the end of the file [any thread]

    Args:
        file: The plugin's file.
        length: Returns the file's length in bytes; called before the first read.
    """

    __slots__ = ("_ask_length", "_file", "_length")

    def __init__(self, file: RandomAccessFile, length: Callable[[], int]) -> None:
        self.uri = file.uri
        self._file = file
        self._ask_length = length
        self._length: int | None = None

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        if self._length is None:
            self._length = self._ask_length()
        return self._file.readinto(offset, buffer) if offset < self._length else 0

    def close(self) -> None:
        """Close the plugin's file."""
        self._file.close()


class BlockReader(RandomAccessFile):
    """Reads large blocks from a server that may ignore HTTP ranges [any thread]

    The first block is read when the file is opened, which detects a missing file. A short block is
    the whole file. After a full block, one byte is requested from inside the file, once per host:
    a server that sends the whole file instead makes the plugin fail, and its files are then read
    in one piece.

    Args:
        file: The plugin's file.
        first: Bytes of the first block.
        block: Bytes of each later block; a larger read is passed on unchanged.
        checked_call: Runs a call of the plugin, and translates its errors.
        size: Returns the file's length in bytes, 0 where the server does not report it.
        is_overflow: Returns whether an error means that the server sent more than was requested.
        honours_ranges: What is known about hosts, shared by all files of a filesystem.
    """

    __slots__ = (
        "_at",
        "_block",
        "_checked_call",
        "_file",
        "_held",
        "_honours",
        "_is_overflow",
        "_is_whole",
        "_lock",
        "_size",
    )  # fmt: skip

    def __init__(
        self,
        file: RandomAccessFile,
        *,
        first: int,
        block: int,
        checked_call: Callable[[Callable[[], Any]], Any],
        size: Callable[[], int],
        is_overflow: Callable[[ModularTFError], bool],
        honours_ranges: dict[str, bool],
    ) -> None:
        self.uri = file.uri
        self._file = file
        self._block = block
        self._checked_call = checked_call
        self._size = size
        self._is_overflow = is_overflow
        self._honours = honours_ranges
        self._lock = ForkLock()
        self._held: bytes | None = b""
        self._at = 0
        self._is_whole = False
        try:
            self._hold(0, self._plain_read(0, first))
            self._is_whole = len(self._held) < first
        except _OverflowError:
            self._hold_all(more_than=first)

    def _plain_read(self, offset: int, n: int) -> bytes:
        try:
            data: bytes = self._checked_call(lambda: self._file.read(offset, n))
        except ModularTFError as error:
            raise (_OverflowError() if self._is_overflow(error) else error) from error
        return data

    def _hold(self, offset: int, data: bytes) -> None:
        self._held, self._at = data, offset

    def _hold_all(self, more_than: int) -> None:
        """Read and keep the whole file, which is known to have more than some bytes."""
        told = self._size()
        data = self._plain_read(0, told) if told > more_than else self._grown_read(more_than)
        self._hold(0, data)
        self._is_whole = True

    def _grown_read(self, n: int) -> bytes:
        """Return the whole file by doubling the read, for a server that reports no length."""
        while (n := 2 * n) <= _MAX_UNKNOWN_LENGTH:
            with suppress(_OverflowError):
                data = self._plain_read(0, n)
                if len(data) < n:
                    return data
        raise ResourceExhaustedError(
            f"read {self.uri!r}: the server neither honours ranges nor reports the file's length,"
            f" which is {_MAX_UNKNOWN_LENGTH} bytes at least",
            path=self.uri,
            operation="read",
        )

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        target = memoryview(buffer).cast("B")
        done = 0
        while done < len(target):
            count = self._read_some(offset + done, target[done:])
            if not count:
                break
            done += count
        return done

    def _read_some(self, offset: int, target: memoryview) -> int:
        with self._lock:
            held = self._held_from(offset)
            if not held and not self._is_whole:
                if not self._is_range_honoured():
                    self._hold_all(more_than=1)
                elif len(target) < self._block:
                    self._hold(offset, self._plain_read(offset, self._block))
                else:
                    return int(self._checked_call(lambda: self._file.readinto(offset, target)))
                held = self._held_from(offset)
        piece = held[: len(target)]
        target[: len(piece)] = piece
        return len(piece)

    def _held_from(self, offset: int) -> memoryview:
        """Return the cached bytes from `offset` on."""
        if self._held is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        begin = offset - self._at
        return memoryview(self._held)[begin:] if begin >= 0 else memoryview(b"")

    def _is_range_honoured(self) -> bool:
        """Return whether the host honours ranges; read one byte of the file to find out."""
        host = parse_uri(self.uri).host
        if host not in self._honours:
            try:
                self._honours[host] = len(self._plain_read(1, 1)) == 1
            except _OverflowError:
                self._honours[host] = False
        return self._honours[host]

    def close(self) -> None:
        """Close the plugin's file."""
        self._held = None
        self._file.close()


def empty_region(uri: str) -> InvalidArgumentError:
    """Return the error for a memory region of an empty file."""
    message = f"new_read_only_memory_region_from_file {uri!r}: the file is empty"
    return InvalidArgumentError(message, path=uri)


class MemoryRegion(ReadOnlyMemoryRegion):
    """A memory region with a copy of a file's bytes.

    Args:
        uri: The file's URI.
        data: Its bytes.

    Raises:
        InvalidArgumentError: The file is empty.
    """

    __slots__ = ("_data",)

    def __init__(self, uri: str, data: bytes) -> None:
        if not data:
            raise empty_region(uri)
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
        """Release the bytes."""
        self._data = None
