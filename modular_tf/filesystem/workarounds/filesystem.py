"""A plugin's filesystem with workarounds for its known defects.

Which workarounds a plugin needs is data (`modular_tf.loading.known_defects`); this code names no
plugin.
"""

from __future__ import annotations

import os
import re
import time
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.errors import (
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    collected,
)
from modular_tf.filesystem.copying import read_all
from modular_tf.filesystem.files import end
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.held_writer import HeldWriter, stored_by
from modular_tf.filesystem.idle_threads import wait_until_idle
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.filesystem.stat_cache import StatCache
from modular_tf.filesystem.statistics import FileStatistics
from modular_tf.filesystem.workarounds.bounded_reader import BoundedReader
from modular_tf.filesystem.workarounds.counted_reader import CountedReader
from modular_tf.filesystem.workarounds.descriptors import DescriptorCheck, LeakedDescriptors
from modular_tf.filesystem.workarounds.endpoint_check import EndpointCheck
from modular_tf.filesystem.workarounds.library_check import LibraryCheck
from modular_tf.filesystem.workarounds.readers import (
    BlockReader,
    MemoryRegion,
    PiecewiseReader,
)
from modular_tf.filesystem.workarounds.refusals import Refusals
from modular_tf.filesystem.workarounds.writer import WorkaroundWriter
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from modular_tf.filesystem.files import (
        RandomAccessFile,
        ReadOnlyMemoryRegion,
        WritableFile,
    )
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.workarounds import Workarounds

_Operation = TypeVar("_Operation", bound="Callable[..., Any]")
_Result = TypeVar("_Result")
_MAX_WAIT_FOR_THREADS_S = 1.0  # until they have released what they used last

_YEAR_ONE_NSEC = 62_135_596_800 * 10**9  # from the start of the year 1 to that of 1970
_READ_BLOCK = 1 << 23
NO_MESSAGE = r"(?!)"


def _with_workarounds(operation: _Operation) -> _Operation:
    """Return an operation of a plugin with checks around it, or the default if it is disabled."""
    name = operation.__name__
    default = getattr(Filesystem, name, operation)
    shown = "get_children" if name == "listed_names" else name

    @wraps(operation)
    def checked(self: WorkaroundFilesystem, uri: str, *others: Any) -> Any:
        if name in self.workarounds.disabled_operations:
            return default(self, uri, *others)
        return self._checked_call(shown, uri, lambda: operation(self, uri, *others))

    return cast("_Operation", checked)


class WorkaroundFilesystem(PluginFilesystem):
    """One scheme of a plugin that has known defects [any thread]

    Args:
        tables: The accepted tables.
        plugin: The plugin's name.
        workarounds: What to do differently for it.
        environment: The variables that the plugin sees; by default those of this process.

    Attributes:
        workarounds: What is done differently.
    """

    def __init__(
        self,
        tables: FilesystemTables,
        plugin: str,
        workarounds: Workarounds,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__(tables, plugin, share_init=workarounds.share_init)
        self._environment = environment
        self.workarounds = workarounds
        self._not_found_message = re.compile(workarounds.not_found_message or NO_MESSAGE)
        self._denied_message = re.compile(workarounds.denied_message or NO_MESSAGE)
        self._unknown_length_message = re.compile(workarounds.unknown_length_message or NO_MESSAGE)
        self._overflow_message = re.compile(workarounds.overflow_message or NO_MESSAGE)
        self._library = LibraryCheck(workarounds.needs_library, plugin)
        self._endpoint = EndpointCheck(workarounds, plugin, environment)
        self._refusals = Refusals(workarounds, self._endpoint, environment)
        self._descriptors = DescriptorCheck(workarounds.min_free_descriptors or 0, plugin)
        files = workarounds.leaked_files
        self._leaked = None if files is None else LeakedDescriptors(files)
        self._honours_ranges: dict[str, bool] = {}
        self._statistics = StatCache[FileStatistics](workarounds.stat_cache_seconds or 0)
        self._workaround_writers: LiveObjects[WritableFile] = LiveObjects()

    # -- checks around every operation --------------------------------------------------------

    def _require(self, operation: str, uri: str) -> None:
        """Reject a call that would fail slowly, break the plugin for good, or harm the process."""
        if self.workarounds.needs_library:
            self._library.require(operation, uri)
        if self.workarounds.min_free_descriptors is not None:
            self._descriptors.require(operation, uri)
        self._endpoint.require(operation, uri)

    def _checked_call(self, operation: str, uri: str, call: Callable[[], _Result]) -> _Result:
        self._require(operation, uri)
        started = time.monotonic()
        try:
            result = call()
        except ModularTFError as error:
            self._endpoint.suspect(error.code, operation, uri, time.monotonic() - started)
            told = self._refusals.explained(self._with_its_code(error), operation, uri)
            if told is error:
                raise
            raise told from error
        if result is False:
            self._endpoint.suspect(Code.NOT_FOUND, operation, uri, time.monotonic() - started)
        return result

    def _with_its_code(self, error: ModularTFError) -> ModularTFError:
        """Return an error with the status that its message tells, where the plugin's differs."""
        for kind, message in (
            (NotFoundError, self._not_found_message),
            (PermissionDeniedError, self._denied_message),
        ):
            if error.code is not kind.default_code and message.search(error.message):
                return kind(
                    error.message, plugin=self.plugin, path=error.path, operation=error.operation
                )
        return error

    create_dir = _with_workarounds(PluginFilesystem.create_dir)
    recursively_create_dir = _with_workarounds(PluginFilesystem.recursively_create_dir)
    delete_file = _with_workarounds(PluginFilesystem.delete_file)
    delete_dir = _with_workarounds(PluginFilesystem.delete_dir)
    delete_recursively = _with_workarounds(PluginFilesystem.delete_recursively)
    rename_file = _with_workarounds(PluginFilesystem.rename_file)
    copy_file = _with_workarounds(PluginFilesystem.copy_file)
    is_directory = _with_workarounds(PluginFilesystem.is_directory)
    get_file_size = _with_workarounds(PluginFilesystem.get_file_size)
    listed_names = _with_workarounds(PluginFilesystem.listed_names)
    _plain_exists = _with_workarounds(PluginFilesystem.path_exists)
    _plain_stat = _with_workarounds(PluginFilesystem.stat)
    _plain_reader = _with_workarounds(PluginFilesystem.new_random_access_file)
    _plain_writer = _with_workarounds(PluginFilesystem.new_writable_file)
    _plain_appender = _with_workarounds(PluginFilesystem.new_appendable_file)
    _plain_region = _with_workarounds(PluginFilesystem.new_read_only_memory_region_from_file)

    def renames_files(self) -> bool:
        """Return whether the plugin's own operation is used."""
        workarounds = self.workarounds
        replaced = workarounds.rename_by_copy or "rename_file" in workarounds.disabled_operations
        return super().renames_files() and not replaced

    # -- queries ------------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Return whether a path exists, by stat where its cached result saves a request."""
        try:
            if self.workarounds.exists_by_stat:
                return self.stat(uri) is not None
            return self._plain_exists(uri)
        except NotFoundError:
            return False

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind of a path."""
        version, found = self._statistics.version, self._statistics.get(uri)
        if found is None:
            found = self._corrected(self._measured_stat(uri))
            self._statistics.put(uri, found, version)
        return found

    def _measured_stat(self, uri: str) -> FileStatistics:
        """Return statistics; count the bytes where the plugin fails to tell the length only."""
        try:
            return self._plain_stat(uri)
        except InvalidArgumentError as error:
            if not self._unknown_length_message.search(error.message):
                raise
        with self.new_random_access_file(uri) as reader:
            length = sum(map(len, _blocks(reader)))
        return FileStatistics(length, 0, is_directory=False)

    def _corrected(self, found: FileStatistics) -> FileStatistics:
        if self.workarounds.mtime_is_unknown:
            return found._replace(mtime_nsec=0)
        if self.workarounds.mtime_counts_from_year_one and found.mtime_nsec:
            return found._replace(mtime_nsec=(found.mtime_nsec - _YEAR_ONE_NSEC) % 2**64)
        return found

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        length = self.get_file_size(uri) if self._needs_length() else None
        return self._reader(uri, self._plain_reader(uri), length)

    def read_file(self, uri: str) -> bytes:
        """Return the bytes of a whole file; where it opens by a first read, without its length."""
        if self.workarounds.first_read is None:
            return Filesystem.read_file(self, uri)  # by the reader above, not the plugin's own
        with self.new_random_access_file(uri) as reader:
            return b"".join(_blocks(reader))

    def _reader(
        self, uri: str, file: RandomAccessFile, length: int | None, tail: bytes = b""
    ) -> RandomAccessFile:
        """Return a reader around the plugin's, which asks for nothing behind a known length."""
        workarounds = self.workarounds
        if workarounds.counts_before_read:
            file = CountedReader(file, lambda: self.get_file_size(uri))
        if length is not None:
            file = BoundedReader(file, length, tail)
        if workarounds.max_read is not None:
            file = PiecewiseReader(file, workarounds.max_read, workarounds.read_at_once)
        if workarounds.first_read is not None:
            file = BlockReader(
                file,
                first=workarounds.first_read,
                block=workarounds.read_block or _READ_BLOCK,
                checked_call=lambda call: self._checked_call("read", uri, call),
                size=lambda: self._reported_length(uri),
                is_overflow=lambda error: bool(self._overflow_message.search(error.message)),
                honours_ranges=self._honours_ranges,
            )
        return file

    def _needs_length(self) -> bool:
        variable = self.workarounds.bounded_reads_variable
        return variable is not None and variable in self._environment

    def _reported_length(self, uri: str) -> int:
        """Return the length that the plugin reports, 0 where it does not know it."""
        try:
            return self._plain_stat(uri).length
        except InvalidArgumentError:
            return 0

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one."""
        if self.workarounds.stores_at_cleanup:
            self._require("new_writable_file", uri)
            return self._held_writer(uri)
        return self._created(uri)

    def _created(self, uri: str) -> WritableFile:
        return self._workaround_writer(self._plain_writer(uri), 0)

    def _held_writer(self, uri: str, *, is_torn: bool = False) -> HeldWriter:
        writer = HeldWriter(uri, stored_by(lambda: self._created(uri)), is_torn=is_torn)
        self._workaround_writers.add(writer)
        return writer

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file for writing at its end."""
        if self.workarounds.append_by_rewriting or self._needs_length():
            return self._rewritten(uri)
        counts = self.workarounds.count_position and self.path_exists(uri)
        size = self.get_file_size(uri) if counts else 0
        return self._workaround_writer(self._plain_appender(uri), size)

    def _rewritten(self, uri: str) -> WritableFile:
        """Return a writer that stores the file's old content again, with what is appended."""
        if not self.path_exists(uri):
            return self.new_writable_file(uri)
        writer = self._held_writer(uri, is_torn=True)
        read_all(Location(self, uri), writer.append, block=_READ_BLOCK)
        writer.begin_with_held()
        return writer

    def _workaround_writer(self, file: WritableFile, size: int) -> WritableFile:
        workarounds = self.workarounds
        touch, needs_bytes = (
            workarounds.append_zero_bytes_before_close,
            workarounds.cannot_write_empty_file,
        )
        explains = bool(workarounds.remedies or workarounds.credential_variables)
        if not (workarounds.count_position or touch or needs_bytes or self._leaked or explains):
            return file
        writer = WorkaroundWriter(
            file,
            position=size if workarounds.count_position else None,
            touch=touch,
            needs_bytes=needs_bytes,
            leaked=self._leaked,
            checked_close=lambda close: self._checked_call("close", file.uri, close),
        )
        self._workaround_writers.add(writer)
        return writer

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Return a whole file as memory: the plugin's region, or a copy where that is disabled."""
        if "new_read_only_memory_region_from_file" in self.workarounds.disabled_operations:
            return MemoryRegion(uri, self._content(uri))
        return self._plain_region(uri)

    def _content(self, uri: str) -> bytes:
        size = self.get_file_size(uri)
        with self.new_random_access_file(uri) as reader:
            return reader.read(0, size)

    # -- lifetime -----------------------------------------------------------------------------

    def flush_caches(self) -> None:
        """Clear the caches here and in the plugin."""
        self._statistics.clear()
        super().flush_caches()

    def _close_writers(self, failures: list[ModularTFError]) -> None:
        super()._close_writers(failures)
        for writer in self._workaround_writers.all():
            with collected(failures):
                end(writer)
        if self.workarounds.cleanup_when_idle:
            wait_until_idle(_MAX_WAIT_FOR_THREADS_S)

    def after_fork_in_child(self, *, reinitialise: bool = False) -> None:
        """Drop the parent's files; initialise the plugin again if it needs its threads."""
        self._workaround_writers = LiveObjects()
        if self.workarounds.no_destructors_after_fork:
            lib.mtf_exit_without_inherited_destructors()
        again = reinitialise or self.workarounds.reinitialise_after_fork
        super().after_fork_in_child(reinitialise=again)


def _blocks(reader: RandomAccessFile) -> Iterator[bytes]:
    """Yield a file's bytes in large blocks."""
    offset = 0
    while offset != reader.known_length() and (block := reader.read(offset, _READ_BLOCK)):
        yield block
        offset += len(block)
