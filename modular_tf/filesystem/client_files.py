"""File objects that the adapters of foreign clients share."""

from __future__ import annotations

import atexit
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from modular_tf.errors import ClosedError, DataLossError, ModularTFError
from modular_tf.filesystem.files import (
    RandomAccessFile,
    ReadOnlyMemoryRegion,
    WritableFile,
)
from modular_tf.filesystem.held_writer import HeldWriter
from modular_tf.filesystem.python_errors import translated_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer


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

    Args:
        uri: The URI it was opened as.
        size: Bytes in the file.
        fetch: Returns the bytes from an offset up to another one, which is within the file.
    """

    __slots__ = ("_fetch", "_size")

    def __init__(self, uri: str, size: int, fetch: Callable[[int, int], Buffer]) -> None:
        self.uri = uri
        self._size = size
        self._fetch: Callable[[int, int], Buffer] | None = fetch

    def known_length(self) -> int:
        """Return the length in bytes that the client gave when it was opened."""
        return self._size

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; the client hands out copies, so this costs one."""
        fetch = self._fetch
        if fetch is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        with memoryview(buffer) as whole, whole.cast("B") as view:
            # A store asked for a range behind the end answers with an error of its own.
            wanted = min(view.nbytes, self._size - offset)
            if wanted <= 0:
                return 0
            with translated_errors("read", self.uri):
                data = memoryview(fetch(offset, offset + wanted)).cast("B")
            if data.nbytes != wanted:
                raise DataLossError.of(
                    "read",
                    self.uri,
                    f"expected {wanted} bytes at {offset}, found {data.nbytes}; open it again",
                )
            view[:wanted] = data
        return wanted

    def close(self) -> None:
        """Reject further reads, and release the client's file."""
        self._fetch = None


class ClientWriter(WritableFile):
    """A stream of a client into a file that grows while it is written."""

    __slots__ = ("_file",)

    def __init__(self, file: Any, uri: str) -> None:
        self.uri = uri
        self._file: Any = file

    def append(self, data: Buffer) -> None:
        """Add all of `data`."""
        file = self._open_file()
        with translated_errors("append", self.uri):
            file.write(data)

    def tell(self) -> int:
        """Return the position at which the next byte will be written."""
        file = self._open_file()
        with translated_errors("tell", self.uri):
            return int(file.tell())

    def flush(self) -> None:
        """Hand bytes on as far as the client does before a file is closed."""
        file = self._open_file()
        with translated_errors("flush", self.uri):
            file.flush()

    def close(self) -> None:
        """Complete the file; a second call does nothing."""
        if self._file is not None:
            try:
                with translated_errors("close", self.uri):
                    self._file.close()
            except ModularTFError:
                self._file = None
                raise
            self._file = None

    def _open_file(self) -> Any:
        if self._file is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._file


def put_when_closed(
    uri: str,
    put: Callable[[str, int], object],
    fill: Callable[[Callable[[Buffer], None]], int] | None = None,
) -> WritableFile:
    """Return a file that one call of a client puts into a store whole; see `HeldWriter`.

    Args:
        uri: The URI it is opened as.
        put: Stores the content of a file on disk, given its path and its length in bytes.
        fill: Writes what the file begins with, to append to that; returns how many bytes it has.

    Raises:
        DataLossError: Not all came of what the file begins with.
    """
    writer = HeldWriter(
        uri,
        lambda file, length: put(f"/proc/self/fd/{file.fileno()}", length),
        is_torn=fill is not None,
    )
    if fill is not None:
        size = fill(writer.append)
        if size != writer.tell():
            raise DataLossError(
                f"{uri!r}: expected {size} bytes to append to, found {writer.tell()}; try again",
                path=uri,
                operation="new_appendable_file",
            )
        writer.begin_with_held()
    _register_end()
    _writers.add(writer)
    return writer


_writers: WeakSet[HeldWriter] = WeakSet()


@cache
def _register_end() -> None:
    """Have unclosed files stored at exit, before the client's library is shut down.

    A library that was imported later than this module registers its shutdown later, which would
    then run first.
    """
    atexit.register(_end_unclosed_writers)


def _end_unclosed_writers() -> None:
    """Store the files that nobody closed; Python prints the first failure."""
    failures = []
    for writer in list(_writers):
        try:
            writer.end_unclosed()
        except ModularTFError as error:
            failures.append(error)
    if failures:
        raise failures[0]
