"""A plugin's filesystem with the host's answers to its known defects.

What is answered, and how, is data (`modular_tf.loading.known_defects`); this code knows no plugin.
"""

from __future__ import annotations

import os
import re
import time
from functools import wraps
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar, cast

from modular_tf.abi.status_codes import Code
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.errors import InvalidArgumentError, ModularTFError, NotFoundError, collected
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.idle_threads import wait_until_idle
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.filesystem.statistics import FileStatistics
from modular_tf.filesystem.workarounds.descriptor_check import DescriptorCheck
from modular_tf.filesystem.workarounds.endpoint_check import EndpointCheck
from modular_tf.filesystem.workarounds.forgotten_descriptors import ForgottenDescriptors
from modular_tf.filesystem.workarounds.library_check import LibraryCheck
from modular_tf.filesystem.workarounds.readers import (
    BlockReader,
    BoundedReader,
    MemoryRegion,
    PiecewiseReader,
)
from modular_tf.filesystem.workarounds.writer import AnsweredWriter
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.filesystem.files import (
        RandomAccessFile,
        ReadOnlyMemoryRegion,
        WritableFile,
    )
    from modular_tf.loading.defect_answers import Answers
    from modular_tf.loading.filesystem_tables import FilesystemTables

_Operation = TypeVar("_Operation", bound="Callable[..., Any]")
_Result = TypeVar("_Result")
_PATIENCE_WITH_THREADS_S = 1.0  # which let go of what they did last

_YEAR_ONE_NSEC = 62_135_596_800 * 10**9  # from the start of the year 1 to that of 1970
_READ_BLOCK = 1 << 23
_KEPT_IN_MEMORY = 1 << 26
_MOST_KEPT = 4096  # answers of stat
_NOTHING = r"(?!)"


def _answered(operation: _Operation) -> _Operation:
    """Surround an operation of a plugin, or put the host's default in its place."""
    name = operation.__name__
    default = getattr(Filesystem, name, operation)
    shown = "get_children" if name == "listed_names" else name

    @wraps(operation)
    def surrounded(self: AnsweredFilesystem, uri: str, *others: Any) -> Any:
        if name in self.answers.withhold:
            return default(self, uri, *others)
        return self._surround(shown, uri, lambda: operation(self, uri, *others))

    return cast("_Operation", surrounded)


class AnsweredFilesystem(PluginFilesystem):
    """One scheme of a plugin that has known defects [any thread].

    Args:
        tables: The accepted tables.
        plugin: The plugin's name.
        answers: What to do differently.

    Attributes:
        answers: The same.
    """

    def __init__(self, tables: FilesystemTables, plugin: str, answers: Answers) -> None:
        super().__init__(tables, plugin, share_init=answers.share_init)
        self.answers = answers
        self._missing_message = re.compile(answers.missing_message or _NOTHING)
        self._unmeasured_message = re.compile(answers.unmeasured_message or _NOTHING)
        self._overflow_message = re.compile(answers.overflow_message or _NOTHING)
        self._library = LibraryCheck(answers.needs_library, plugin)
        self._endpoint = EndpointCheck(answers, plugin)
        self._descriptors = DescriptorCheck(answers.spare_descriptors or 0, plugin)
        forgotten = answers.forgotten_files
        self._forgotten = None if forgotten is None else ForgottenDescriptors(forgotten)
        self._honours_ranges: dict[str, bool] = {}
        self._statistics: dict[str, tuple[float, FileStatistics]] = {}
        self._answered_writers: LiveObjects[AnsweredWriter] = LiveObjects()

    # -- what surrounds every operation -------------------------------------------------------

    def _require(self, operation: str, uri: str) -> None:
        """Refuse what the plugin would fail at slowly, for ever or to the process's harm."""
        if self.answers.needs_library:
            self._library.require(operation, uri)
        if self.answers.spare_descriptors is not None:
            self._descriptors.require(operation, uri)
        self._endpoint.require(operation, uri)

    def _surround(self, operation: str, uri: str, call: Callable[[], _Result]) -> _Result:
        self._require(operation, uri)
        started = time.monotonic()
        try:
            result = call()
        except ModularTFError as error:
            self._endpoint.suspect(error.code, operation, uri, time.monotonic() - started)
            if error.code is not Code.NOT_FOUND and self._missing_message.search(error.message):
                raise NotFoundError(
                    error.message, plugin=self.plugin, path=uri, operation=operation
                ) from error
            raise
        if result is False:
            self._endpoint.suspect(Code.NOT_FOUND, operation, uri, time.monotonic() - started)
        return result

    create_dir = _answered(PluginFilesystem.create_dir)
    recursively_create_dir = _answered(PluginFilesystem.recursively_create_dir)
    delete_file = _answered(PluginFilesystem.delete_file)
    delete_dir = _answered(PluginFilesystem.delete_dir)
    delete_recursively = _answered(PluginFilesystem.delete_recursively)
    rename_file = _answered(PluginFilesystem.rename_file)
    copy_file = _answered(PluginFilesystem.copy_file)
    is_directory = _answered(PluginFilesystem.is_directory)
    get_file_size = _answered(PluginFilesystem.get_file_size)
    listed_names = _answered(PluginFilesystem.listed_names)
    _plain_exists = _answered(PluginFilesystem.path_exists)
    _plain_stat = _answered(PluginFilesystem.stat)
    _plain_reader = _answered(PluginFilesystem.new_random_access_file)
    _plain_writer = _answered(PluginFilesystem.new_writable_file)
    _plain_appender = _answered(PluginFilesystem.new_appendable_file)
    _plain_region = _answered(PluginFilesystem.new_read_only_memory_region_from_file)

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Tell whether a path exists, by stat where that is dearer to ask twice."""
        try:
            if self.answers.exists_by_stat:
                return self.stat(uri) is not None
            return self._plain_exists(uri)
        except NotFoundError:
            return False

    def stat(self, uri: str) -> FileStatistics:
        """Return length, time of change and kind."""
        good_until, kept = self._statistics.get(uri, (0.0, None))
        if kept is not None and time.monotonic() < good_until:
            return kept
        found = self._corrected(self._measured_stat(uri))
        if self.answers.stat_cache_seconds:
            if len(self._statistics) >= _MOST_KEPT:
                self._statistics.clear()
            self._statistics[uri] = time.monotonic() + self.answers.stat_cache_seconds, found
        return found

    def _measured_stat(self, uri: str) -> FileStatistics:
        """Ask for statistics; read the file where only its length cannot be told."""
        try:
            return self._plain_stat(uri)
        except InvalidArgumentError as error:
            if not self._unmeasured_message.search(error.message):
                raise
        with self.new_random_access_file(uri) as reader:
            length = sum(map(len, _blocks(reader)))
        return FileStatistics(length, 0, is_directory=False)

    def _corrected(self, found: FileStatistics) -> FileStatistics:
        if self.answers.mtime_is_unknown:
            return found._replace(mtime_nsec=0)
        if self.answers.mtime_counts_from_year_one and found.mtime_nsec:
            return found._replace(mtime_nsec=(found.mtime_nsec - _YEAR_ONE_NSEC) % 2**64)
        return found

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        file = self._plain_reader(uri)
        answers = self.answers
        if self._must_know_length():
            file = BoundedReader(file, lambda: self.get_file_size(uri))
        if answers.max_read is not None:
            file = PiecewiseReader(file, answers.max_read)
        if answers.first_read is not None:
            file = BlockReader(
                file,
                first=answers.first_read,
                block=answers.read_block or _READ_BLOCK,
                surround=lambda call: self._surround("read", uri, call),
                size=lambda: self._told_length(uri),
                is_overflow=lambda error: bool(self._overflow_message.search(error.message)),
                honours_ranges=self._honours_ranges,
            )
        return file

    def _must_know_length(self) -> bool:
        variable = self.answers.known_length_where
        return variable is not None and variable in os.environ

    def _told_length(self, uri: str) -> int:
        """Return a file's length, 0 where the plugin does not know it."""
        try:
            return self._plain_stat(uri).length
        except InvalidArgumentError:
            return 0

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one."""
        return self._answered_writer(self._plain_writer(uri), 0)

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file for writing at its end."""
        if self.answers.append_by_rewriting or self._must_know_length():
            return self._rewritten(uri)
        counts = self.answers.count_position and self.path_exists(uri)
        size = self.get_file_size(uri) if counts else 0
        return self._answered_writer(self._plain_appender(uri), size)

    def _rewritten(self, uri: str) -> WritableFile:
        """Open anew and write the old content in front, which is kept aside meanwhile."""
        if not self.path_exists(uri):
            return self.new_writable_file(uri)
        with SpooledTemporaryFile(max_size=_KEPT_IN_MEMORY) as aside:
            with self.new_random_access_file(uri) as reader:
                for block in _blocks(reader):
                    aside.write(block)
            aside.seek(0)
            writer = self.new_writable_file(uri)
            while block := aside.read(_READ_BLOCK):
                writer.append(block)
        return writer

    def _answered_writer(self, file: WritableFile, size: int) -> WritableFile:
        answers = self.answers
        touch, needs_bytes = answers.append_nothing_before_close, answers.makes_no_empty_file
        if not (answers.count_position or touch or needs_bytes or self._forgotten):
            return file
        writer = AnsweredWriter(
            file,
            position=size if answers.count_position else None,
            touch=touch,
            needs_bytes=needs_bytes,
            forgotten=self._forgotten,
        )
        self._answered_writers.add(writer)
        return writer

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Offer a whole file as memory: the plugin's where it can be had, else a copy."""
        if "new_read_only_memory_region_from_file" in self.answers.withhold:
            return MemoryRegion(uri, self._content(uri))
        return self._plain_region(uri)

    def _content(self, uri: str) -> bytes:
        size = self.get_file_size(uri)
        with self.new_random_access_file(uri) as reader:
            return reader.read(0, size)

    # -- life ---------------------------------------------------------------------------------

    def flush_caches(self) -> None:
        """Forget what is cached, here and in the plugin."""
        self._statistics.clear()
        super().flush_caches()

    def _close_writers(self, failures: list[ModularTFError]) -> None:
        super()._close_writers(failures)
        for writer in self._answered_writers.all():
            with collected(failures):
                writer.close()
        if self.answers.cleanup_when_idle:
            wait_until_idle(_PATIENCE_WITH_THREADS_S)

    def after_fork_in_child(self, *, reinitialise: bool = False) -> None:
        """Forget the parent's files; do without the threads that stayed in the parent."""
        self._answered_writers = LiveObjects()
        if self.answers.no_destructors_after_fork:
            lib.mtf_exit_without_inherited_destructors()
        again = reinitialise or self.answers.reinitialise_after_fork
        super().after_fork_in_child(reinitialise=again)


def _blocks(reader: RandomAccessFile) -> Iterator[bytes]:
    """Yield a file's bytes in large pieces."""
    offset = 0
    while block := reader.read(offset, _READ_BLOCK):
        yield block
        offset += len(block)
