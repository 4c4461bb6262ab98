"""File objects that the adapters of foreign clients share."""

from __future__ import annotations

import atexit
import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from modular_tf.errors import ClosedError, DataLossError, ModularTFError
from modular_tf.filesystem.files import (
    RandomAccessFile,
    ReadOnlyMemoryRegion,
    WritableFile,
    end,
)
from modular_tf.filesystem.python_errors import translated_errors
from modular_tf.filesystem.workarounds.held_writer import temporary_file

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
                raise DataLossError(
                    f"read {self.uri!r}: expected {wanted} bytes at {offset}, found {data.nbytes};"
                    " open it again",
                    path=self.uri,
                    operation="read",
                )
            view[:wanted] = data
        return wanted

    def close(self) -> None:
        """Reject further reads, and release the client's file."""
        self._fetch = None


class StoreWriter(WritableFile):
    """A file that is collected on this machine's disk, and put into a store whole.

    No store ever has a part of it: it is put by one call of the client when it is closed, and
    before that by `flush` and `sync`, as far as it is then. The space is that of `TMPDIR`.

    Args:
        uri: The URI it was opened as.
        put: Stores the content of a file on disk, given its path and its length in bytes.
        fill: Writes what the file begins with, to append to that; returns how many bytes it has.
    """

    __slots__ = ("__weakref__", "_file", "_length", "_owner", "_put", "_stored", "is_torn")
    is_stored_by_close = True

    def __init__(
        self,
        uri: str,
        put: Callable[[str, int], object],
        fill: Callable[[Callable[[Buffer], None]], int] | None = None,
    ) -> None:
        self.uri = uri
        self.is_torn = False
        self._put = put
        self._owner = os.getpid()
        self._file: Any = temporary_file(uri)
        self._length = 0
        self._stored: int | None = None
        if fill is not None:
            self.is_torn = True  # until all of it is there
            size = fill(self._add)
            if size != self._length:
                raise DataLossError(
                    f"{uri!r}: expected {size} bytes to append to, found {self._length}; try again",
                    path=uri,
                    operation="new_appendable_file",
                )
            self._stored, self.is_torn = self._length, False
        _register_end()
        _writers.add(self)

    def append(self, data: Buffer) -> None:
        """Add all of `data`."""
        self._open_file()
        try:
            with translated_errors("append", self.uri):
                self._add(data)
        except BaseException:
            with suppress(TypeError), memoryview(data):  # else it is no bytes: none are missing
                self.is_torn = True
            raise

    def _add(self, data: Buffer) -> None:
        with memoryview(data) as given, given.cast("B") as view:
            done = 0
            while done < view.nbytes:
                done += self._file.write(view[done:])
            self._length += done

    def tell(self) -> int:
        """Return the position at which the next byte will be written."""
        self._open_file()
        return self._length

    def flush(self) -> None:
        """Put what was written so far into the store, unless it is there."""
        self._store("flush")

    def close(self) -> None:
        """Put the file into the store; a second call does nothing, nor one in a forked child."""
        if self._file is not None and self._owner != os.getpid():
            self.discard()
        elif self._file is not None:
            try:
                self._store("close")
            except ModularTFError:
                self.discard()
                raise
            self.discard()

    def discard(self) -> None:
        """Leave the store as it is."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _store(self, operation: str) -> None:
        file = self._open_file()
        if self.is_torn:
            raise DataLossError(
                f"{operation} {self.uri!r}: it lacks bytes, since an append failed; the store was"
                " left as it is; write the file again",
                path=self.uri,
                operation=operation,
            )
        if self._stored == self._length:
            return
        length = self._length
        with translated_errors(operation, self.uri):
            self._put(f"/proc/self/fd/{file.fileno()}", length)
        self._stored = length

    def _open_file(self) -> Any:
        if self._file is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        if self._owner != os.getpid():  # both would write to one file on disk
            raise ClosedError(f"{self.uri!r} belongs to the parent process", path=self.uri)
        return self._file

    def end_unclosed(self) -> None:
        """End a file that nobody closed: the store gets it, unless it lacks bytes.

        Without a byte nobody may ever have had it: its opening was interrupted.
        """
        if getattr(self, "_file", None) is None:
            return
        if not self._length:
            self.discard()
        with suppress(ModularTFError):
            end(self)

    def __del__(self) -> None:
        self.end_unclosed()


_writers: WeakSet[StoreWriter] = WeakSet()


@cache
def _register_end() -> None:
    """Have unclosed files stored at exit, before the client's library is shut down.

    A library that was imported later than this module registers its shutdown later, which would
    then run first.
    """
    atexit.register(_end_unclosed_writers)


def _end_unclosed_writers() -> None:
    for writer in list(_writers):
        writer.end_unclosed()
