"""A file of a plugin opened for reading, as fsspec and its users expect one."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped]

from modular_tf.filesystem.readahead import FIRST_BLOCK, ReadaheadFile
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.filesystem.streams import ReaderStream

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.files import RandomAccessFile
    from modular_tf.fsspec.filesystem import ModularFileSystem

DEFAULT_BLOCK_SIZE = 4 * 2**20
"""Bytes fetched at once when the caller reads in small steps; larger reads bypass the buffer."""

_BUFFER_ABOVE_BLOCKS = 1 << 16  # of reads of a few bytes, where blocks are read ahead below


class ModularReader(io.BufferedReader):
    """A buffered reader; the plugin writes straight into the caller's memory on large reads.

    Files of a network are read ahead in blocks that grow while reads are sequential
    (`modular_tf.filesystem.readahead`). [creating thread], like every file object of Python.

    Attributes:
        fs: The filesystem that opened it.
        path: The path within `fs`, without protocol.
        size: Bytes in the file when it was opened.
        blocksize: Bytes that are fetched at once at first, as the caller said.
    """

    def __init__(
        self,
        fs: ModularFileSystem,
        path: str,
        file: RandomAccessFile,
        size: int,
        block_size: int | None,
    ) -> None:
        self.fs = fs
        self.path = path
        self.size = size
        self.blocksize = block_size or DEFAULT_BLOCK_SIZE
        self._asked_block_size = block_size
        if is_of_this_machine(fs.scheme):
            stream, buffer = ReaderStream(file, lambda: size), self.blocksize
        else:
            times = fs.filesystem.fetch_times
            ahead = ReadaheadFile(file, size, block_size or FIRST_BLOCK, times=times)
            stream, buffer = _BoundedStream(ahead, size), _BUFFER_ABOVE_BLOCKS
        super().__init__(stream, max(1, min(buffer, size)))

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes, all that is left without one."""
        if size is None or size < _BUFFER_ABOVE_BLOCKS or not isinstance(self.raw, _BoundedStream):
            return super().read(size)
        start = self.tell()  # io would read the last part of the piece on its own
        data = self.raw.piece(start, size)
        self.seek(start + len(data))
        return data

    @property
    def full_name(self) -> str:
        """The path with its protocol."""
        return str(self.fs.unstrip_protocol(self.path))

    @property
    def details(self) -> dict[str, Any]:
        """What `fs.info` says about the file now."""
        return self.fs.info(self.path)

    def info(self) -> dict[str, Any]:
        """Return what `fs.info` says about the file now."""
        return self.details

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # Not __reduce__: since Python 3.12 io's classes refuse to be pickled in this method.
        return _reopen, (self.fs, self.path, self._asked_block_size, self.tell())


class _BoundedStream(ReaderStream):
    """A position over a file of known size: no request only finds its end."""

    def __init__(self, file: RandomAccessFile, size: int) -> None:
        super().__init__(file, lambda: size)
        self._end = size

    def readinto(self, buffer: Buffer) -> int:
        """Fill `buffer` from the position, up to the size that the file had when it was opened."""
        left = max(0, self._end - self._position)
        return super().readinto(memoryview(buffer).cast("B")[:left])

    def readall(self) -> bytes:
        """Return all that is left, read in one call."""
        self._check_open()
        data = self.piece(self._position, self._end)
        self._position += len(data)  # last: what fails before can be tried again
        return data

    def piece(self, start: int, n: int) -> bytes:
        """Return up to `n` bytes from `start`, wherever the position is."""
        left = min(n, self._end - start)
        return self._file.read(start, left) if left > 0 else b""


def _reopen(
    fs: ModularFileSystem, path: str, block_size: int | None, position: int
) -> io.BufferedReader:
    file: io.BufferedReader = fs.open(path, "rb", block_size=block_size)
    file.seek(position)
    return file


class CachedReader(AbstractBufferedFile):  # type: ignore[misc]  # fsspec is untyped
    """A reader behind one of fsspec's own caches, for callers that ask for one by name."""

    def __init__(
        self, fs: ModularFileSystem, path: str, file: RandomAccessFile, **kwargs: Any
    ) -> None:
        self._file = file
        super().__init__(fs, path, "rb", **kwargs)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return self._file.read(start, end - start)

    def close(self) -> None:
        """Close the plugin's file too; closing twice is harmless."""
        if not self.closed:
            self._file.close()
        super().close()
