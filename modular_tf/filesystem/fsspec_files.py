"""File objects of an fsspec filesystem with the interface of this package."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import finalize

from modular_tf.errors import ClosedError, DataLossError, ModularTFError
from modular_tf.filesystem.client_files import ClientWriter
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.python_errors import translated_errors

if TYPE_CHECKING:
    from typing_extensions import Buffer

# Servers of these have each part of a file as soon as it is sent, in the place of the old file.
_SENDING_AT_ONCE = {"fsspec.implementations.ftp", "fsspec.implementations.webhdfs"}


def is_of_fsspec(candidate: object, name: str) -> bool:
    """Return whether an object is of a class of `fsspec.spec`, which need not be imported."""
    return any(
        cls.__name__ == name and cls.__module__ == "fsspec.spec" for cls in type(candidate).__mro__
    )


class FsspecRandomAccessFile(RandomAccessFile):
    """A file read by ranges, which fsspec allows any number of threads to do.

    Some HTTP servers tell no size, or answer with the whole file whatever range they are asked for.
    Such a file is read once and kept in memory until it is closed.

    Args:
        fs: fsspec's filesystem.
        path: The path within it.
        uri: The URI it was opened as.
        size: Bytes in the file, None where fsspec does not know.
    """

    __slots__ = ("_closed", "_fs", "_path", "_size", "_whole")

    def __init__(self, fs: Any, path: str, uri: str, size: int | None) -> None:
        self.uri = uri
        self._fs = fs
        self._path = path
        self._size = size
        self._whole: bytes | None = None
        self._closed = False

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        if self._closed:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        if self._size is None:
            self._keep(self._fetch())
        # A store asked for a range behind the end answers with an error of its own.
        end = min(offset + n, self._size or 0)
        if end <= offset:
            return b""
        whole = self._whole
        if whole is None:
            data = self._fetch(start=offset, end=end)
            if len(data) <= end - offset:
                return data
            whole = self._checked_whole(data)
        return whole[offset:end]

    def known_length(self) -> int | None:
        """Return the length in bytes that fsspec told when it was opened; None if it did not."""
        return self._size

    def _fetch(self, **limits: int) -> bytes:
        # For a read from the start fsspec's wrapper of pyarrow opens a stream, which has no tell.
        options = {"seekable": True} if limits and _is_of_pyarrow(self._fs) else {}
        with translated_errors("read", self.uri):
            return bytes(self._fs.cat_file(self._path, **limits, **options))

    def _keep(self, whole: bytes) -> bytes:
        self._whole, self._size = whole, len(whole)
        return whole

    def _checked_whole(self, data: bytes) -> bytes:
        """Keep what a store gave for a range if it is the whole file.

        Raises:
            DataLossError: It is something else.
        """
        if len(data) != self._size:
            raise DataLossError.of(
                "read",
                self.uri,
                f"expected at most the file's {self._size} bytes, found {len(data)}; open it again",
            )
        return self._keep(data)

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; fsspec hands out copies, so this costs one."""
        with memoryview(buffer) as whole, whole.cast("B") as view:
            data = self.read(offset, view.nbytes)
            view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Reject further reads; fsspec itself holds nothing open."""
        self._closed = True
        self._whole = None


def _is_of_pyarrow(fs: Any) -> bool:
    return any(cls.__module__ == "fsspec.implementations.arrow" for cls in type(fs).__mro__)


class FsspecWritableFile(ClientWriter):
    """A file that fsspec opened for writing.

    Most clients of stores derive their files from fsspec's `AbstractBufferedFile`, and store them
    when they are closed, or collected. Of others nobody knows: these are closed where they are
    given up.
    """

    __slots__ = ("__weakref__", "is_stored_by_close", "is_torn")

    def __init__(self, file: Any, uri: str) -> None:
        super().__init__(file, uri)
        self.is_torn = False
        self.is_stored_by_close = _is_stored_by_close(file)

    def append(self, data: Buffer) -> None:
        """Add all of `data`."""
        try:
            file = self._open_file()
            with translated_errors("append", self.uri), memoryview(data) as view:
                # A client may send it after its `write` has returned, and the caller changes or
                # frees it.
                file.write(data if isinstance(data, bytes) else bytes(view))
        except BaseException:
            with suppress(TypeError), memoryview(data):  # else it is no bytes: none are missing
                self._tear()
            raise

    def _tear(self) -> None:
        """Have its end discard the client's file, which its own end would store."""
        file = self._file
        if self.is_stored_by_close and file is not None and not self.is_torn:
            # No `__del__`: the collector may end the client's file before this one.
            finalize(self, _give_up, file, self.uri)
            self.is_torn = True

    def discard(self) -> None:
        """Have its client store nothing, where it would store the file when it is closed."""
        file = self._file
        if not self.is_stored_by_close:
            self.close()
        elif file is not None:
            self._file = None
            _discard(file, self.uri)


def _is_stored_by_close(file: Any) -> bool:
    """Return whether a client sends nothing, or nothing that others see, before its file's end."""
    sends_at_once = {cls.__module__ for cls in type(file).__mro__} & _SENDING_AT_ONCE
    return is_of_fsspec(file, "AbstractBufferedFile") and not sends_at_once


def _discard(file: Any, uri: str) -> None:
    """Have a client store nothing of a file that is open."""
    if file.closed:
        return
    try:
        # Before it has begun to send there is nothing to discard, and some would remove the old
        # file.
        if getattr(file, "offset", None) is not None:
            with translated_errors("discard", uri):
                file.discard()
    finally:
        file.closed = True  # else its end would store it


def _give_up(file: Any, uri: str) -> None:
    """Discard a file that nobody closed, whose error is raised already."""
    with suppress(ModularTFError):
        _discard(file, uri)
