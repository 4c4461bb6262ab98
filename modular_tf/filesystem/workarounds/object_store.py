"""Object stores that follow the rules of files and directories.

A directory exists as long as it is the prefix of a name. Plugins emulate directories, each with its
own gaps: the host finds out what exists at a path, rejects what a POSIX filesystem would reject,
and leaves to the plugin only what that does correctly.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from modular_tf.errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from modular_tf.filesystem.copying import read_all
from modular_tf.filesystem.files import DIRECTORY, FileStatistics
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.held_writer import HeldWriter
from modular_tf.filesystem.jobs import Job
from modular_tf.filesystem.location import (
    FILE_AND_DIRECTORY,
    Listing,
    Location,
    Overlap,
    incomplete,
    overlap,
    store_listing,
    warn_left_out,
)
from modular_tf.filesystem.plugin_filesystem import PluginWritableFile
from modular_tf.filesystem.stat_cache import StatCache
from modular_tf.filesystem.store_files import PiecewiseReader, WholeFile, region_of
from modular_tf.filesystem.trees import Item, move_by_copy
from modular_tf.filesystem.uri import basename, create_uri, join_path, parse_uri
from modular_tf.filesystem.workarounds.store import Store

if TYPE_CHECKING:
    from io import FileIO

    from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion, WritableFile

_Writer = TypeVar("_Writer", bound="WritableFile")
_FIRST_BLOCK = 1 << 20  # bytes of a file to read before its length is known
_BLOCK = 1 << 23
_FOUND_FOR_S = 60.0
_RECENT_S = 1.0
_RENAMES_AT_ONCE = 8
_MAX_VERSIONS = 3  # of a file that changes while it is read


class StoreWriter(PluginWritableFile):
    """A plugin's writer whose close, which stores the file, is checked and explained."""

    __slots__ = ("__weakref__",)
    _filesystem: ObjectStore

    def close(self) -> None:
        """Close the plugin's file; once it is closed the server is not checked again."""
        if self.closed:
            return
        try:
            self._filesystem.checked_call("close", self.uri, super().close)
        except ModularTFError:
            # A check may have failed before the close: a file that is reported as lost must not
            # be stored later, over what others may have written by then.
            self.give_up()
            raise


class ObjectStore(Store):
    """One scheme of a plugin for an object store. [any thread]

    Operations that take more than one request are not atomic: two processes that change the same
    directory can interfere with each other.

    Attributes:
        root_depth: How many levels of a URI's path name the store's root.
        most_read: Most bytes to request in one read; None for any number.
        read_at_once: Bytes of each request where a long read is made by several at once; by
            default as many.
        length_by_size: `get_file_size` of the plugin takes fewer requests than a look-up. Its
            answer of 0 and its errors are not trusted.
        stat_prefers_directories: A name that is a file and a directory is reported as a directory.
            Elsewhere a file takes a listing before it is moved.
    """

    is_object_store = True
    writer_type = StoreWriter
    root_depth: ClassVar[int] = 0
    most_read: ClassVar[int | None] = None
    read_at_once: ClassVar[int | None] = None
    length_by_size: ClassVar[bool] = False
    stat_prefers_directories: ClassVar[bool] = False
    has_cheap_stat = True

    # The host's defaults, built on the operations below: plugins match names by their prefix.
    recursively_create_dir = Filesystem.recursively_create_dir
    delete_recursively = Filesystem.delete_recursively

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._first_block = min(_FIRST_BLOCK, self.most_read or _FIRST_BLOCK)
        # Of long files, for which a first read would be wasted: what was found, which a reader
        # verifies, and how long they are.
        self._found_long = StatCache[FileStatistics](_FOUND_FOR_S)
        self._long = StatCache[int](math.inf)

    # -- what exists --------------------------------------------------------------------------

    def _find(self, uri: str, operation: str, *, is_root: bool) -> FileStatistics | None:  # noqa: ARG002
        """Return the statistics of a path, None if nothing exists there.

        Each plugin reports that reliably by one of its operations only. The URI is that of
        `store_uri`; a root is a whole bucket or container; messages name the operation.
        """
        with suppress(NotFoundError):
            return Store.stat(self, uri)
        return None

    def _find_kind(self, uri: str, operation: str, *, is_root: bool) -> FileStatistics | None:
        return self._find(uri, operation, is_root=is_root)

    def _kind(self, uri: str, operation: str = "look") -> FileStatistics | None:
        """Return statistics of which only the kind need be right; None if nothing exists."""
        below_root = depth_of(uri) - self.root_depth
        if below_root < 0:
            return DIRECTORY
        return self._find_kind(store_uri(uri), operation, is_root=below_root == 0)

    def _found(self, operation: str, uri: str) -> FileStatistics:
        """Return the statistics of what exists, and remember those of a long file."""
        below_root = depth_of(uri) - self.root_depth
        if below_root < 0:
            return DIRECTORY
        version = self._found_long.version
        found = self._find(store_uri(uri), operation, is_root=below_root == 0)
        if found is None:
            raise NotFoundError.of(operation, uri, "nothing is there", plugin=self.plugin)
        if self._note_length(uri, found.length):
            self._found_long.put(uri, found, version)
        return found

    def _note_length(self, uri: str, length: int) -> bool:
        """Remember how long a file is; return whether it is long."""
        if length < self._first_block:
            self._long.forget(uri)
            return False
        self._long.put(uri, length, self._long.version)
        return True

    def _forget(self, uri: str) -> None:
        self._found_long.forget(uri)
        self._long.forget(uri)

    def _found_file(self, operation: str, uri: str) -> FileStatistics:
        found = self._found(operation, uri)
        if found.is_directory:
            raise self._refused(operation, uri, "it is a directory")
        return found

    def _is_directory(self, operation: str, uri: str) -> bool:
        found = self._kind(uri, operation)
        if found is None:
            raise NotFoundError.of(operation, uri, "nothing is there", plugin=self.plugin)
        return found.is_directory

    def _require_directory(self, operation: str, uri: str) -> None:
        if not self._is_directory(operation, uri):
            raise self._refused(operation, uri, "it is not a directory")

    def _refused(self, operation: str, uri: str, why: str) -> FailedPreconditionError:
        return FailedPreconditionError.of(operation, uri, why, plugin=self.plugin)

    def path_exists(self, uri: str) -> bool:
        try:
            return self._kind(uri, "path_exists") is not None
        except NotFoundError:
            return False

    def stat(self, uri: str) -> FileStatistics:
        return self._found("stat", uri)

    def is_directory(self, uri: str) -> bool:
        return self._is_directory("is_directory", uri)

    def was_file_just_now(self, uri: str) -> bool:
        found = self._found_long.get(uri, _RECENT_S)
        return found is not None and not found.is_directory

    def flush_caches(self) -> None:
        self._found_long.clear()
        self._long.clear()
        super().flush_caches()

    def get_file_size(self, uri: str) -> int:
        return self._length("get_file_size", uri)

    def _length(self, operation: str, uri: str) -> int:
        if self.length_by_size and not uri.endswith("/"):
            with suppress(ModularTFError):
                if length := Store.get_file_size(self, uri):  # 0 may be that of a directory
                    self._note_length(uri, length)
                    return length
        return self._found_file(operation, uri).length

    def get_children(self, uri: str) -> list[str]:
        found = self.listing(uri, is_thorough=False)
        warn_left_out(uri, found.left_out)
        return found.names

    def listing(
        self,
        uri: str,
        *,
        is_thorough: bool = True,
        with_statistics: bool = False,  # noqa: ARG002  (plugins list names alone)
    ) -> Listing:
        """Return the names in a directory, and what else is there that no path leads to.

        Plugins list no keys with a doubled slash, so these take a request of their own.
        """
        listed = self.listed_names(store_uri(uri))
        if not listed:
            self._require_directory("get_children", uri)
        found = store_listing(filter(None, listed))
        if is_thorough and depth_of(uri) >= self.root_depth:
            with suppress(NotFoundError):
                if any(self.listed_names(f"{store_uri(uri).rstrip('/')}//")):
                    return found._replace(unnamed=("", *found.unnamed))
        return found

    def is_file_and_directory(self, uri: str) -> bool:
        """Return whether an object has this name, and others lie below it.

        Where the store may not be listed, its files are read by their names alone.
        """
        if depth_of(uri) <= self.root_depth:
            return False
        with suppress(NotFoundError, PermissionDeniedError):
            # Of keys with '//' some plugins list an empty name, as of a marker, others none.
            if any(any(self.listed_names(store_uri(uri) + end)) for end in ("/", "//")):
                with Store.new_random_access_file(self, store_uri(uri)) as file:
                    self.checked_call("stat", uri, lambda: file.read(0, 1))
                return True
        return False

    # -- changes ------------------------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        is_inside = depth_of(uri) > self.root_depth
        is_there = self._kind(uri) is not None if is_inside else self.path_exists(uri)
        if is_there:
            raise AlreadyExistsError.of("create_dir", uri, "it exists", plugin=self.plugin)
        if is_inside:
            self._create_directory(store_uri(uri))
        else:
            Store.create_dir(self, store_uri(uri))

    def _create_directory(self, uri: str) -> None:
        """Create a directory in a bucket: an empty object whose name ends in a slash."""
        self._created(f"{uri}/").close()

    def delete_file(self, uri: str) -> None:
        if self._is_directory("delete_file", uri):
            raise self._refused("delete_file", uri, "it is a directory")
        self._delete_found(uri)

    def _delete_found(self, uri: str) -> None:
        """Delete a file that was there; a request whose answer was lost may have done it."""
        self._forget(uri)
        try:
            with suppress(NotFoundError):
                Store.delete_file(self, store_uri(uri))
        finally:
            self._forget(uri)  # a look-up meanwhile may have found it

    def delete_dir(self, uri: str) -> None:
        self._require_directory("delete_dir", uri)
        if any(self.listed_names(store_uri(uri))):
            raise self._refused("delete_dir", uri, "it is not empty")
        # Without the slash, some plugins would delete all names that have it as their prefix.
        Store.delete_dir(self, f"{store_uri(uri).rstrip('/')}/")

    def does_itself(self, operation: str) -> bool:
        """Return False for a rename: it is a copy and a deletion; plugins match names by prefix."""
        return operation != "rename_file" and super().does_itself(operation)

    def rename_file(self, source: str, target: str) -> None:
        """Move a file or a whole directory: copy everything, then delete the source."""
        from_uri, to_uri = store_uri(source), store_uri(target)
        found = self._found("rename_file", source)
        if from_uri == to_uri:
            return
        if found.is_directory:
            self._rename_directory(from_uri, to_uri)
            return
        if not self.stat_prefers_directories and self.is_file_and_directory(from_uri):
            raise incomplete(from_uri, [FILE_AND_DIRECTORY], self.plugin)
        there = self._kind(target)
        if there is not None and there.is_directory:
            raise self._refused("rename_file", target, "it is a directory")
        self._copy(from_uri, to_uri, found.length)
        self._delete_found(from_uri)

    def _rename_directory(self, from_uri: str, to_uri: str) -> None:
        if overlap((self, from_uri), (self, to_uri)) is Overlap.HOLDS:
            within = f"{to_uri!r} lies within it"
            raise InvalidArgumentError.of("rename_file", from_uri, within, plugin=self.plugin)
        if self._kind(to_uri) is not None:
            raise self._refused("rename_file", to_uri, "it exists")
        if self.is_file_and_directory(from_uri):
            raise incomplete(from_uri, [FILE_AND_DIRECTORY], self.plugin)
        job = Job(_RENAMES_AT_ONCE)
        item = Item(Location(self, from_uri), Location(self, to_uri))
        # What has no path is found before anything is copied.
        if move_by_copy(job, item, dry_run=True):
            move_by_copy(job, item)
        job.raise_first()

    def copy_file(self, source: str, target: str) -> None:
        length = self._length("copy_file", source)
        found = self._kind(target)
        if found is not None and found.is_directory:
            target = join_path(target, basename(source))
        self._copy(store_uri(source), store_uri(target), length)

    def _copy(self, source: str, target: str, length: int) -> None:
        """Copy a file of known length to a name that is not that of a directory."""
        self._forget(target)
        if not length:
            self._created(target).close()  # plugins refuse to copy an empty file
        elif source != target:
            Store.copy_file(self, source, target)

    # -- reading ------------------------------------------------------------------------------

    def _open(self, uri: str, length: int | None = None, tail: bytes = b"") -> PiecewiseReader:
        """Open a file that was or was not looked up, whose last bytes may be known."""
        file = Store.new_random_access_file(self, uri)
        return PiecewiseReader(file, self.most_read, self.read_at_once, length=length, tail=tail)

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading; a short one is read now, by one request."""
        operation = "new_random_access_file"
        if data := self._short_file(operation, uri):
            return WholeFile(uri, data)
        earlier = self._found_long.get(uri)
        length, tail = self._confirmed_length(uri)
        file = self._open(uri, length or self._length(operation, uri), tail)
        file.found = self._found_long.get(uri)
        file.is_found_now = file.found is not earlier
        return file

    def open_to_copy(self, uri: str) -> RandomAccessFile:
        """Open a file; a long one that was found in the last minute without a request."""
        found = self._found_long.get(uri)
        if found is None or found.is_directory:
            return self.new_random_access_file(uri)
        file = self._open(uri, found.length)
        file.found = found
        return file

    def _confirmed_length(self, uri: str) -> tuple[int, bytes]:  # noqa: ARG002  (for subclasses)
        """Return a file's length, where a look-up is not needed, and its last bytes; else 0."""
        return 0, b""

    def read_file(self, uri: str) -> bytes:
        """Return the bytes of a whole file: one read for a short one, which is not looked up."""
        return self._short_file("read_file", uri) or self._read_long_file(uri)

    def _short_file(self, operation: str, uri: str) -> bytes:
        """Return the bytes of a short file; none of one that is empty, or is to be looked up."""
        if uri.endswith("/") or self._long.get(uri):
            return b""
        try:
            first = self._read_unseen(operation, uri, 0, self._first_block)
        except AbortedError:  # it changed meanwhile
            return b""
        self._note_length(uri, len(first))
        return first if len(first) < self._first_block else b""

    def read_range(self, uri: str, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; the file is looked up only if none come."""
        if size <= 0:
            return super().read_range(uri, offset, size)
        data = self._read_unseen("read_range", uri, offset, size)
        if not data:
            self._found_file("read_range", uri)
        return data

    def _read_unseen(self, operation: str, uri: str, offset: int, size: int) -> bytes:
        """Read a file that was not looked up; where that fails, raise what a look-up finds."""
        try:
            with self._open(uri) as file:
                return self.checked_call(operation, uri, lambda: file.read(offset, size))
        except (PermissionDeniedError, UnauthenticatedError):
            raise
        except ModularTFError as error:
            if isinstance(error, NotFoundError):
                self._note_missing(error, store_uri(uri))
            if self._found_file(operation, uri).length <= offset:
                return b""  # some stores refuse a range past the end
            raise

    def _note_missing(self, error: NotFoundError, uri: str) -> None:
        """Take note of a read that found no file."""

    def _read_long_file(self, uri: str) -> bytes:
        """Return the bytes of a file that may take several requests, all of one version of it.

        Statistics of the last minute serve as those from before the first request. They do not if a
        store restores an older version, with its time, while the file is read.
        """
        found = self._found_long.get(uri)
        if found is not None:
            with suppress(ModularTFError):  # the file is gone by now, or shorter
                if (data := self._read_version(uri, found)) is not None:
                    return data
        for _ in range(_MAX_VERSIONS):
            found = self._found_file("read_file", uri)
            if (data := self._read_version(uri, found)) is not None:
                return data
        changed = f"it changed while it was read, {_MAX_VERSIONS} times; try again"
        raise AbortedError.of("read_file", uri, changed, plugin=self.plugin)

    def _read_version(self, uri: str, found: FileStatistics) -> bytes | None:
        """Return the bytes of the version of a file that was found; None if there is another."""
        if not found.length:
            return b""
        if self.most_read is not None and found.length < self.most_read:
            with self._open(uri) as file:
                data = file.read(0, found.length + 1)  # one more shows a longer version
            return data if len(data) <= found.length else None
        plugin_file, length = Store.new_random_access_file(self, uri), found.length
        with PiecewiseReader(plugin_file, self.most_read, self.read_at_once, length=length) as file:
            data = file.read(0, length)
        # After all pieces: one may be served late, after a change that was not there before.
        is_same = self._found_file("read_file", uri) == found
        return data if is_same and len(data) == length else None

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Return a whole file as memory, which the host reads; few plugins read it well."""
        return region_of(uri, self.read_file(uri))

    # -- writing ------------------------------------------------------------------------------

    def new_writable_file(self, uri: str) -> WritableFile:
        return self._remembered(self._created(self._writable(uri)))

    def _created(self, uri: str) -> WritableFile:
        return Store.new_writable_file(self, uri)

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file for writing at its end: it is stored again, with its old content first."""
        if not self.path_exists(self._writable(uri)):
            return self.new_writable_file(uri)
        writer = self._held_writer(uri, is_torn=True)
        read_all(Location(self, uri), writer.append, block=_BLOCK)
        writer.begin_with_held()
        return writer

    def _writable(self, uri: str) -> str:
        """Return a URI for writing; reject one that can only be a directory, without a request."""
        if uri.endswith("/") or depth_of(uri) <= self.root_depth:
            raise self._refused("new_writable_file", uri, "a file needs a name")
        self._forget(uri)
        return uri

    def _held_writer(self, uri: str, *, is_torn: bool = False) -> HeldWriter:
        def store(file: FileIO, length: int) -> None:
            with self._created(uri) as writer:
                done = 0
                while block := os.pread(file.fileno(), min(_BLOCK, length - done), done):
                    writer.append(block)
                    done += len(block)

        return self._remembered(HeldWriter(uri, store, is_torn=is_torn))

    def _remembered(self, writer: _Writer) -> _Writer:
        """Return a writer, which `close` of the filesystem closes if it is open then."""
        self._writers.add(writer)
        return writer


def store_uri(uri: str) -> str:
    """Return a URI without trailing slashes; the URI of a root ends with one slash."""
    scheme, host, path = parse_uri(uri)
    return create_uri(scheme, host, path.rstrip("/") or "/")


def depth_of(uri: str) -> int:
    """Return how many levels a URI's path has."""
    return len([level for level in parse_uri(uri).path.split("/") if level])
