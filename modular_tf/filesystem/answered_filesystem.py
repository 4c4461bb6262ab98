"""A plugin's filesystem with the host's answers to its known defects.

What is answered, and how, is data (`modular_tf.loading.known_defects`); this code knows no plugin.
"""

from __future__ import annotations

import time
from types import MethodType
from typing import TYPE_CHECKING

from modular_tf.codes import Code
from modular_tf.errors import FailedPreconditionError, ModularTFError, NotFoundError
from modular_tf.filesystem.answered_files import (
    AnsweredWriter,
    BlockReader,
    MemoryRegion,
    PiecewiseReader,
    RangeVerifiedReader,
)
from modular_tf.filesystem.endpoint_check import EndpointCheck
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.filesystem.statistics import FileStatistics
from modular_tf.filesystem.uri import parse_uri, split_last

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from modular_tf.filesystem.files import (
        RandomAccessFile,
        ReadOnlyMemoryRegion,
        WritableFile,
    )
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.known_defects import Answers

    _Result = TypeVar("_Result")

# A failure that took this long smells of a server that went away.
_SUSPICIOUS_SECONDS = 3.0


class AnsweredFilesystem(PluginFilesystem):
    """One scheme of a plugin that has known defects. [any thread]

    Args:
        tables: The accepted tables.
        plugin: The plugin's name.
        answers: What to do differently.
    """

    def __init__(self, tables: FilesystemTables, plugin: str, answers: Answers) -> None:
        super().__init__(tables, plugin)
        self._answers = answers
        self._verdicts: dict[str, bool] = {}
        self._statistics: dict[str, tuple[float, FileStatistics]] = {}
        variable = answers.endpoint_variable
        self._endpoint = EndpointCheck(variable, plugin) if variable else None
        for name in answers.withhold:
            if hasattr(self, f"_{name}_by_host"):
                setattr(self, name, getattr(self, f"_{name}_by_host"))
            else:
                setattr(self, name, MethodType(getattr(Filesystem, name), self))

    # -- what surrounds every operation -----------------------------------------------------------

    def _answered(self, operation: str, uri: str, call: Callable[[], _Result]) -> _Result:
        """Run one operation: not at a dead server, on a path that exists, its error explained."""
        if self._endpoint is not None:
            self._endpoint.require(operation, uri)
        if operation in self._answers.require_existing and not self.path_exists(uri):
            raise self._missing(operation, uri)
        started = time.monotonic()
        try:
            return call()
        except ModularTFError as error:
            self._suspect_server(operation, uri, time.monotonic() - started)
            if error.code in self._answers.missing_codes and not self.path_exists(uri):
                raise self._missing(operation, uri) from error
            raise

    def _suspect_server(self, operation: str, uri: str, seconds: float) -> None:
        """After a long failure, say that the server is gone where it is."""
        if self._endpoint is not None and seconds > _SUSPICIOUS_SECONDS:
            self._endpoint.doubt()
            self._endpoint.require(operation, uri)

    def _missing(self, operation: str, uri: str) -> NotFoundError:
        return NotFoundError(
            f"{operation} {uri!r}: nothing is there (plugin {self.plugin})",
            plugin=self.plugin,
            path=uri,
            operation=operation,
        )

    def _changed(self, *uris: str) -> None:
        for uri in uris:
            self._statistics.pop(uri, None)

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Tell whether a path exists, by listing where the plugin's own word is not enough."""
        if self._endpoint is not None:
            self._endpoint.require("path_exists", uri)
        try:
            exists = super().path_exists(uri)
        except ModularTFError as error:
            if error.code not in self._answers.missing_codes:
                raise
            return False
        return exists and (not self._answers.exists_by_listing or self._is_listed(uri))

    def _is_listed(self, uri: str) -> bool:
        """Tell whether a path is in its parent's listing, or has children itself."""
        parent, name = split_last(uri.rstrip("/"))
        try:
            if name and parse_uri(parent).path.strip("/"):
                return name in super().get_children(parent) or bool(super().get_children(uri))
            return bool(super().get_children(uri)) or not name
        except ModularTFError as error:
            if error.code in self._answers.missing_codes | {Code.NOT_FOUND}:
                return False
            raise

    def stat(self, uri: str) -> FileStatistics:
        """Return length, time of change and kind."""
        kept = self._statistics.get(uri)
        if kept is not None and time.monotonic() < kept[0]:
            return kept[1]
        found = self._answered("stat", uri, lambda: super(AnsweredFilesystem, self).stat(uri))
        if self._answers.mtime_is_unknown:
            found = found._replace(mtime_nsec=0)
        if self._answers.stat_cache_seconds:
            self._statistics[uri] = time.monotonic() + self._answers.stat_cache_seconds, found
        return found

    def get_file_size(self, uri: str) -> int:
        """Return a file's length in bytes."""
        if self._answers.stat_cache_seconds:
            return Filesystem.get_file_size(self, uri)
        size = super().get_file_size
        return self._answered("get_file_size", uri, lambda: size(uri))

    def is_directory(self, uri: str) -> bool:
        """Tell whether it is a directory."""
        ask = super().is_directory
        return self._answered("is_directory", uri, lambda: ask(uri))

    def get_children(self, uri: str) -> list[str]:
        """Return the names in a directory."""
        ask = super().get_children
        return self._answered("get_children", uri, lambda: ask(uri))

    # -- changes ------------------------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        """Create one directory."""
        create = super().create_dir
        self._answered("create_dir", uri, lambda: create(uri))

    def delete_file(self, uri: str) -> None:
        """Delete one file."""
        self._changed(uri)
        delete = super().delete_file
        self._answered("delete_file", uri, lambda: delete(uri))

    def delete_dir(self, uri: str) -> None:
        """Delete one empty directory."""
        delete = super().delete_dir
        self._answered("delete_dir", uri, lambda: self._delete_empty(uri, delete))

    def _delete_empty(self, uri: str, delete: Callable[[str], None]) -> None:
        if self._answers.refuse_deleting_full_dirs and super().get_children(uri):
            raise FailedPreconditionError(
                f"delete_dir {uri!r}: it is not empty",
                plugin=self.plugin,
                path=uri,
                operation="delete_dir",
            )
        delete(uri)

    def rename_file(self, source: str, target: str) -> None:
        """Move a file."""
        self._changed(source, target)
        rename = super().rename_file
        self._answered("rename_file", source, lambda: rename(source, target))

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file."""
        self._changed(target)
        copy = super().copy_file
        self._answered("copy_file", source, lambda: copy(source, target))

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        open_file = super().new_random_access_file
        file = self._answered("new_random_access_file", uri, lambda: open_file(uri))
        answers = self._answers
        if answers.verify_ranges:
            file = RangeVerifiedReader(file, self.get_file_size, self._verdicts)
        if answers.max_read is not None:
            file = PiecewiseReader(file, answers.max_read)
        if answers.read_block is not None:
            file = BlockReader(file, answers.read_block)
        return file

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one."""
        self._changed(uri)
        open_file = super().new_writable_file
        return self._writer(self._answered("new_writable_file", uri, lambda: open_file(uri)), 0)

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file for writing at its end."""
        self._changed(uri)
        if self._answers.append_by_rewriting:
            return self._rewritten(uri)
        size = self.get_file_size(uri) if self._counts_existing(uri) else 0
        open_file = super().new_appendable_file
        file = self._answered("new_appendable_file", uri, lambda: open_file(uri))
        return self._writer(file, size)

    def _counts_existing(self, uri: str) -> bool:
        return self._answers.count_position and self.path_exists(uri)

    def _rewritten(self, uri: str) -> WritableFile:
        """Open anew and write the old content in front."""
        before = b""
        if self.path_exists(uri):
            with self.new_random_access_file(uri) as reader:
                before = reader.read(0, self.get_file_size(uri))
        writer = self.new_writable_file(uri)
        if before:
            writer.append(before)
        return writer

    def _writer(self, file: WritableFile, size: int) -> WritableFile:
        counted = size if self._answers.count_position else None
        touch = self._answers.append_nothing_before_close
        if counted is None and not touch:
            return file
        return AnsweredWriter(file, position=counted, touch=touch)

    def _new_read_only_memory_region_from_file_by_host(self, uri: str) -> ReadOnlyMemoryRegion:
        """Stand in for memory regions that the plugin cannot make: read the file."""
        with self.new_random_access_file(uri) as reader:
            return MemoryRegion(uri, reader.read(0, self.get_file_size(uri)))

    # -- life ---------------------------------------------------------------------------------

    def after_fork_in_child(self, *, reinitialise: bool = False) -> None:
        """Forget the parent's files; call `init` anew where the plugin's threads are needed."""
        again = reinitialise or self._answers.reinitialise_after_fork
        super().after_fork_in_child(reinitialise=again)
