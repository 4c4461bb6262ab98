"""Readers for plugins with known defects: each class is one workaround around another reader."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from modular_tf.concurrency.crew import Crew, results_at_once
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import (
    ClosedError,
    InvalidArgumentError,
    ModularTFError,
    ResourceExhaustedError,
)
from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion
from modular_tf.filesystem.plugin_files import bring_pages, fresh_bytes, prefer_huge_pages
from modular_tf.filesystem.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]

_Answer = TypeVar("_Answer")
_MAX_UNKNOWN_LENGTH = 1 << 32
_LONG_READ = 1 << 20
_BYTES_AT_ONCE = 1 << 26  # in pieces that are read at once, which are few or small
_FEWEST_AT_ONCE, _MOST_AT_ONCE = 4, 16


class _OverflowError(Exception):
    """A server sent more bytes than were requested."""


class PiecewiseReader(RandomAccessFile):
    """Splits reads into pieces, and reads several at once where the file's length is known.

    [any thread]

    Args:
        file: The plugin's file.
        most: The largest piece in bytes.
        at_once: Bytes of each piece where several are read at once; by default as many.
    """

    __slots__ = ("_at_once", "_file", "_most")

    def __init__(self, file: RandomAccessFile, most: int, at_once: int | None = None) -> None:
        self.uri = file.uri
        self._file = file
        self._most = most
        self._at_once = at_once or most

    def known_length(self) -> int | None:
        """Return the length that was learned when the file was opened."""
        return self._file.known_length()

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        length = self.known_length()
        if length is not None:
            n = max(0, min(n, length - offset))
        if n >= _LONG_READ:
            _keep_freed_memory(self._at_once)
        # Where the end is unknown, a request behind it would be made for nothing.
        piece = self._most if length is None else self._at_once
        if n <= piece:
            return self._file.read(offset, n)
        data, target = fresh_bytes(n)
        crew = Crew(1 if length is None else _number_at_once(n, piece))
        count = self._read_pieces(offset, target, piece, crew, partial(bring_pages, target))
        return data if count == n else data[:count]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        target = memoryview(buffer).cast("B")
        length = self.known_length()
        if length is None or len(target) <= self._at_once:
            return self._read_pieces(offset, target, self._most, Crew(1))
        if threading.current_thread() is threading.main_thread():
            # After an interrupt, threads may still write: not into memory of the caller.
            data = self.read(offset, len(target))
            target[: len(data)] = data
            return len(data)
        return self._fill(target[: max(0, length - offset)], offset)

    def _fill(self, target: memoryview, offset: int) -> int:
        """Read into memory of the caller's, which no thread touches any more afterwards."""
        piece = self._at_once
        _keep_freed_memory(piece)
        prefer_huge_pages(target)
        crew = Crew(_number_at_once(len(target), piece))
        try:
            return self._read_pieces(offset, target, piece, crew)
        finally:
            crew.wait()

    def _read_pieces(
        self,
        offset: int,
        target: memoryview,
        piece: int,
        crew: Crew,
        meanwhile: Callable[[], object] | None = None,
    ) -> int:
        def read_piece(start: int) -> int:
            return self._file.readinto(offset + start, target[start : start + piece])

        done = 0
        # A loop that is left stops the crew.
        pieces = range(0, len(target), piece)
        with closing(crew.run(read_piece, pieces, meanwhile=meanwhile)) as outcomes:
            for outcome in outcomes:
                count = outcome.get()
                done += count
                if count < min(piece, len(target) - outcome.item):
                    break
        return done

    def close(self) -> None:
        """Close the plugin's file."""
        self._file.close()


def _number_at_once(n: int, piece: int) -> int:
    """Return how many of the pieces of `n` bytes are read at once."""
    most = max(_FEWEST_AT_ONCE, min(_MOST_AT_ONCE, _BYTES_AT_ONCE // piece))
    return min(most, -(-n // piece))


@cache
def _keep_freed_memory(piece: int) -> None:
    """Have malloc keep what a plugin frees after a piece, which the next one needs again.

    What is free at the end of a heap goes back to the kernel where it is more than twice the
    largest block that was mapped by itself and freed, and it costs more than the network to get it
    again page by page. No page of the block that is made here is touched.
    """
    with suppress(MemoryError):
        bytes(2 * piece)


def read_and_ask(
    file: RandomAccessFile, length: int, piece: int, ask: Callable[[], _Answer]
) -> tuple[bytes | None, _Answer]:
    """Read a file in pieces, several at once, and ask about it once all of them have come.

    A piece may be served late, after a change that an earlier answer would not tell of.

    Args:
        file: The plugin's file.
        length: Its length in bytes.
        piece: Bytes of each piece.
        ask: What to ask.

    Returns:
        The bytes, None if there were fewer; and the answer.
    """
    data, target = fresh_bytes(length)

    def read_piece(start: int) -> int:
        return file.readinto(start, target[start : start + piece])

    _keep_freed_memory(piece)
    pieces, at_once = range(0, length, piece), _number_at_once(length, piece)
    counts = results_at_once(read_piece, pieces, at_once, partial(bring_pages, target))
    return data if sum(counts) == length else None, ask()


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
        "_end",
        "_file",
        "_held",
        "_honours",
        "_is_overflow",
        "_lock",
        "_size",
    )  # fmt: skip
    holds_bytes = True

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
        self._end: int | None = None  # of the file, once a read came to it
        try:
            self._hold(0, self._plain_read(0, first))
        except _OverflowError:
            self._hold_all(more_than=first)

    def known_length(self) -> int | None:
        """Return the length of the file, None until a read has come to its end."""
        return self._end

    def _plain_read(self, offset: int, n: int) -> bytes:
        try:
            data: bytes = self._checked_call(lambda: self._file.read(offset, n))
        except ModularTFError as error:
            raise (_OverflowError() if self._is_overflow(error) else error) from error
        self._note_end(offset, n, len(data))
        return data

    def _note_end(self, offset: int, n: int, count: int) -> None:
        if 0 < count < n or (count == 0 and offset == 0):
            self._end = offset + count

    def _hold(self, offset: int, data: bytes) -> None:
        self._held, self._at = data, offset

    def _hold_all(self, more_than: int) -> None:
        """Read and keep the whole file, which is known to have more than some bytes."""
        told = self._size()
        data = self._plain_read(0, told) if told > more_than else self._grown_read(more_than)
        self._hold(0, data)
        self._end = len(data)

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
            if not held and (self._end is None or offset < self._end):
                if not self._is_range_honoured():
                    self._hold_all(more_than=1)
                elif len(target) < self._block:
                    self._hold(offset, self._plain_read(offset, self._block))
                else:
                    count = int(self._checked_call(lambda: self._file.readinto(offset, target)))
                    self._note_end(offset, len(target), count)
                    return count
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
