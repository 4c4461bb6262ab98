"""Open files of a plugin, as fsspec and its users expect them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fsspec.spec import AbstractBufferedFile  # type: ignore[import-untyped]

from modular_tf.filesystem.readahead import FIRST_BLOCK, read_ahead
from modular_tf.filesystem.streams import DEFAULT_BUFFER, FileReader, StreamWriter
from modular_tf.filesystem.uri import is_of_this_machine

if TYPE_CHECKING:
    import io

    from modular_tf.filesystem.files import RandomAccessFile, WritableFile
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.fsspec.filesystem import ModularFileSystem

DEFAULT_BLOCK_SIZE = 4 * 2**20
"""Bytes fetched at once when the caller reads in small steps; larger reads bypass the buffer."""


class ModularReader(FileReader):
    """A buffered reader; the plugin writes straight into the caller's memory on large reads.

    Files of a network are read ahead (`modular_tf.filesystem.readahead`). [creating thread] `path`
    has no protocol; `size` is the length in bytes when the file was opened.
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
        self._requested_block_size = block_size
        ahead = read_ahead(fs.filesystem, file, block_size or FIRST_BLOCK, size)
        buffer = self.blocksize if is_of_this_machine(fs.scheme) else DEFAULT_BUFFER
        super().__init__(ahead, size, max(1, min(buffer, size)))

    @property
    def full_name(self) -> str:
        """The path with its protocol."""
        return str(self.fs.unstrip_protocol(self.path))

    @property
    def details(self) -> dict[str, Any]:
        """The entry of the file now, by `fs.info`."""
        return self.fs.info(self.path)

    def info(self) -> dict[str, Any]:
        """Return the entry of the file now, by `fs.info`."""
        return self.details

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        # Not __reduce__: since Python 3.12 io's classes refuse to be pickled in this method.
        return _reopen, (self.fs, self.path, self._requested_block_size, self.tell())


def _reopen(
    fs: ModularFileSystem, path: str, block_size: int | None, position: int
) -> io.BufferedReader:
    file: io.BufferedReader = fs.open(path, "rb", block_size=block_size)
    file.seek(position)
    return file


class CachedReader(AbstractBufferedFile):  # type: ignore[misc]  # fsspec is untyped
    """A reader behind one of fsspec's own caches, for callers that request one by name."""

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


class ModularWriter(StreamWriter):
    """A buffered writer with the attributes that fsspec's users expect. [creating thread]

    As with other filesystems of fsspec, `flush` stores nothing in a store: libraries flush a file
    before they discard it. `path` has no protocol; `blocksize` bytes are buffered at most.
    """

    stores_at_flush = False

    def __init__(
        self,
        fs: ModularFileSystem,
        path: str,
        filesystem: Filesystem,
        file: WritableFile,
        *,
        position: int,
        mode: str,
        block_size: int,
    ) -> None:
        self.fs = fs
        self.path = path
        self.blocksize = block_size
        super().__init__(filesystem, file, position, mode, block_size)

    @property
    def full_name(self) -> str:
        """The path with its protocol."""
        return str(self.fs.unstrip_protocol(self.path))

    def close(self) -> None:
        """Append the rest and close the plugin's file; closing twice is harmless."""
        try:
            super().close()
        finally:
            self.fs.forget_listing(self.path)
