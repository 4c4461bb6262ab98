"""The filesystem of a C plugin: each method is one call on the host's protected tables."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.errors import ModularTFError, collected
from modular_tf.filesystem.child_names import clean_names
from modular_tf.filesystem.files import SHORT_FILE, read_on
from modular_tf.filesystem.plugin_files import (
    PluginReadOnlyMemoryRegion,
    PluginWritableFile,
    open_reader,
    read_first,
)
from modular_tf.filesystem.plugin_settings import PluginSettings
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.filesystem.statistics import DeletedCounts, FileStatistics
from modular_tf.filesystem.writer_streams import OpenWriters
from modular_tf.native._dlpack import stat_path
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.interruptible import Release, address_of, opened
from modular_tf.native.plugin_names import named
from modular_tf.native.status import check
from modular_tf.native.strings import decode, decode_pointer, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.filesystem.files import (
        RandomAccessFile,
        ReadOnlyMemoryRegion,
        WritableFile,
    )
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.writer_streams import StreamWriter, TextWriter
    from modular_tf.loading.filesystem_tables import FilesystemTables

_new = ffi.new
_path_exists = lib.mtf_path_exists
_STAT_PATH = address_of(ffi.addressof(lib, "mtf_stat_path"))
_ERROR = ffi.typeof("mtf_error **")
_WRITER = ffi.typeof("mtf_writer **")
_RELEASE_FILESYSTEM = Release("mtf_filesystem_release")
_RELEASE_WRITER = Release("mtf_writer_release")
_RELEASE_REGION = Release("mtf_region_release")
_NOT_FOUND, _UNIMPLEMENTED = int(Code.NOT_FOUND), int(Code.UNIMPLEMENTED)

# What threads that Python did not start (pyarrow's, which read our files) get at exit to meet the
# error and let go of their files: up to 3.13 Python aborts the process if it ends meanwhile.
_GRACE_AT_EXIT_S = 0.05


class PluginFilesystem(PluginSettings):
    """One scheme of a loaded plugin. [any thread]

    Construction calls the plugin's `init`.

    Args:
        tables: The accepted tables; kept as long as this object.
        plugin: The plugin's name, for messages.
        share_init: Share what `init` made with all other filesystems of these functions that are
            open in the process; the last to close runs `cleanup`.

    Raises:
        ModularTFError: `init` failed, with the plugin's own code and message.
    """

    writer_type = PluginWritableFile

    def __init__(self, tables: FilesystemTables, plugin: str, *, share_init: bool = False) -> None:
        super().__init__(tables.scheme, plugin)
        self.tables = tables
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

    def _default_or_raise(
        self, error: Any, operation: str, path: str, default: Callable[[], Any]
    ) -> Any:
        """Run the host's default for an operation that the plugin does not implement."""
        if failure := self._failure_unless(_UNIMPLEMENTED, error, operation, path):
            raise failure
        return default()

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        return open_reader(self, self._handle, uri)

    def read_file(self, uri: str) -> bytes:
        """Return the bytes of a whole file."""
        first, file = read_first(self, self._handle, uri, SHORT_FILE)
        if file is None:
            return first
        with file:
            return read_on(file, 0, first, lambda: self.get_file_size(uri))

    def read_first(self, uri: str, n: int) -> tuple[bytes, RandomAccessFile | None]:
        """Return up to `n` bytes from the start of a file, and the file; by one call if short."""
        if n >= SHORT_FILE or not is_of_this_machine(self.scheme):
            return super().read_first(uri, n)
        first, file = read_first(self, self._handle, uri, n + 1 if n else 2)
        return first[:n], file

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one, for writing."""
        return self._open_writer(uri, 0, "new_writable_file")

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file, created where missing, for writing at its end."""
        return self._open_writer(uri, 1, "new_appendable_file")

    def _open_writer(self, uri: str, append: int, operation: str) -> WritableFile:
        place = _new(_WRITER)
        error, writer, owner = opened(
            _RELEASE_WRITER, place,
            lib.mtf_writer_open, self._handle, encode(uri), append, place,
        )  # fmt: skip
        if error:
            raise self._failed(error, operation, uri)
        return self.writer_type(self, uri, writer, owner)

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Return a whole file as a memory region."""
        place, data, length = _new("mtf_region **"), _new("char const **"), _new("uint64_t *")
        error, _, region = opened(
            _RELEASE_REGION, place,
            lib.mtf_region_open, self._handle, encode(uri), place, data, length,
        )  # fmt: skip
        if error:
            raise self._failed(error, "new_read_only_memory_region_from_file", uri)
        return PluginReadOnlyMemoryRegion(uri, region, data[0], int(length[0]))

    # -- directories and files ----------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        """Create one directory; its parent must exist."""
        error = lib.mtf_create_dir(self._handle, encode(uri))
        if error:
            raise self._failed(error, "create_dir", uri)

    def recursively_create_dir(self, uri: str) -> None:
        """Create a directory and whatever parents are missing."""
        error = lib.mtf_recursively_create_dir(self._handle, encode(uri))
        if error:
            default = super().recursively_create_dir
            self._default_or_raise(error, "recursively_create_dir", uri, lambda: default(uri))

    def delete_file(self, uri: str) -> None:
        """Delete one file."""
        error = lib.mtf_delete_file(self._handle, encode(uri))
        if error:
            raise self._failed(error, "delete_file", uri)

    def delete_dir(self, uri: str) -> None:
        """Delete one empty directory."""
        error = lib.mtf_delete_dir(self._handle, encode(uri))
        if error:
            raise self._failed(error, "delete_dir", uri)

    def delete_recursively(self, uri: str) -> DeletedCounts:
        """Delete a directory with all that is in it."""
        files, dirs = _new("uint64_t *"), _new("uint64_t *")
        error = lib.mtf_delete_recursively(self._handle, encode(uri), files, dirs)
        if error:
            failure = self._failure_unless(_UNIMPLEMENTED, error, "delete_recursively", uri)
            if failure is None:
                return super().delete_recursively(uri)
            failure.undeleted = DeletedCounts(int(files[0]), int(dirs[0]))
            raise failure
        return DeletedCounts(int(files[0]), int(dirs[0]))

    def rename_file(self, source: str, target: str) -> None:
        """Move a file, replacing an existing target file."""
        error = lib.mtf_rename_file(self._handle, encode(source), encode(target))
        if error:
            default = super().rename_file
            self._default_or_raise(error, "rename_file", source, lambda: default(source, target))

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file."""
        error = lib.mtf_copy_file(self._handle, encode(source), encode(target))
        if error:
            default = super().copy_file
            self._default_or_raise(error, "copy_file", source, lambda: default(source, target))

    def renames_files(self) -> bool:
        """Return whether the plugin has an operation for it."""
        return self.tables.offers("rename_file")

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Return whether a file or directory exists."""
        error = _path_exists(self._handle, encode(uri))
        if not error:
            return True
        if failure := self._failure_unless(_NOT_FOUND, error, "path_exists", uri):
            raise failure
        return False

    def paths_exist(self, uris: Sequence[str]) -> list[bool]:
        """Return `path_exists` of each URI."""
        if not uris or not self.tables.offers("paths_exist"):
            return super().paths_exist(uris)
        encoded = [_new("char[]", encode(uri)) for uri in uris]
        errors, every = _new("mtf_error *[]", len(uris)), _new("int *")
        failed = lib.mtf_paths_exist(
            self._handle, _new("char *[]", encoded), len(uris), errors, every
        )
        exist = [not error for error in errors]
        failures = [
            self._failure_unless(_NOT_FOUND, error, "paths_exist", uri)
            for error, uri in zip(errors, uris, strict=True)
            if error
        ]
        check(failed, plugin=self.plugin, operation="paths_exist")
        if not every[0] and all(exist):
            return super().paths_exist(uris)  # it says that some are missing, and not which
        for failure in filter(None, failures):
            raise failure
        return exist

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind."""
        found = stat_path(_STAT_PATH, self._address, encode(uri), FileStatistics)
        if isinstance(found, int):
            raise self._failed(ffi.cast("mtf_error *", found), "stat", uri)
        return found

    def is_directory(self, uri: str) -> bool:
        """Return whether it is a directory: only if the plugin says OK *and* true."""
        if not self.tables.offers("is_directory"):
            return super().is_directory(uri)
        result = _new("int *")
        error = lib.mtf_is_directory(self._handle, encode(uri), result)
        if not error:
            return bool(result[0])
        failure = self._failure_unless(_UNIMPLEMENTED, error, "is_directory", uri)
        if failure is None:
            return super().is_directory(uri)
        # A file may be answered by FAILED_PRECONDITION, but so may a path below a file.
        if failure.code is Code.FAILED_PRECONDITION and self.path_exists(uri):
            return False
        raise failure

    def get_file_size(self, uri: str) -> int:
        """Return a file's length in bytes."""
        size = _new("int64_t *")
        error = lib.mtf_get_file_size(self._handle, encode(uri), size)
        if error:
            default = super().get_file_size
            return int(self._default_or_raise(error, "get_file_size", uri, lambda: default(uri)))
        return int(size[0])

    def get_children(self, uri: str) -> list[str]:
        """Return the names in a directory, sorted, without `/`."""
        return clean_names(self.listed_names(uri), plugin=self.plugin, uri=uri)

    def listed_names(self, uri: str) -> list[str]:
        """Return the names in a directory as the plugin gives them, which may be nonsense."""
        names = _new("mtf_strings *")
        error = lib.mtf_get_children(self._handle, encode(uri), names)
        if error:
            raise self._failed(error, "get_children", uri)
        return _take_strings(names)

    def get_matching_paths(self, pattern: str) -> list[str]:
        """Return the URIs that match a glob pattern, sorted."""
        from modular_tf.filesystem.glob import require_plain_host  # noqa: PLC0415  (rarely used)

        require_plain_host(self, pattern)
        paths = _new("mtf_strings *")
        error = lib.mtf_get_matching_paths(self._handle, encode(pattern), paths)
        if error:
            default = super().get_matching_paths
            found: list[str] = self._default_or_raise(
                error, "get_matching_paths", pattern, lambda: default(pattern)
            )
            return found
        return sorted(set(_take_strings(paths)))

    def translate_name(self, uri: str) -> str:
        """Return the name by which the plugin knows the URI."""
        name = _new("char **")
        check(
            lib.mtf_translate_name(self._handle, encode(uri), name),
            plugin=self.plugin,
            path=uri,
            operation="translate_name",
        )
        try:
            return decode_pointer(name[0]) or ""
        finally:
            lib.mtf_string_free(name[0])

    def name_in_store(self, uri: str) -> str:
        """Return the name that the plugin is given: without one of its own, by the default."""
        return self.translate_name(uri)

    def is_same_name(self, one: str, other: str) -> bool:
        """Return whether the plugin is given one name for both URIs."""
        return one == other or bool(lib.mtf_is_same_name(self._handle, encode(one), encode(other)))

    def shares_store_with(self, other: Filesystem) -> bool:
        """Return whether both are the same functions, and no state could tell them apart."""
        if not isinstance(other, PluginFilesystem):
            return False
        here, there = self.tables.place, other.tables.place
        if here is not None and there is not None:
            return here.worker is there.worker and here.store == there.store
        return other is self or (
            bool(lib.mtf_filesystem_shares_store(self._handle, other._handle))  # noqa: SLF001
        )

    def flush_caches(self) -> None:
        """Call the plugin's own; nothing where it has none."""
        check(lib.mtf_flush_caches(self._handle), plugin=self.plugin, operation="flush_caches")

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
        """Write out what streams that are left open hold back."""
        self._writers.close(failures)

    def remember_writer(self, stream: StreamWriter | TextWriter) -> None:
        """Record a buffered stream while it is referenced, so that `close` can write it out."""
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

        Args:
            reinitialise: Also call `init` anew, for a plugin whose threads stayed in the parent.
        """
        self._writers.abandon()
        check(
            lib.mtf_filesystem_after_fork(self._handle, int(reinitialise)),
            plugin=self.plugin,
            operation="init",
        )


def _take_strings(strings: Any) -> list[str]:
    """Copy what a plugin listed and free the native copy."""
    try:
        if not strings.count:
            return []
        return decode(bytes(ffi.buffer(strings.bytes, strings.size - 1))).split("\0")
    finally:
        lib.mtf_strings_free(strings)
