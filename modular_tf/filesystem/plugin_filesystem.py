"""The filesystem of a C plugin, and its files: each method is one call on the protected tables.

Calls run without the GIL; data moves without a copy.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import LastingWork
from modular_tf.errors import (
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    ModularTFError,
    ResourceExhaustedError,
    collected,
)
from modular_tf.filesystem.configuration import Option, OptionsForC, Transaction, option_from_c
from modular_tf.filesystem.files import (
    SHORT_FILE,
    DeletedCounts,
    FileStatistics,
    RandomAccessFile,
    ReadOnlyMemoryRegion,
    WritableFile,
    read_on,
)
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.location import clean_names
from modular_tf.filesystem.streams import OpenWriters
from modular_tf.filesystem.uri import is_of_this_machine
from modular_tf.native._dlpack import stat_path
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.interruptible import Release, address_of, opened
from modular_tf.native.plugin_names import named
from modular_tf.native.status import check, failure_unless, take_error
from modular_tf.native.strings import decode, decode_pointer, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from typing_extensions import Buffer

    from modular_tf.filesystem.streams import StreamWriter, TextWriter
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
_path_exists = lib.mtf_path_exists
_STAT_PATH = address_of(ffi.addressof(lib, "mtf_stat_path"))
_WRITER = ffi.typeof("mtf_writer **")
_RELEASE_FILESYSTEM = Release("mtf_filesystem_release")
_RELEASE_WRITER = Release("mtf_writer_release")
_RELEASE_REGION = Release("mtf_region_release")
_NOT_FOUND, _UNIMPLEMENTED = int(Code.NOT_FOUND), int(Code.UNIMPLEMENTED)

# The time that threads which Python did not start (pyarrow's, which read our files) have at exit to
# get the error and release their files: up to 3.13 Python aborts the process if it ends meanwhile.
_GRACE_AT_EXIT_S = 0.05


def fresh_bytes(n: int) -> tuple[bytes, memoryview]:
    """Return a bytes object of `n` zeros, at least two, and a view to fill it before it is seen.

    No page of it is touched before it is written to, and nothing is copied afterwards.
    """
    data = _zeros(n)
    return data, memoryview(ffi.buffer(ffi.from_buffer("char[]", data)))


def _zeros(n: int) -> bytes:
    """Return bytes that no other code has a reference to."""
    data = bytes(max(n, _SMALLEST_PRIVATE_BYTES))
    if n >= _HUGE_PAGES_FROM:
        lib.mtf_prefer_huge_pages(data, n)
    return data


def prefer_huge_pages(target: memoryview) -> None:
    """Have the kernel bring many pages at a time where much is about to be written."""
    if len(target) >= _HUGE_PAGES_FROM:
        lib.mtf_prefer_huge_pages(ffi.from_buffer("char[]", target), len(target))


def bring_pages(target: memoryview) -> None:
    """Have the kernel bring pages of fresh memory, before the data that is to fill it arrives."""
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
        """The native reader, which lives as long as this object; `ClosedError` if it is closed."""
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
        self._closing: LastingWork | None = None

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
        """Make the finalizer discard a file in a store, unless a signal handler was refused it."""
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
        self._check(lib.mtf_writer_flush(self._open_writer()), "flush")

    def sync(self) -> None:
        """Call the plugin's sync, its flush where it has none."""
        self._check(lib.mtf_writer_sync(self._open_writer()), "sync")

    def close(self) -> None:
        """Close the plugin's file, then clean it up also after an error.

        In the main thread an interrupt leaves an upload to go on in another thread: a second call
        waits for it and raises its errors. `FailedPreconditionError` if a signal handler calls this
        in the middle of another call of the file, which stays open.
        """
        writer = self._writer
        if writer is not None:
            self.require_uninterrupted("close")
            results = self._close_results
            is_main = threading.current_thread() is threading.main_thread()
            if is_main and not is_of_this_machine(self._filesystem.scheme):
                # It may wait long for a store. An interrupt leaves that to go on on a thread.
                self._closing = self._closing or LastingWork()
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
        """Close on a thread, which references the file: its finalizer would wait for the close."""
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


def store_aside(aside: LastingWork, store: Callable[[], object], uri: str) -> None:
    """Store a file on a thread, which goes on where the caller is interrupted.

    A second call waits for the thread. Where none can be had, nothing is done.
    """
    try:
        aside.run(store, "modular_tf-store")
    except Exception:
        raise
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
    try:
        return ffi.from_buffer("char[]", data, writable)
    except TypeError:
        kind = "buffer that can be written to" if writable else "buffer of bytes"
        raise TypeError(f"expected a {kind}, found {data!r:.80}") from None


class PluginFilesystem(Filesystem):
    """One scheme of a loaded plugin. [any thread]

    Construction calls the plugin's `init`. With `share_init`, what that made is shared with all
    other filesystems of these functions that are open in the process; the last to close runs
    `cleanup`.
    """

    writer_type = PluginWritableFile

    def __init__(self, tables: FilesystemTables, plugin: str, *, share_init: bool = False) -> None:
        super().__init__(tables.scheme, plugin)
        self.tables = tables
        self._setting = ForkLock()  # the stored value is the one that the plugin got last
        self._writers = OpenWriters()
        self._failures: list[ModularTFError] = []  # of a close that was interrupted, as are these
        self._close_results: list[Any] = []
        place = _new("mtf_filesystem **")
        make, where = lib.mtf_filesystem_new, list[Any]()
        if tables.place is not None:
            looks = int(is_of_this_machine(tables.scheme))
            where = [tables.place.worker.handle, tables.place.number, looks]
            make = lib.mtf_filesystem_new_in_worker
        elif share_init:
            make = lib.mtf_filesystem_new_shared
        arguments = tables.protected.pointer, named(plugin), *where, place
        error, made, owner = opened(_RELEASE_FILESYSTEM, place, make, *arguments)
        check(error, plugin=plugin, operation="init")
        self._handle: Any = made
        self._address = address_of(made)
        self._owner = owner
        self._is_joined = tables.place is not None
        if tables.place is not None:
            tables.place.worker.join()

    @property
    def handle(self) -> Any:
        """The core's `mtf_filesystem`, as long as this object lives."""
        return self._handle

    def _check(self, error: Any, operation: str, path: str | None = None) -> None:
        if error:
            raise failed(self, error, path, operation)

    def _is_code(self, code: int, error: Any, operation: str, path: str | None = None) -> bool:
        """Return whether a call failed with `code`, which is an answer; raise any other failure."""
        if not error:
            return False
        failure = failure_unless(error, code, plugin=self.plugin, path=path, operation=operation)
        if failure is not None:
            raise with_limits(failure, self.tables)
        return True

    def _is_implemented(self, error: Any, operation: str, path: str | None = None) -> bool:
        """Return whether the plugin has an operation that was called; raise any other failure."""
        return not self._is_code(_UNIMPLEMENTED, error, operation, path)

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        place = _new(_READER)
        error, reader, owner = opened(
            _RELEASE_READER, place, _open_reader, self._handle, encode(uri), place
        )
        if error:
            raise failed(self, error, uri, "new_random_access_file")
        return PluginRandomAccessFile(self, uri, reader, owner)

    def read_file(self, uri: str) -> bytes:
        first, file = read_first(self, self._handle, uri, SHORT_FILE)
        if file is None:
            return first
        with file:
            return read_on(file, 0, first, lambda: self.get_file_size(uri))

    def read_first(self, uri: str, n: int) -> tuple[bytes, RandomAccessFile | None]:
        if n >= SHORT_FILE or not is_of_this_machine(self.scheme):
            return super().read_first(uri, n)
        first, file = read_first(self, self._handle, uri, n + 1 if n else 2)
        return first[:n], file

    def new_writable_file(self, uri: str) -> WritableFile:
        return self._open_writer(uri, 0, "new_writable_file")

    def new_appendable_file(self, uri: str) -> WritableFile:
        return self._open_writer(uri, 1, "new_appendable_file")

    def _open_writer(self, uri: str, append: int, operation: str) -> WritableFile:
        place = _new(_WRITER)
        error, writer, owner = opened(
            _RELEASE_WRITER, place,
            lib.mtf_writer_open, self._handle, encode(uri), append, place,
        )  # fmt: skip
        if error:
            raise failed(self, error, uri, operation)
        return self.writer_type(self, uri, writer, owner)

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        place, data, length = _new("mtf_region **"), _new("char const **"), _new("uint64_t *")
        error, _, region = opened(
            _RELEASE_REGION, place,
            lib.mtf_region_open, self._handle, encode(uri), place, data, length,
        )  # fmt: skip
        if error:
            raise failed(self, error, uri, "new_read_only_memory_region_from_file")
        return PluginReadOnlyMemoryRegion(uri, region, data[0], int(length[0]))

    # -- directories and files ----------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        self._check(lib.mtf_create_dir(self._handle, encode(uri)), "create_dir", uri)

    def recursively_create_dir(self, uri: str) -> None:
        error = lib.mtf_recursively_create_dir(self._handle, encode(uri))
        if not self._is_implemented(error, "recursively_create_dir", uri):
            super().recursively_create_dir(uri)

    def delete_file(self, uri: str) -> None:
        self._check(lib.mtf_delete_file(self._handle, encode(uri)), "delete_file", uri)

    def delete_dir(self, uri: str) -> None:
        self._check(lib.mtf_delete_dir(self._handle, encode(uri)), "delete_dir", uri)

    def delete_recursively(self, uri: str) -> DeletedCounts:
        files, dirs = _new("uint64_t *"), _new("uint64_t *")
        error = lib.mtf_delete_recursively(self._handle, encode(uri), files, dirs)
        try:
            is_implemented = self._is_implemented(error, "delete_recursively", uri)
        except ModularTFError as failure:
            failure.undeleted = DeletedCounts(int(files[0]), int(dirs[0]))
            raise
        if not is_implemented:
            return super().delete_recursively(uri)
        return DeletedCounts(int(files[0]), int(dirs[0]))

    def rename_file(self, source: str, target: str) -> None:
        error = lib.mtf_rename_file(self._handle, encode(source), encode(target))
        if not self._is_implemented(error, "rename_file", source):
            super().rename_file(source, target)

    def copy_file(self, source: str, target: str) -> None:
        error = lib.mtf_copy_file(self._handle, encode(source), encode(target))
        if not self._is_implemented(error, "copy_file", source):
            super().copy_file(source, target)

    def does_itself(self, operation: str) -> bool:
        return super().does_itself(operation) and self.tables.offers(operation)

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        error = _path_exists(self._handle, encode(uri))
        return not error or not self._is_code(_NOT_FOUND, error, "path_exists", uri)

    def paths_exist(self, uris: Sequence[str]) -> list[bool]:
        if not uris or not self.tables.offers("paths_exist"):
            return super().paths_exist(uris)
        encoded = [_new("char[]", encode(uri)) for uri in uris]
        errors, every = _new("mtf_error *[]", len(uris)), _new("int *")
        failed = lib.mtf_paths_exist(
            self._handle, _new("char *[]", encoded), len(uris), errors, every
        )
        exist = [not error for error in errors]
        failures: list[ModularTFError] = []
        for error, uri in zip(errors, uris, strict=True):  # each is freed
            with collected(failures):
                self._is_code(_NOT_FOUND, error, "paths_exist", uri)
        check(failed, plugin=self.plugin, operation="paths_exist")
        if not every[0] and all(exist):
            return super().paths_exist(uris)  # it says that some are missing, and not which
        if failures:
            raise failures[0]
        return exist

    def stat(self, uri: str) -> FileStatistics:
        found = stat_path(_STAT_PATH, self._address, encode(uri), FileStatistics)
        if isinstance(found, int):
            raise failed(self, ffi.cast("mtf_error *", found), uri, "stat")
        return found

    def is_directory(self, uri: str) -> bool:
        """Return whether it is a directory: only if the plugin says OK *and* true."""
        if not self.tables.offers("is_directory"):
            return super().is_directory(uri)
        result = _new("int *")
        error = lib.mtf_is_directory(self._handle, encode(uri), result)
        try:
            if not self._is_implemented(error, "is_directory", uri):
                return super().is_directory(uri)
        except FailedPreconditionError:
            # A file may be answered by this, but so may a path below a file.
            if self.path_exists(uri):
                return False
            raise
        return bool(result[0])

    def get_file_size(self, uri: str) -> int:
        size = _new("int64_t *")
        error = lib.mtf_get_file_size(self._handle, encode(uri), size)
        if not self._is_implemented(error, "get_file_size", uri):
            return super().get_file_size(uri)
        return int(size[0])

    def get_children(self, uri: str) -> list[str]:
        return clean_names(self.listed_names(uri), plugin=self.plugin, uri=uri)

    def listed_names(self, uri: str) -> list[str]:
        """Return the names in a directory as the plugin gives them, which may be nonsense."""
        names = _new("mtf_strings *")
        self._check(lib.mtf_get_children(self._handle, encode(uri), names), "get_children", uri)
        return _take_strings(names)

    def get_matching_paths(self, pattern: str) -> list[str]:
        from modular_tf.filesystem.glob import require_plain_host  # noqa: PLC0415  (rarely used)

        require_plain_host(self, pattern)
        paths = _new("mtf_strings *")
        error = lib.mtf_get_matching_paths(self._handle, encode(pattern), paths)
        if not self._is_implemented(error, "get_matching_paths", pattern):
            return super().get_matching_paths(pattern)
        return sorted(set(_take_strings(paths)))

    def translate_name(self, uri: str) -> str:
        name = _new("char **")
        error = lib.mtf_translate_name(self._handle, encode(uri), name)
        check(error, plugin=self.plugin, path=uri, operation="translate_name")
        return _take_string(name[0])

    def is_same_name(self, one: str, other: str) -> bool:
        return one == other or bool(lib.mtf_is_same_name(self._handle, encode(one), encode(other)))

    def shares_store_with(self, other: Filesystem) -> bool:
        """Return whether both are the same functions, and have no state that could differ."""
        if not isinstance(other, PluginFilesystem):
            return False
        here, there = self.tables.place, other.tables.place
        if here is not None and there is not None:
            return here.worker is there.worker and here.store == there.store
        return other is self or (
            bool(lib.mtf_filesystem_shares_store(self._handle, other._handle))  # noqa: SLF001
        )

    def flush_caches(self) -> None:
        check(lib.mtf_flush_caches(self._handle), plugin=self.plugin, operation="flush_caches")

    # -- transactions ---------------------------------------------------------------------------

    def _transaction(self, operation: str, *uri: str) -> Transaction:
        """Return what one of three operations starts or finds."""
        token = _new("void **")
        call = getattr(lib, f"mtf_{operation}")
        self._check(call(self._handle, *map(encode, uri), token), operation, *uri)
        return Transaction(self, token[0])

    def start_transaction(self) -> Transaction:
        return self._transaction("start_transaction")

    def get_transaction_for_path(self, uri: str) -> Transaction:
        return self._transaction("get_transaction_for_path", uri)

    def get_or_start_transaction_for_path(self, uri: str) -> Transaction:
        return self._transaction("get_or_start_transaction_for_path", uri)

    def end_transaction(self, transaction: Transaction) -> None:
        token, transaction.token = self._token(transaction), None
        self._check(lib.mtf_end_transaction(self._handle, token), "end_transaction")

    def add_to_transaction(self, uri: str, transaction: Transaction) -> None:
        error = lib.mtf_add_to_transaction(self._handle, encode(uri), self._token(transaction))
        self._check(error, "add_to_transaction", uri)

    def decode_transaction_token(self, transaction: Transaction) -> str:
        token, text = self._token(transaction), _new("char **")
        error = lib.mtf_decode_transaction_token(self._handle, token, text)
        self._check(error, "decode_transaction_token")
        return _take_string(text[0])

    def _token(self, transaction: Transaction) -> Any:
        if transaction.filesystem is not self or transaction.token is None:
            raise InvalidArgumentError(
                f"the transaction has ended or is not of {self.scheme!r}", plugin=self.plugin
            )
        return transaction.token

    # -- configuration ------------------------------------------------------------------------

    def get_filesystem_configuration(self) -> list[Option]:
        options, count = _new("mtf_option **"), _new("int *")
        error = lib.mtf_get_configuration(self._handle, options, count)
        if not self._is_implemented(error, "get_filesystem_configuration"):
            return []
        try:
            return [option_from_c(options[0][i], self.plugin) for i in range(count[0])]
        finally:
            lib.mtf_options_free(self._handle, options[0], count[0])

    def set_filesystem_configuration(self, options: Iterable[Option]) -> None:
        listed = list(options)
        given = OptionsForC(listed)
        with self._setting:
            error = lib.mtf_set_configuration(self._handle, given.array, given.count)
            if not self._is_implemented(error, "set_filesystem_configuration"):
                super().set_filesystem_configuration(listed)
            self._keep(listed, is_single=False)

    def get_filesystem_configuration_option(self, key: str) -> Option:
        option = _new("mtf_option **")
        error = lib.mtf_get_configuration_option(self._handle, encode(key), option)
        if not self._is_implemented(error, "get_filesystem_configuration_option"):
            return super().get_filesystem_configuration_option(key)
        try:
            return option_from_c(option[0][0], self.plugin)
        finally:
            lib.mtf_options_free(self._handle, option[0], 1)

    def set_filesystem_configuration_option(self, option: Option) -> None:
        given = OptionsForC([option])
        with self._setting:
            error = lib.mtf_set_configuration_option(self._handle, given.array)
            if not self._is_implemented(error, "set_filesystem_configuration_option"):
                super().set_filesystem_configuration_option(option)
            self._keep([option], is_single=True)

    def _keep(self, options: list[Option], *, is_single: bool) -> None:
        place = self.tables.place
        if place is not None:
            place.worker.keep_options(place.number, options, is_single=is_single)

    # -- life ---------------------------------------------------------------------------------

    def close(self, *, at_exit: bool = False) -> None:
        """Close open files, then run the plugin's `cleanup` once the last region is gone."""
        self._close_writers(self._failures)
        left_open = self.open_count
        # In one step of the interpreter: no interrupt loses the result.
        self._close_results.extend(map(lib.mtf_filesystem_close, (self._handle,), (int(at_exit),)))
        if at_exit and left_open:
            time.sleep(_GRACE_AT_EXIT_S)
        while self._close_results:
            # Another thread that closes it may have taken the last one.
            with suppress(IndexError), collected(self._failures):
                check(self._close_results.pop(), plugin=self.plugin, operation="close")
        if self._is_joined and self.tables.place is not None:
            self._is_joined = False
            self.tables.place.worker.leave()
        # In place: another thread that closes it may be about to add to the list.
        failures, self._failures[:] = self._failures[:], []
        if failures:
            raise failures[0]

    def _close_writers(self, failures: list[ModularTFError]) -> None:
        self._writers.close(failures)

    def remember_writer(self, stream: StreamWriter | TextWriter) -> None:
        self._writers.add(stream)

    @property
    def open_count(self) -> int:
        """The number of open files and regions."""
        return int(lib.mtf_filesystem_open_count(self._handle))

    @property
    def is_in_use(self) -> bool:
        """Whether a call is under way, or something is open, or is just being opened."""
        return bool(lib.mtf_filesystem_is_in_use(self._handle))

    def after_fork_in_child(self, *, reinitialise: bool = False) -> None:
        """Drop the parent's open files and locks.

        With `reinitialise`, call `init` anew, for a plugin whose threads stayed in the parent.
        """
        self._writers.abandon()
        check(
            lib.mtf_filesystem_after_fork(self._handle, int(reinitialise)),
            plugin=self.plugin,
            operation="init",
        )


def _take_string(text: Any) -> str:
    try:
        return decode_pointer(text) or ""
    finally:
        lib.mtf_string_free(text)


def _take_strings(strings: Any) -> list[str]:
    try:
        if not strings.count:
            return []
        return decode(bytes(ffi.buffer(strings.bytes, strings.size - 1))).split("\0")
    finally:
        lib.mtf_strings_free(strings)
