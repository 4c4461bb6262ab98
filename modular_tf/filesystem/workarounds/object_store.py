"""Object stores that follow the rules of files and directories.

An object store has names with slashes; its plugins emulate directories, each with its own gaps.
Here the host looks first (`store_lookup`), rejects what a POSIX filesystem would reject, and
leaves to the plugin only what the plugin does correctly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from modular_tf.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from modular_tf.filesystem.child_names import clean_names
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.uri import basename, dirname, join_path
from modular_tf.filesystem.workarounds.filesystem import WorkaroundFilesystem
from modular_tf.filesystem.workarounds.readers import empty_region
from modular_tf.filesystem.workarounds.store_lookup import DIRECTORY, LOOKUPS, depth_of, store_uri

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion, WritableFile
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.filesystem.statistics import FileStatistics
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.workarounds import Workarounds


class ObjectStoreFilesystem(WorkaroundFilesystem):
    """One scheme of a plugin for an object store [any thread]

    Operations that take more than one request are not atomic: two processes that change the same
    directory can interfere with each other.
    """

    def __init__(self, tables: FilesystemTables, plugin: str, workarounds: Workarounds) -> None:
        super().__init__(tables, plugin, workarounds)
        self._lookup = LOOKUPS[workarounds.lookup or "stat"]

    # The host's defaults, built on the operations below: plugins match names by their prefix.
    recursively_create_dir = Filesystem.recursively_create_dir
    delete_recursively = Filesystem.delete_recursively

    # -- looking ------------------------------------------------------------------------------

    def _look(self, uri: str) -> FileStatistics | None:
        """Return the statistics of a path, None if nothing exists there."""
        above_root = depth_of(uri) - self.workarounds.root_depth
        if above_root < 0:
            return DIRECTORY
        plain = cast("PluginFilesystem", super())  # the plugin's results without these rules
        return self._lookup(plain, store_uri(uri), is_root=above_root == 0)

    def _found(self, operation: str, uri: str) -> FileStatistics:
        found = self._look(uri)
        if found is None:
            raise NotFoundError(
                f"{operation} {uri!r}: nothing is there",
                plugin=self.plugin,
                path=uri,
                operation=operation,
            )
        return found

    def _found_file(self, operation: str, uri: str) -> FileStatistics:
        found = self._found(operation, uri)
        if found.is_directory:
            raise self._refused(operation, uri, "it is a directory")
        return found

    def _require_directory(self, operation: str, uri: str) -> None:
        if not self._found(operation, uri).is_directory:
            raise self._refused(operation, uri, "it is not a directory")

    def _refused(self, operation: str, uri: str, why: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{operation} {uri!r}: {why}", plugin=self.plugin, path=uri, operation=operation
        )

    # -- queries ------------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Return whether a file or directory exists."""
        return self._look(uri) is not None

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind of a path."""
        return self._found("stat", uri)

    def is_directory(self, uri: str) -> bool:
        """Return whether a path is a directory."""
        return self._found("is_directory", uri).is_directory

    def get_file_size(self, uri: str) -> int:
        """Return a file's length in bytes."""
        return self._found_file("get_file_size", uri).length

    def get_children(self, uri: str) -> list[str]:
        """Return the names in a directory, without its own marker object."""
        listed = super().listed_names(store_uri(uri))
        names = clean_names(filter(None, listed), plugin=self.plugin, uri=uri)
        if not listed:
            self._require_directory("get_children", uri)
        return names

    # -- changes ------------------------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        """Create one directory, as an empty object where the plugin creates none."""
        if self._look(uri) is not None:
            raise AlreadyExistsError(
                f"create_dir {uri!r}: it exists",
                plugin=self.plugin,
                path=uri,
                operation="create_dir",
            )
        is_inside = depth_of(uri) > self.workarounds.root_depth
        if is_inside and self.workarounds.directory_marker:
            super().new_writable_file(f"{store_uri(uri)}/").close()
        else:
            for directory in self._to_be_created(store_uri(uri)):
                super().create_dir(directory)

    def _to_be_created(self, uri: str) -> list[str]:
        """Return a directory and those parents that have to be created first, highest first."""
        directories = [uri]
        while (
            self.workarounds.create_parents
            and depth_of(directories[0]) > self.workarounds.root_depth + 1
        ):
            directories.insert(0, dirname(directories[0]))
        return directories

    def delete_file(self, uri: str) -> None:
        """Delete one file."""
        self._found_file("delete_file", uri)
        super().delete_file(uri)

    def delete_dir(self, uri: str) -> None:
        """Delete one empty directory."""
        self._require_directory("delete_dir", uri)
        if any(super().listed_names(store_uri(uri))):
            raise self._refused("delete_dir", uri, "it is not empty")
        # Without the slash, some plugins would delete all names that have it as their prefix.
        super().delete_dir(f"{store_uri(uri).rstrip('/')}/")

    def rename_file(self, source: str, target: str) -> None:
        """Move a file or a whole directory: copy everything, then delete the source."""
        if not self.workarounds.rename_by_copy:
            super().rename_file(source, target)
            return
        from_uri, to_uri = store_uri(source), store_uri(target)
        found = self._found("rename_file", source)
        if from_uri == to_uri:
            return
        if not found.is_directory:
            self._copy(from_uri, self._file_target("rename_file", target), found.length)
            super().delete_file(from_uri)
            return
        self._refuse_directory_target(from_uri, to_uri)
        for part, statistics in list(self._tree(from_uri)):
            landing = to_uri + part.removeprefix(from_uri)
            if statistics.is_directory:
                self.create_dir(landing)
            else:
                self._copy(part, landing, statistics.length)
        self.delete_recursively(from_uri)

    def _file_target(self, operation: str, target: str) -> str:
        """Return the URI that a file is moved to; raise if a directory is there."""
        found = self._look(target)
        if found is not None and found.is_directory:
            raise self._refused(operation, target, "it is a directory")
        return store_uri(target)

    def _refuse_directory_target(self, from_uri: str, to_uri: str) -> None:
        if to_uri.startswith(f"{from_uri}/"):
            raise InvalidArgumentError(
                f"rename_file {from_uri!r}: {to_uri!r} lies within it",
                plugin=self.plugin,
                path=from_uri,
                operation="rename_file",
            )
        if self._look(to_uri) is not None:
            raise self._refused("rename_file", to_uri, "it exists")

    def _tree(self, directory: str) -> Iterator[tuple[str, FileStatistics]]:
        """Yield the files below a directory and the empty directories."""
        names = self.get_children(directory)
        if not names:
            yield directory, DIRECTORY
        for name in names:
            child = join_path(directory, name)
            statistics = self.stat(child)
            if statistics.is_directory:
                yield from self._tree(child)
            else:
                yield child, statistics

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file; if the target is a directory, copy the file into it."""
        length = self._found_file("copy_file", source).length
        found = self._look(target)
        if found is not None and found.is_directory:
            target = join_path(target, basename(source))
        self._copy(store_uri(source), store_uri(target), length)

    def _copy(self, source: str, target: str, length: int) -> None:
        if not length and not self.workarounds.cannot_write_empty_file:
            super().new_writable_file(target).close()  # most plugins refuse to copy an empty file
        elif source != target:
            super().copy_file(source, target)

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        self._found_file("new_random_access_file", uri)
        return super().new_random_access_file(uri)

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one."""
        return super().new_writable_file(self._writable(uri))

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file for writing at its end."""
        return super().new_appendable_file(self._writable(uri))

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Return a whole file as memory; an empty file is rejected as in any other filesystem."""
        if not self._found_file("new_read_only_memory_region_from_file", uri).length:
            raise empty_region(uri)
        return super().new_read_only_memory_region_from_file(uri)

    def _writable(self, uri: str) -> str:
        """Return a URI for writing; reject one that can only be a directory, without a request."""
        if uri.endswith("/") or depth_of(uri) <= self.workarounds.root_depth:
            raise self._refused("new_writable_file", uri, "a file needs a name")
        return uri
