"""File objects of a C plugin. Calls run without the GIL; data moves without a copy."""

from __future__ import annotations

import re
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.threads import TimedWork
from modular_tf.errors import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
)
from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion, WritableFile
from modular_tf.filesystem.uri import is_of_this_machine
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.interruptible import Release, opened
from modular_tf.native.status import take_error
from modular_tf.native.strings import decode, encode

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.loading.filesystem_tables import FilesystemTables

_COUNT = ffi.typeof("int64_t *")
_FILE_READ = ffi.typeof("mtf_file_read *")
_READER = ffi.typeof("mtf_reader **")
_RELEASE_READER = Release("mtf_reader_release")
_new = ffi.new
_open_reader = lib.mtf_reader_open
_read = lib.mtf_reader_read
_read_small_file = lib.mtf_read_small_file
_close_writer = lib.mtf_writer_close

# CPython shares the empty and the one-byte strings, so those must not be written to.
_SMALLEST_PRIVATE_BYTES = 2
_HUGE_PAGES_FROM = 1 << 22
_BROUGHT_AT_ONCE = 1 << 22  # bytes of pages, after which an interrupt is seen
_MOST_BROUGHT = 1 << 26  # which takes less time than a store to answer

# As the C library says EACCES and EPERM.
_REFUSED = re.compile("permission denied|operation not permitted", re.IGNORECASE)


def fresh_bytes(n: int) -> tuple[bytes, memoryview]:
    """Return a bytes object of `n` zeros, at least two, and a view to fill it before it is seen.

    No page of it is touched before it is written to, and nothing is copied afterwards.
    """
    data = _zeros(n)
    return data, memoryview(ffi.buffer(ffi.from_buffer("char[]", data)))


def _zeros(n: int) -> bytes:
    """Return bytes that nobody else has."""
    data = bytes(max(n, _SMALLEST_PRIVATE_BYTES))
    if n >= _HUGE_PAGES_FROM:
        lib.mtf_prefer_huge_pages(data, n)
    return data


def prefer_huge_pages(target: memoryview) -> None:
    """Have the kernel bring many pages at a time where much is about to be written."""
    if len(target) >= _HUGE_PAGES_FROM:
        lib.mtf_prefer_huge_pages(ffi.from_buffer("char[]", target), len(target))


def bring_pages(target: memoryview) -> None:
    """Have the kernel bring pages of fresh memory while nothing has come that is to fill it."""
    memory = ffi.from_buffer("char[]", target)
    for start in range(0, min(len(target), _MOST_BROUGHT), _BROUGHT_AT_ONCE):
        size = min(_BROUGHT_AT_ONCE, len(target) - start)
        if not lib.mtf_bring_pages(memory + start, size):
            break


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
        # A fresh bytes object nobody else has seen yet is filled in place: the kernel writes each
        # page once, where a bytearray would be zeroed first and copied after.
        count = _new(_COUNT)
        try:
            buffer = _zeros(n)
            error = _read(self._reader or self.native_reader, offset, buffer, n, count)
        except (OverflowError, MemoryError) as problem:
            raise self._impossible(problem, offset, n) from None
        if error:
            raise failed(self._filesystem, error, self.uri, "read")
        read = count[0]
        return buffer if read == len(buffer) else buffer[:read]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        with _bytes_of(buffer, writable=True) as target:
            count, n = _new(_COUNT), len(target)
            try:
                error = _read(self._reader or self.native_reader, offset, target, n, count)
            except OverflowError as problem:
                raise self._impossible(problem, offset, n) from None
        if error:
            raise failed(self._filesystem, error, self.uri, "read")
        return int(count[0])

    def close(self) -> None:
        """Release it; a read that is under way in another thread ends first."""
        reader = self._reader
        if reader is not None:
            error = lib.mtf_reader_close(reader)
            self._reader = None
            if error:
                raise failed(self._filesystem, error, self.uri, "cleanup")

    @property
    def native_reader(self) -> Any:
        """The native reader, which lives as long as this object.

        Raises:
            ClosedError: The file is closed.
        """
        if self._reader is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._reader

    @property
    def closed(self) -> bool:
        return self._reader is None

    def _impossible(self, problem: Exception, offset: int, n: int) -> ModularTFError:
        if isinstance(problem, MemoryError):
            return ResourceExhaustedError.of("read", self.uri, f"no memory for {n} bytes")
        return InvalidArgumentError.of("read", self.uri, f"no file has {n} bytes at {offset}")


def open_reader(filesystem: PluginFilesystem, handle: Any, uri: str) -> PluginRandomAccessFile:
    """Return an existing file of a filesystem, whose native part is `handle`, for reading."""
    place = _new(_READER)
    error, reader, owner = opened(_RELEASE_READER, place, _open_reader, handle, encode(uri), place)
    if error:
        raise failed(filesystem, error, uri, "new_random_access_file")
    return PluginRandomAccessFile(filesystem, uri, reader, owner)


def read_first(
    filesystem: PluginFilesystem, handle: Any, uri: str, size: int
) -> tuple[bytes, PluginRandomAccessFile | None]:
    """Return up to `size` bytes, 2 or more, from the start of a file; one native call.

    With them comes the open file, or None where it ended before: then it is closed.
    """
    first, done, place = bytes(size), _new(_FILE_READ), _new(_READER)
    error, reader, owner = opened(
        _RELEASE_READER, place,
        _read_small_file, handle, encode(uri), first, size, done, place,
    )  # fmt: skip
    if error:
        raise failed(filesystem, error, uri, decode(ffi.string(done.operation)))
    if reader is None:
        return first[: done.count], None
    return first, PluginRandomAccessFile(filesystem, uri, reader, owner)


class PluginWritableFile(WritableFile):
    """`TF_WritableFile`. One thread at a time; a second one waits."""

    __slots__ = (
        "_close_results",
        "_closing",
        "_filesystem",
        "_owner",
        "_writer",
        "is_torn",
    )

    def __init__(self, filesystem: PluginFilesystem, uri: str, writer: Any, owner: object) -> None:
        self.uri = uri
        self.is_torn = False
        self._filesystem = filesystem
        self._writer: Any = writer
        self._owner = owner
        self._close_results: list[Any] = []
        self._closing: TimedWork | None = None

    @property
    def is_stored_by_close(self) -> bool:  # type: ignore[override]
        return self._filesystem.is_object_store

    def append(self, data: Buffer) -> None:
        """Add all of `data` at the end.

        A store keeps nothing of a file that nobody closes where this failed or was interrupted.
        """
        try:
            with _bytes_of(data, writable=False) as source:
                writer, is_in_store = self._open_writer(), self.is_stored_by_close
                error = lib.mtf_writer_append(writer, source, len(source), is_in_store)
                self._check(error, "append")
        except TypeError:  # these are no bytes, so none are missing
            raise
        except BaseException:
            self._tear()
            raise

    def _tear(self) -> None:
        """Have the end of a file in a store discard it, unless a signal handler was refused it."""
        writer = self._writer
        if writer is None or not self.is_stored_by_close or lib.mtf_writer_is_interrupted(writer):
            return
        self.is_torn = True
        lib.mtf_writer_tear(writer)

    def appended(self) -> int | None:
        writer = self._writer
        return None if writer is None else int(lib.mtf_writer_appended(writer))

    def tell(self) -> int:
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
        """Close the plugin's file, then clean it up also after an error.

        A plugin may upload the file here. In the main thread an interrupt leaves that to go on in
        another thread: a second call waits for it and raises its errors, as the end of the process
        does.

        Raises:
            FailedPreconditionError: A signal handler called this in the middle of a call of the
                file on its own thread; the file stays open.
            ModularTFError: The plugin could not keep the data; the file is gone all the same.
        """
        writer = self._writer
        if writer is not None:
            self.require_uninterrupted("close")
            results = self._close_results
            is_main = threading.current_thread() is threading.main_thread()
            if is_main and not is_of_this_machine(self._filesystem.scheme):
                # It may wait long for a store. An interrupt leaves that to go on on a thread.
                self._closing = self._closing or TimedWork()
                store_aside(self._closing, partial(self._store, writer), self.uri)
            # One step: no interrupt loses the result. What a thread has done already is done.
            results.extend(map(_close_writer, (writer,)))
            self._writer = None
            while results:  # that of an interrupted close comes first
                self._check(results.pop(0), "close")

    def require_uninterrupted(self, operation: str) -> None:
        """Refuse to a signal handler what would wait for the call that it interrupted."""
        if self._writer is not None and lib.mtf_writer_is_interrupted(self._writer):
            raise FailedPreconditionError.of(
                operation,
                self.uri,
                "the file is in use by a call of this thread, which a"
                " signal handler has interrupted; use it when the handler has returned",
                plugin=self._filesystem.plugin,
            )

    def _store(self, writer: Any) -> None:
        """Close on a thread; this method holds the file, whose end would wait for the close."""
        self._close_results.extend(map(_close_writer, (writer,)))

    def discard(self) -> None:
        """Clean up without the plugin's close, which would keep what was written."""
        writer = self._writer
        if writer is not None:
            self.require_uninterrupted("discard")
            error = lib.mtf_writer_discard(writer)
            self._writer = None
            self._check(error, "discard")

    @property
    def closed(self) -> bool:
        return self._writer is None

    def _open_writer(self) -> Any:
        if self._writer is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._writer

    def _check(self, error: Any, operation: str) -> None:
        if error:
            raise failed(self._filesystem, error, self.uri, operation)


def store_aside(aside: TimedWork, store: Callable[[], object], uri: str) -> None:
    """Store a file on a thread, which goes on where the caller is interrupted.

    A second call waits for the thread. Where none can be had, nothing is done.
    """
    try:
        aside.run(store, "modular_tf-store", None)
    except BaseException as interrupt:
        if hasattr(interrupt, "add_note"):  # from Python 3.11 on
            interrupt.add_note(
                f"{uri!r} is still being stored, by a thread that the end of the process"
                " waits for; another close() waits for it as well"
            )
        raise


class PluginReadOnlyMemoryRegion(ReadOnlyMemoryRegion):
    """`TF_ReadOnlyMemoryRegion`. The memory lives until the last view of it is gone."""

    __slots__ = ("_data", "_length", "_region")

    def __init__(self, uri: str, region: Any, data: Any, length: int) -> None:
        self.uri = uri
        self._region: Any = region
        self._data = data
        self._length = length

    def view(self) -> memoryview:
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


def failed(
    filesystem: PluginFilesystem, error: Any, uri: str | None, operation: str
) -> ModularTFError:
    """Return the exception for an error of the core, which it frees."""
    failure = take_error(error, plugin=filesystem.plugin, path=uri, operation=operation)
    return with_limits(failure, filesystem.tables)


def with_limits(error: ModularTFError, tables: FilesystemTables) -> ModularTFError:
    """Return an error that names the limits of its worker, where they may be the cause.

    A store refuses by a code of the same kind, in words of its own.
    """
    if tables.place is None:
        return error
    is_denied = error.code is Code.PERMISSION_DENIED and is_of_this_machine(tables.scheme)
    if not is_denied and not _REFUSED.search(error.message):
        return error
    why = tables.place.worker.why_refused()
    if not why or error.rule is not None:
        return error
    return type(error)(
        f"{error.message}; {why}",
        code=error.code,
        plugin=error.plugin,
        path=error.path,
        operation=error.operation,
    )


def _bytes_of(data: Buffer, *, writable: bool) -> Any:
    """Return the memory of a buffer; it stays with the caller."""
    try:
        return ffi.from_buffer("char[]", data, writable)
    except TypeError:
        kind = "buffer that can be written to" if writable else "buffer of bytes"
        raise TypeError(f"expected a {kind}, found {data!r:.80}") from None
