"""Readers of plugins with known defects, each class one answer; they stack on the plugin's own."""

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

_LARGEST_UNTOLD = 1 << 32


class _OverflowError(Exception):
    """A server sent more than was asked for."""


class PiecewiseReader(RandomAccessFile):
    """Asks for no more bytes at once than the plugin survives [any thread].

    Args:
        file: The plugin's file.
        most: That many bytes.
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
    """Asks for nothing at the end or behind it [any thread].

    Args:
        file: The plugin's file.
        length: Returns the file's length in bytes; asked before the first read.
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
    """Fetches large blocks from a server that may not honour ranges [any thread].

    The first block is fetched at once, which finds a missing file. If it is short, it is the whole
    file. If it is full, one more byte is asked for, from the middle, and once per host: a server
    that sends the whole file instead makes the plugin fail, and its files are then read whole.

    Args:
        file: The plugin's file.
        first: Bytes of the first block.
        block: Bytes of each later one; a larger read is handed on as it is.
        surround: Runs a call of the plugin, and explains its errors.
        size: Returns the file's length in bytes, 0 where the server does not tell it.
        is_overflow: Tells whether an error means that the server sent more than was asked for.
        honours_ranges: Verdicts on hosts, shared by all files of a filesystem.
    """

    __slots__ = ("_at", "_block", "_file", "_held", "_honours", "_is_overflow", "_is_whole",
                 "_lock", "_size", "_surround")  # fmt: skip

    def __init__(
        self,
        file: RandomAccessFile,
        *,
        first: int,
        block: int,
        surround: Callable[[Callable[[], Any]], Any],
        size: Callable[[], int],
        is_overflow: Callable[[ModularTFError], bool],
        honours_ranges: dict[str, bool],
    ) -> None:
        self.uri = file.uri
        self._file = file
        self._block = block
        self._surround = surround
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
            data: bytes = self._surround(lambda: self._file.read(offset, n))
        except ModularTFError as error:
            raise (_OverflowError() if self._is_overflow(error) else error) from error
        return data

    def _hold(self, offset: int, data: bytes) -> None:
        self._held, self._at = data, offset

    def _hold_all(self, more_than: int) -> None:
        """Hold the whole file, of which it is known that it has more than some bytes."""
        told = self._size()
        data = self._plain_read(0, told) if told > more_than else self._grown_read(more_than)
        self._hold(0, data)
        self._is_whole = True

    def _grown_read(self, n: int) -> bytes:
        """Ask for twice as much until it is enough: the server tells no length."""
        while (n := 2 * n) <= _LARGEST_UNTOLD:
            with suppress(_OverflowError):
                data = self._plain_read(0, n)
                if len(data) < n:
                    return data
        raise ResourceExhaustedError(
            f"read {self.uri!r}: the server neither honours ranges nor tells the file's length,"
            f" which is {_LARGEST_UNTOLD} bytes at least",
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
                    return int(self._surround(lambda: self._file.readinto(offset, target)))
                held = self._held_from(offset)
        piece = held[: len(target)]
        target[: len(piece)] = piece
        return len(piece)

    def _held_from(self, offset: int) -> memoryview:
        """Return what is held of the bytes from `offset` on."""
        if self._held is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        begin = offset - self._at
        return memoryview(self._held)[begin:] if begin >= 0 else memoryview(b"")

    def _is_range_honoured(self) -> bool:
        """Ask for the second byte of a file that has more: all of it does not fit into one."""
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
    """Return the error of who wants an empty file as memory."""
    message = f"new_read_only_memory_region_from_file {uri!r}: the file is empty"
    return InvalidArgumentError(message, path=uri)


class MemoryRegion(ReadOnlyMemoryRegion):
    """A file's bytes, read into memory of the host.

    Args:
        uri: What was read.
        data: Its bytes.

    Raises:
        InvalidArgumentError: There are none.
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
        """Give the bytes up."""
        self._data = None
