"""Object stores that follow the rules of files and directories.

An object store has names with slashes; its plugins emulate directories, each with its own gaps.
Here the host looks first (`store_queries`), rejects what a POSIX filesystem would reject, and
leaves to the plugin only what the plugin does correctly.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.errors import (
    AbortedError,
    AlreadyExistsError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from modular_tf.filesystem.child_names import FILE_AND_DIRECTORY, complete_listing, incomplete
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.location import Overlap, overlap
from modular_tf.filesystem.uri import basename, dirname, join_path
from modular_tf.filesystem.workarounds.readers import empty_region, read_and_ask
from modular_tf.filesystem.workarounds.store_lookup import DIRECTORY, depth_of, store_uri
from modular_tf.filesystem.workarounds.store_queries import StoreQueries
from modular_tf.filesystem.workarounds.whole_file import WholeFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion, WritableFile
    from modular_tf.filesystem.statistics import FileStatistics


_TAIL = 1 << 16
_MOST_VERSIONS = 3  # of a file that changes while it is read


class ObjectStoreFilesystem(StoreQueries):
    """One scheme of a plugin for an object store [any thread]

    Operations that take more than one request are not atomic: two processes that change the same
    directory can interfere with each other.
    """

    is_object_store = True

    # The host's defaults, built on the operations below: plugins match names by their prefix.
    recursively_create_dir = Filesystem.recursively_create_dir
    delete_recursively = Filesystem.delete_recursively

    # -- changes ------------------------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        """Create one directory, as an empty object where the plugin creates none."""
        is_inside = depth_of(uri) > self.workarounds.root_depth
        is_there = self._kind(uri) is not None if is_inside else self.path_exists(uri)
        if is_there:
            raise AlreadyExistsError(
                f"create_dir {uri!r}: it exists",
                plugin=self.plugin,
                path=uri,
                operation="create_dir",
            )
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
        self._no_directory("delete_file", uri, self._found_kind("delete_file", uri))
        self._delete_found(uri)

    def _delete_found(self, uri: str) -> None:
        """Delete a file that was there; a request whose answer was lost may have done it."""
        self._forget(uri)
        try:
            with suppress(NotFoundError):
                super().delete_file(uri)
        finally:
            self._forget(uri)  # a look meanwhile may have found it

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
            self._rename_by_plugin(source, target)
            return
        from_uri, to_uri = store_uri(source), store_uri(target)
        found = self._found("rename_file", source)
        if from_uri == to_uri:
            return
        if not found.is_directory:
            self._copy(from_uri, self._file_target("rename_file", target), found.length)
            self._delete_found(from_uri)
            return
        self._refuse_directory_target(from_uri, to_uri)
        if self.is_file_and_directory(from_uri):
            raise incomplete(from_uri, [FILE_AND_DIRECTORY], self.plugin)
        for part, statistics in list(self._tree(from_uri)):
            landing = to_uri + part.removeprefix(from_uri)
            if statistics.is_directory:
                self.create_dir(landing)
            else:
                self._copy(part, landing, statistics.length)
        self.delete_recursively(from_uri)

    def _rename_by_plugin(self, source: str, target: str) -> None:
        try:
            super().rename_file(source, target)
        finally:
            self._found_long.clear()  # what is renamed may be a directory
            self._long.clear()

    def _file_target(self, operation: str, target: str) -> str:
        """Return the URI that a file is moved to; raise if a directory is there."""
        found = self._kind(target)
        if found is not None and found.is_directory:
            raise self._refused(operation, target, "it is a directory")
        return store_uri(target)

    def _refuse_directory_target(self, from_uri: str, to_uri: str) -> None:
        if overlap((self, from_uri), (self, to_uri)) is Overlap.HOLDS:
            raise InvalidArgumentError(
                f"rename_file {from_uri!r}: {to_uri!r} lies within it",
                plugin=self.plugin,
                path=from_uri,
                operation="rename_file",
            )
        if self._kind(to_uri) is not None:
            raise self._refused("rename_file", to_uri, "it exists")

    def _tree(self, directory: str) -> Iterator[tuple[str, FileStatistics]]:
        """Yield the files below a directory and the empty directories."""
        names = complete_listing(self, directory).names
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
        length = self._length("copy_file", source)
        found = self._kind(target)
        if found is not None and found.is_directory:
            target = join_path(target, basename(source))
        self._copy(store_uri(source), store_uri(target), length)

    def _copy(self, source: str, target: str, length: int) -> None:
        if not length and not self.workarounds.cannot_write_empty_file:
            super().new_writable_file(target).close()  # most plugins refuse to copy an empty file
        elif source != target:
            self._forget(target)
            super().copy_file(source, target)

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading; a short one is read now, by one request."""
        operation = "new_random_access_file"
        if data := self._short_file(operation, uri):
            return WholeFile(uri, data)
        length, tail = self._confirmed_length(uri)
        length = length or self._length(operation, uri)
        return self._reader(uri, self._plain_reader(uri), length, tail)

    def _confirmed_length(self, uri: str) -> tuple[int, bytes]:
        """Return a long file's length if it is what the last look told, and its last bytes; else 0.

        A read that is to go one byte behind the end gets one byte less. The last bytes are what
        those read next whose format ends with an index, such as Parquet and Zip.
        """
        found = self._found_long.get(uri)
        if found is None or not self.workarounds.length_by_read or self._needs_length():
            return 0, b""
        n = min(_TAIL, found.length)
        with suppress(ModularTFError), self._plain_reader(uri) as file:
            with self.fetch_times.measured(n):
                tail = file.read(found.length - n, n + 1)
            if len(tail) == n:
                return found.length, tail
        return 0, b""

    def read_file(self, uri: str) -> bytes:
        """Return the bytes of a whole file: one read for a short one, which is not looked up.

        Raises:
            AbortedError: The file changed again and again while it was read.
        """
        return self._short_file("read_file", uri) or self._long_file(uri)

    def _short_file(self, operation: str, uri: str) -> bytes:
        """Return the bytes of a short file; none of one that is empty, or is to be looked up."""
        if self._needs_length() or uri.endswith("/") or self._long.get(uri):
            return b""
        most = self._most_at_first
        try:
            first = self._read_unseen(operation, uri, 0, most)
        except AbortedError:  # it changed meanwhile
            return b""
        self._note_length(uri, len(first))
        return first if len(first) < most else b""

    def read_range(self, uri: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; the file is looked up only if none come."""
        if self._needs_length() or size <= 0:
            return super().read_range(uri, offset, size)
        data = self._read_unseen("read_range", uri, offset, size)
        if not data:
            self._found_file("read_range", uri)
        return data

    def _read_unseen(self, operation: str, uri: str, offset: int, size: int) -> bytes:
        """Read a file that was not looked up; where that fails, raise what a look-up says."""
        try:
            with self._reader(uri, self._plain_reader(uri), None) as file:
                return self._checked_call(operation, uri, lambda: file.read(offset, size))
        except (PermissionDeniedError, UnauthenticatedError):
            raise
        except ModularTFError as error:
            if isinstance(error, NotFoundError):
                self._note_missing(error, store_uri(uri))
            if self._found_file(operation, uri).length <= offset:
                return b""  # some stores refuse a range behind the end
            raise

    def _long_file(self, uri: str) -> bytes:
        """Return the bytes of a file that may take several requests, all of one version of it."""
        if self.workarounds.max_read is None and not self.workarounds.counts_before_read:
            length = self._length("read_file", uri)
            with self._reader(uri, self._plain_reader(uri), length) as file:
                return file.read(0, length)
        data, seen = self._unchanged_file(uri)
        if data is not None:
            return data
        found = seen or self._found_file("read_file", uri)
        for _ in range(_MOST_VERSIONS):
            data, found = self._version(uri, found)
            if data is not None:
                return data
        raise AbortedError(
            f"read_file {uri!r}: it changed while it was read, {_MOST_VERSIONS} times; try again",
            plugin=self.plugin,
            path=uri,
            operation="read_file",
        )

    def _unchanged_file(self, uri: str) -> tuple[bytes | None, FileStatistics | None]:
        """Return the bytes of a long file if it is what the last look at it told, else None.

        That look is as good as one before the first request, but where a store brings the older
        version back while the file is read, time included: when a newer one is deleted. That is why
        it counts for a minute only. The second value is what the file is now, None if that is not
        known.
        """
        found = self._found_long.get(uri)
        if found is not None:
            with suppress(ModularTFError):  # it is no longer there, or shorter
                return self._version(uri, found)
        return None, None

    def _version(self, uri: str, found: FileStatistics) -> tuple[bytes | None, FileStatistics]:
        """Return the bytes of a file as it was found, None if it is another; and what it is now."""
        if not found.length:
            return b"", found
        is_counted_before = self.workarounds.counts_before_read
        one_request = self.workarounds.max_read
        ask = partial(self._found_file, "read_file", uri)
        if one_request is not None and found.length < one_request and not is_counted_before:
            with self._reader(uri, self._plain_reader(uri), None) as file:
                whole = file.read(0, found.length + 1)  # one more tells of a longer version
            return (whole, found) if len(whole) <= found.length else (None, ask())
        with self._plain_reader(uri) as file:
            piece = self.workarounds.read_at_once or one_request or found.length
            data, after = read_and_ask(file, found.length, piece, ask)
        return data if found == after else None, after

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
        self._forget(uri)
        return uri
