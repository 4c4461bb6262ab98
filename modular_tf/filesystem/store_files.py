"""Files of stores and of clients: read by ranges, in pieces, or held in memory."""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from functools import cache, partial
from typing import TYPE_CHECKING

from modular_tf.concurrency.crew import Crew
from modular_tf.errors import ClosedError, DataLossError, InvalidArgumentError
from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion
from modular_tf.filesystem.plugin_filesystem import bring_pages, fresh_bytes, prefer_huge_pages
from modular_tf.filesystem.python_errors import translated_errors

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.files import FileStatistics

_LONG_READ = 1 << 20
_BYTES_AT_ONCE = 1 << 26  # in pieces that are read at once, which are few or small
_FEWEST_AT_ONCE, _MOST_AT_ONCE = 4, 16


class ClientMemoryRegion(ReadOnlyMemoryRegion):
    """A whole file, read once."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes, uri: str) -> None:
        self.uri = uri
        self._data: bytes | None = data

    def view(self) -> memoryview:
        """Return the bytes, read-only; they live as long as the view."""
        return memoryview(self._open_data())

    def __len__(self) -> int:
        return len(self._open_data())

    def close(self) -> None:
        """Release the memory as soon as no view is left."""
        self._data = None

    def _open_data(self) -> bytes:
        if self._data is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._data


class RangeReader(RandomAccessFile):
    """A file of known length that is read by ranges. [any thread]

    `fetch` returns the bytes from an offset up to another one, which is within the file.
    """

    __slots__ = ("_fetch", "_size")

    def __init__(self, uri: str, size: int, fetch: Callable[[int, int], Buffer]) -> None:
        self.uri = uri
        self._size = size
        self._fetch: Callable[[int, int], Buffer] | None = fetch

    def known_length(self) -> int:
        """Return the length in bytes that the client gave when it was opened."""
        return self._size

    def read(self, offset: int, n: int) -> bytes:
        return bytes(self._fetched(offset, n))

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; the client hands out copies, so this costs one."""
        with memoryview(buffer) as whole, whole.cast("B") as view:
            data = memoryview(self._fetched(offset, view.nbytes)).cast("B")
            view[: data.nbytes] = data
        return data.nbytes

    def _fetched(self, offset: int, n: int) -> Buffer:
        fetch = self._fetch
        if fetch is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        # A store asked for a range past the end answers with an error of its own.
        wanted = min(n, self._size - offset)
        if wanted <= 0:
            return b""
        with translated_errors("read", self.uri):
            data = fetch(offset, offset + wanted)
        if (found := memoryview(data).nbytes) != wanted:
            text = f"expected {wanted} bytes at {offset}, found {found}; open it again"
            raise DataLossError.of("read", self.uri, text)
        return data

    def close(self) -> None:
        """Reject further reads, and release the client's file."""
        self._fetch = None


class WholeFile(RangeReader):
    """A short file that was read whole when it was opened. [any thread]"""

    __slots__ = ()
    holds_bytes = True

    def __init__(self, uri: str, data: bytes) -> None:
        whole = memoryview(data)
        super().__init__(uri, len(data), lambda start, end: whole[start:end])

    def read(self, offset: int, n: int) -> bytes:
        if offset < 0 or n < 0:
            message = f"read {self.uri!r}: no file has {n} bytes at {offset}"
            raise InvalidArgumentError(message, path=self.uri, operation="read")
        return super().read(offset, n)


class PiecewiseReader(RandomAccessFile):
    """Splits reads into pieces, several at once where the file's length is known. [any thread]

    Nothing past a known end is requested. A piece has at most `most` bytes, None for any number;
    each of several at once has `at_once` bytes, by default as many. `tail` are the last bytes of
    the file, if known; `found` are its statistics, from its opening if it `is_found_now`.
    """

    __slots__ = ("_at_once", "_file", "_length", "_most", "_tail", "found", "is_found_now")

    def __init__(
        self,
        file: RandomAccessFile,
        most: int | None,
        at_once: int | None = None,
        *,
        length: int | None = None,
        tail: bytes = b"",
    ) -> None:
        self.uri = file.uri
        self._file = file
        self._length = file.known_length() if length is None else length
        self._tail = tail
        self._most = most
        self._at_once = at_once or most
        self.found: FileStatistics | None = None
        self.is_found_now = False

    def blocks_at_once(self, block: int) -> int:
        """Return how many blocks are to be read at once to make as many requests as a whole read.

        At least two, so that one is read while another is used.
        """
        piece = self._at_once
        return max(2, _most_at_once(piece) * piece // block) if piece is not None else 2

    def known_length(self) -> int | None:
        return self._length

    def _bounded(self, offset: int, n: int) -> tuple[int | None, int]:
        """Return the size of pieces, and how many of `n` bytes lie before a known end.

        Where the end is unknown, a request past it would be wasted, so pieces are read in turn.
        """
        if self._length is None:
            return self._most, n
        return self._at_once, min(n, max(0, self._length - offset))

    def _held(self, offset: int, n: int) -> bytes | None:
        """Return bytes of the tail; None for a read that begins before it."""
        if not self._tail or self._length is None or n < 0:
            return None
        at = offset - self._length + len(self._tail)
        return self._tail[at : at + n] if at >= 0 else None

    def read(self, offset: int, n: int) -> bytes:
        piece, n = self._bounded(offset, n)
        if (held := self._held(offset, n)) is not None:
            return held
        if self._at_once is not None and n >= _LONG_READ:
            _keep_freed_memory(self._at_once)
        if piece is None or n <= piece:
            return self._file.read(offset, n)
        data, target = fresh_bytes(n)
        count = self._read_pieces(offset, target, piece, partial(bring_pages, target))
        return data if count == n else data[:count]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        target = memoryview(buffer).cast("B")
        piece, n = self._bounded(offset, len(target))
        target = target[:n]
        if (held := self._held(offset, n)) is not None:
            target[:] = held
            return n
        if piece is None or n <= piece:
            if self._at_once is not None and n >= _LONG_READ:
                _keep_freed_memory(self._at_once)
            return self._file.readinto(offset, target)
        if self._length is not None:
            if threading.current_thread() is threading.main_thread():
                # After an interrupt, threads may still write: not into memory of the caller.
                data = self.read(offset, n)
                target[: len(data)] = data
                return len(data)
            _keep_freed_memory(piece)
            prefer_huge_pages(target)
        return self._read_pieces(offset, target, piece)

    def _read_pieces(
        self,
        offset: int,
        target: memoryview,
        piece: int,
        meanwhile: Callable[[], object] | None = None,
    ) -> int:
        """Read pieces into fresh memory, or without `meanwhile` into the caller's."""

        def read_piece(start: int) -> int:
            return self._file.readinto(offset + start, target[start : start + piece])

        number = 1
        if self._length is not None:
            number = min(_most_at_once(piece), -(-len(target) // piece))
        crew = Crew(number)
        done = 0
        # A loop that is left stops the crew.
        pieces = range(0, len(target), piece)
        try:
            with closing(crew.run(read_piece, pieces, meanwhile=meanwhile)) as outcomes:
                for outcome in outcomes:
                    count = outcome.get()
                    done += count
                    if count < min(piece, len(target) - outcome.item):
                        break
        finally:
            if meanwhile is None:
                crew.wait()  # afterwards no thread writes to the caller's memory
        return done

    def close(self) -> None:
        self._file.close()


def _most_at_once(piece: int) -> int:
    return max(_FEWEST_AT_ONCE, min(_MOST_AT_ONCE, _BYTES_AT_ONCE // piece))


@cache
def _keep_freed_memory(piece: int) -> None:
    """Have malloc keep what a plugin frees after a piece, for the next one.

    It gives back to the kernel what is more than twice the largest block that was mapped by itself
    and freed; to get it again page by page costs more than the network.
    """
    with suppress(MemoryError):
        bytes(2 * piece)


def region_of(uri: str, data: bytes) -> ReadOnlyMemoryRegion:
    """Return the bytes of a file as a memory region; an empty file is rejected as elsewhere."""
    if not data:
        operation = "new_read_only_memory_region_from_file"
        raise InvalidArgumentError.of(operation, uri, "the file is empty")
    return ClientMemoryRegion(data, uri)
