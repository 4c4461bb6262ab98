"""File objects of a C plugin. Calls run without the GIL; data moves without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.errors import ClosedError, InvalidArgumentError, ResourceExhaustedError
from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion, WritableFile
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.status import take_error

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

_COUNT = ffi.typeof("int64_t *")
_new = ffi.new
_read = lib.mtf_reader_read
_close_writer = lib.mtf_writer_close

# CPython shares the empty and the one-byte strings, so those must not be written to.
_SMALLEST_PRIVATE_BYTES = 2


class PluginRandomAccessFile(RandomAccessFile):
    """`TF_RandomAccessFile`. [any thread]"""

    __slots__ = ("_filesystem", "_owner", "_reader")

    def __init__(self, filesystem: PluginFilesystem, uri: str, reader: Any, owner: object) -> None:
        self.uri = uri
        self._filesystem = filesystem
        # The collector may release it; the native side orders file before filesystem.
        self._reader: Any = reader
        self._owner = owner

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        # A fresh bytes object nobody else has seen yet is filled in place: the kernel writes each
        # page once, where a bytearray would be zeroed first and copied after.
        count = _new(_COUNT)
        try:
            buffer = bytes(max(n, _SMALLEST_PRIVATE_BYTES))
            error = _read(self._open_reader(), offset, buffer, n, count)
        except OverflowError:
            raise self._impossible(offset, n) from None
        except MemoryError:
            raise self._too_much(n) from None
        if error:
            raise self._failed(error, "read")
        read = count[0]
        return buffer if read == len(buffer) else buffer[:read]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        with _bytes_of(buffer, writable=True) as target:
            count = _new(_COUNT)
            try:
                error = _read(self._open_reader(), offset, target, len(target), count)
            except OverflowError:
                raise self._impossible(offset, len(target)) from None
        if error:
            raise self._failed(error, "read")
        return int(count[0])

    def close(self) -> None:
        """Release it; a read that is under way in another thread ends first."""
        reader = self._reader
        if reader is not None:
            error = lib.mtf_reader_close(reader)
            self._reader = None
            if error:
                raise self._failed(error, "cleanup")

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._reader is None

    def _open_reader(self) -> Any:
        if self._reader is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._reader

    def _impossible(self, offset: int, n: int) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"read {self.uri!r}: no file has {n} bytes at {offset}", path=self.uri, operation="read"
        )

    def _too_much(self, n: int) -> ResourceExhaustedError:
        return ResourceExhaustedError(
            f"read {self.uri!r}: no memory for {n} bytes", path=self.uri, operation="read"
        )

    def _failed(self, error: Any, operation: str) -> ModularTFError:
        return _failed(self._filesystem, error, self.uri, operation)


class PluginWritableFile(WritableFile):
    """`TF_WritableFile`. One thread at a time; a second one waits."""

    __slots__ = ("_close_results", "_filesystem", "_owner", "_writer")

    def __init__(self, filesystem: PluginFilesystem, uri: str, writer: Any, owner: object) -> None:
        self.uri = uri
        self._filesystem = filesystem
        self._writer: Any = writer
        self._owner = owner
        self._close_results: list[Any] = []

    def append(self, data: Buffer) -> None:
        """Add all of `data` at the end."""
        with _bytes_of(data, writable=False) as source:
            self._check(lib.mtf_writer_append(self._open_writer(), source, len(source)), "append")

    def appended(self) -> int | None:
        """Return how many bytes the plugin has taken so far; None when it is closed."""
        writer = self._writer
        return None if writer is None else int(lib.mtf_writer_appended(writer))

    def tell(self) -> int:
        """Return the position at which the next byte will be written."""
        position = _new(_COUNT)
        self._check(lib.mtf_writer_tell(self._open_writer(), position), "tell")
        return int(position[0])

    def flush(self) -> None:
        """Call the plugin's flush; nothing where it has none."""
        self._check(lib.mtf_writer_flush(self._open_writer()), "flush")

    def sync(self) -> None:
        """Call the plugin's sync, its flush where it has none."""
        self._check(lib.mtf_writer_sync(self._open_writer()), "sync")

    def close(self) -> None:
        """Close, then clean up whatever close said.

        Raises:
            ModularTFError: The plugin could not keep the data; the file is gone all the same.
        """
        writer = self._writer
        if writer is not None:
            results = self._close_results
            results.extend(map(_close_writer, (writer,)))  # one step: no interrupt loses the result
            self._writer = None
            while results:  # that of an interrupted close comes first
                self._check(results.pop(0), "close")

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._writer is None

    def _open_writer(self) -> Any:
        if self._writer is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._writer

    def _check(self, error: Any, operation: str) -> None:
        if error:
            raise _failed(self._filesystem, error, self.uri, operation)


class PluginReadOnlyMemoryRegion(ReadOnlyMemoryRegion):
    """`TF_ReadOnlyMemoryRegion`. The memory lives until the last view of it is gone."""

    __slots__ = ("_data", "_length", "_region")

    def __init__(self, uri: str, region: Any, data: Any, length: int) -> None:
        self.uri = uri
        self._region: Any = region
        self._data = data
        self._length = length

    def view(self) -> memoryview:
        """Return the bytes, read-only."""
        if self._region is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        if self._length == 0:
            return memoryview(b"")
        region = self._region
        # The pointer that the buffer holds keeps the region: it is released after the last view.
        pointer = ffi.gc(self._data, lambda _pointer, _region=region: None)
        return memoryview(ffi.buffer(pointer, self._length)).toreadonly()

    def __len__(self) -> int:
        return self._length

    def close(self) -> None:
        """Release the region; its memory goes with the last view."""
        self._region = None


def _failed(filesystem: PluginFilesystem, error: Any, uri: str, operation: str) -> ModularTFError:
    return take_error(error, plugin=filesystem.plugin, path=uri, operation=operation)


def _bytes_of(data: Buffer, *, writable: bool) -> Any:
    """Return the memory of a buffer; it stays with the caller."""
    try:
        return ffi.from_buffer("char[]", data, writable)
    except TypeError:
        kind = "buffer that can be written to" if writable else "buffer of bytes"
        raise TypeError(f"expected a {kind}, found {data!r:.80}") from None
