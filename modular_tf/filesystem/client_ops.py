"""What the adapters of foreign clients share: operations on paths, and file objects.

No client is imported here: the caller who passes one has imported its library.
"""

from __future__ import annotations

import atexit
import os
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    DataLossError,
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
)
from modular_tf.filesystem.child_names import (
    FILE_AND_DIRECTORY,
    Listing,
    incomplete,
    store_listing,
    warn_left_out,
)
from modular_tf.filesystem.files import (
    ClientMemoryRegion,
    RandomAccessFile,
    ReadOnlyMemoryRegion,
    WritableFile,
    known_length,
)
from modular_tf.filesystem.held_writer import HeldWriter
from modular_tf.filesystem.python_errors import error_for, translated_errors
from modular_tf.filesystem.statistics import DeletedCounts, FileStatistics
from modular_tf.filesystem.uri import join_path
from modular_tf.filesystem.workarounds.readers import PiecewiseReader
from modular_tf.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer


def wrong_kind(operation: str, uri: str, kind: str) -> FailedPreconditionError:
    """Return the error for a path that is of another kind than an operation needs."""
    return FailedPreconditionError.of(operation, uri, f"it is {kind}")


_PIECE = 8 << 20
"""Bytes of each of the requests for a long read that are made at once."""
DIRECTORY = FileStatistics(0, 0, is_directory=True)


class Child(NamedTuple):
    """An entry in a directory of a client.

    Attributes:
        name: Its name as the client has it, which may be no name that a path can have; "" for keys
            with a doubled slash.
        is_directory: Whether it is one.
        statistics: What `stat` would return of it; None where the listing does not have that.
    """

    name: str
    is_directory: bool
    statistics: FileStatistics | None = None


class ClientOps(ABC):
    """The operations of `TF_FilesystemOps` that a foreign client can do. [any thread]

    Every other operation is missing on purpose: the host has defaults for those. Operations take
    URIs of the scheme that the client is registered for. The methods with an underscore take the
    client's paths and raise the client's errors; those are what an adapter defines.

    Args:
        fs: The client; it stays the caller's, closing a service does not close it.

    Attributes:
        is_distant: Whether each request takes a way through a network, and a part of a file that is
            asked for is all that comes: long reads are made by several requests at once.
    """

    is_distant = False

    def __init__(self, fs: Any) -> None:
        self.fs = fs

    # -- what an adapter defines --------------------------------------------------------------

    @abstractmethod
    def translate_name(self, uri: str) -> str:
        """Return the client's path for a URI."""

    def disk_path(self, uri: str) -> str | None:  # noqa: ARG002  (for adapters of disks)
        """Return the path on this machine's disk that a URI names; None where it names none."""
        return None

    @abstractmethod
    def _statistics(self, path: str) -> FileStatistics:
        """Return length, time and kind; `FileNotFoundError` for nothing."""

    def _is_directory(self, path: str) -> bool:
        return self._statistics(path).is_directory

    def _is_file(self, path: str) -> bool:
        """Return whether a file has a name that may be that of a directory too."""
        return not self._is_directory(path)

    @abstractmethod
    def _children(self, path: str, *, asks: bool = True) -> list[Child]:
        """Return the entries of a directory; a name that is listed twice is also a file.

        Args:
            path: The directory, or a file that other names lie below.
            asks: Whether what the listing does not show may take another request.
        """

    @abstractmethod
    def _is_above_others(self, path: str) -> bool:
        """Return whether something lies below a name, which may be that of a file."""

    @abstractmethod
    def _reader(self, path: str, uri: str) -> RandomAccessFile:
        """Open a file; `IsADirectoryError` for a directory."""

    @abstractmethod
    def _writer(self, path: str, uri: str, *, appends: bool) -> WritableFile: ...

    @abstractmethod
    def _content(self, path: str) -> bytes:
        """Return a whole file; `IsADirectoryError` for a directory."""

    @abstractmethod
    def _make_directory(self, path: str) -> None:
        """Create one directory that is not there; where a client has none, do nothing."""

    @abstractmethod
    def _make_directories(self, path: str) -> None:
        """Create a directory and its parents; fine where they exist."""

    @abstractmethod
    def _remove_file(self, path: str) -> None: ...

    @abstractmethod
    def _remove_empty(self, path: str) -> None: ...

    @abstractmethod
    def _remove_tree(self, path: str) -> None:
        """Remove a directory, or a file, and all that lies below its name."""

    @abstractmethod
    def _copy(self, old: str, new: str) -> None: ...

    @abstractmethod
    def _move_file(self, old: str, new: str) -> None: ...

    def _move_whole_directory(self, old: str, new: str) -> bool:  # noqa: ARG002  (for overriding)
        """Rename a directory by one call; return False where the client cannot."""
        return False

    # -- opening ------------------------------------------------------------------------------

    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        """Open an existing file for reading."""
        with translated_errors("new_random_access_file", uri):
            file = self._reader(self.translate_name(uri), uri)
        if self.is_distant and known_length(file) is not None:
            return PiecewiseReader(file, _PIECE)
        return file

    def new_writable_file(self, uri: str) -> WritableFile:
        """Create a file, or empty an existing one."""
        with translated_errors("new_writable_file", uri):
            return self._writer(self.translate_name(uri), uri, appends=False)

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file, created where missing, for writing at its end."""
        with translated_errors("new_appendable_file", uri):
            return self._writer(self.translate_name(uri), uri, appends=True)

    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        """Read a whole file into memory."""
        with translated_errors("new_read_only_memory_region_from_file", uri):
            return ClientMemoryRegion(self._content(self.translate_name(uri)), uri)

    @contextmanager
    def _of_a_file(self, path: str) -> Iterator[None]:
        """Raise `IsADirectoryError` in the place of a failure of the body on a directory."""
        try:
            yield
        except Exception as error:
            with suppress(FileNotFoundError):
                if self._is_directory(path):
                    raise IsADirectoryError(f"{path!r} is a directory") from error
            raise

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Return whether a path exists; a client's own `exists` may hide other errors."""
        try:
            self._kind(uri, "path_exists")
        except NotFoundError:
            return False
        return True

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind."""
        with translated_errors("stat", uri):
            return self._statistics(self.translate_name(uri))

    def is_directory(self, uri: str) -> bool:
        """Return whether it is a directory; `NotFoundError` for nothing."""
        return self._kind(uri, "is_directory")[1]

    def get_children(self, uri: str) -> list[str]:
        """Return the names in a directory."""
        found = self.listing(uri, is_thorough=False)
        warn_left_out(uri, found.left_out)
        return found.names

    def get_children_statistics(self, uri: str) -> dict[str, FileStatistics]:
        """Return the names in a directory, each with what `stat` returns; none that is gone."""
        found = self.listing(uri, is_thorough=False)
        warn_left_out(uri, found.left_out)
        statistics = dict(found.statistics)
        for name in found.names:
            if name not in statistics:
                with suppress(NotFoundError):
                    statistics[name] = self.stat(join_path(uri, name))
        return statistics

    def listing(
        self,
        uri: str,
        *,
        is_thorough: bool = True,
        with_statistics: bool = False,  # noqa: ARG002  (the listings of clients have them)
    ) -> Listing:
        """Return the names in a directory, and what else is there that no path leads to."""
        return _listing_of(self._listed(uri, is_thorough=is_thorough))

    def _listed(self, uri: str, *, is_thorough: bool) -> list[Child]:
        """Return the entries of a directory; `is_thorough` takes a file that others lie below."""
        with translated_errors("get_children", uri):
            path = self.translate_name(uri)
            if not self._is_directory(path) and not (is_thorough and self._is_above_others(path)):
                raise wrong_kind("get_children", uri, "not a directory")
            return self._children(path, asks=is_thorough)

    def is_file_and_directory(self, uri: str) -> bool:
        """Return whether a name is that of a file and of a directory, as stores allow it."""
        if self.disk_path(uri) is not None:
            return False
        try:
            path = self.translate_name(uri)
            return self._is_file(path) and self._is_above_others(path)
        except Exception:  # noqa: BLE001  (of any client: there is no file)
            return False

    def _kind(self, uri: str, operation: str) -> tuple[str, bool]:
        """Return the path of something that exists, and whether it is a directory."""
        with translated_errors(operation, uri):
            path = self.translate_name(uri)
            return path, self._is_directory(path)

    # -- changes ------------------------------------------------------------------------------

    def create_dir(self, uri: str) -> None:
        """Create one directory."""
        with translated_errors("create_dir", uri):
            path = self.translate_name(uri)
            with suppress(FileNotFoundError):
                self._statistics(path)
                raise AlreadyExistsError(f"create_dir {uri!r}: it exists", path=uri)
            self._make_directory(path)

    def recursively_create_dir(self, uri: str) -> None:
        """Create a directory and whatever parents are missing; fine where it exists."""
        with translated_errors("recursively_create_dir", uri):
            path = self.translate_name(uri)
            with suppress(FileNotFoundError):
                if not self._is_directory(path):
                    raise wrong_kind("recursively_create_dir", uri, "a file")
                return
            self._make_directories(path)

    def delete_file(self, uri: str) -> None:
        """Delete one file."""
        path, is_directory = self._kind(uri, "delete_file")
        if is_directory:
            raise wrong_kind("delete_file", uri, "a directory")
        with translated_errors("delete_file", uri):
            self._remove_file(path)

    def delete_dir(self, uri: str) -> None:
        """Delete one empty directory."""
        path, is_directory = self._kind(uri, "delete_dir")
        if not is_directory:
            raise wrong_kind("delete_dir", uri, "not a directory")
        with translated_errors("delete_dir", uri):
            if self._children(path, asks=False):
                raise wrong_kind("delete_dir", uri, "not empty")
            self._remove_empty(path)

    def delete_recursively(self, uri: str) -> DeletedCounts:
        """Delete everything below and including `uri`."""
        path, _ = self._kind(uri, "delete_recursively")
        on_disk = self.disk_path(uri)
        if on_disk is not None and not os.path.abspath(on_disk).strip("/"):
            raise wrong_kind("delete_recursively", uri, "the root of all files of this machine")
        with translated_errors("delete_recursively", uri):
            self._remove_tree(path)
        return DeletedCounts(0, 0)

    def rename_file(self, source: str, target: str) -> None:
        """Move a file or a directory; a directory as target takes it in.

        A directory is moved file by file where the client does not rename it: all is copied first,
        and a failure until then leaves it as it was.
        """
        old, new, is_directory = self._ends(source, target, "rename_file")
        if old == new:  # it lies in the directory that it is moved to
            return
        if self.is_file_and_directory(source):
            raise incomplete(source, [FILE_AND_DIRECTORY])
        with translated_errors("rename_file", source):
            if is_directory:
                self._move_directory(old.rstrip("/"), new.rstrip("/"), source)
            else:
                self._move_file(old, new)

    def copy_file(self, source: str, target: str) -> None:
        """Copy a file; a directory as target is copied into."""
        old, new, is_directory = self._ends(source, target, "copy_file")
        if is_directory:
            raise wrong_kind("copy_file", source, "a directory")
        with translated_errors("copy_file", source):
            if old != new:
                self._copy(old, new)

    def _ends(self, source: str, target: str, operation: str) -> tuple[str, str, bool]:
        """Return the paths from which and to which a file goes, and whether it is a directory."""
        old, is_directory = self._kind(source, operation)
        with translated_errors(operation, target):
            new = self.translate_name(target)
            with suppress(FileNotFoundError):
                if self._is_directory(new):
                    name = old.rstrip("/").rpartition("/")[2]
                    new = f"{new.rstrip('/')}/{name}"
                    if not is_directory and self._is_one_file(source, join_path(target, name)):
                        new = old
        return old, new, is_directory

    def _is_one_file(self, source: str, target: str) -> bool:
        """Return whether two names are those of one file on disk, by links."""
        mine, other = self.disk_path(source), self.disk_path(target)
        with suppress(OSError):  # one of them does not exist
            return mine is not None and other is not None and os.path.samefile(mine, other)
        return False

    # -- moving a tree ------------------------------------------------------------------------

    def _move_directory(self, old: str, new: str, source: str) -> None:
        if f"{new}/".startswith(f"{old}/"):
            raise wrong_kind("rename_file", source, "to be moved into itself")
        if self._is_there(new):
            raise wrong_kind("rename_file", source, f"in the way of what is at {new!r}")
        if not self._move_whole_directory(old, new):
            self._move_one_by_one(old, new, source)

    def _is_there(self, path: str) -> bool:
        try:
            self._is_directory(path)
        except FileNotFoundError:
            return False
        return True

    def _has_file(self, path: str) -> bool:
        """Return whether a file is there; `IsADirectoryError` for a directory."""
        try:
            is_directory = self._is_directory(path)
        except FileNotFoundError:
            return False
        if is_directory:
            raise IsADirectoryError(f"{path!r} is a directory")
        return True

    def _tree(self, path: str) -> dict[str, bool]:
        """Return the paths of a tree, its root first, and whether each is a directory.

        Raises:
            DataLossError: Something in it has no path.
        """
        found = {path: True}
        children = self._children(path)
        if left_out := _listing_of(children).left_out:
            raise incomplete(path, left_out)
        for name, is_directory, _ in children:
            child = f"{path}/{name}"
            found.update(self._tree(child) if is_directory else {child: False})
        return found

    def _move_one_by_one(self, old: str, new: str, source: str) -> None:
        """Copy each file of a tree, then delete what was copied, and directories that are empty."""
        found = self._tree(old)
        parents = {path.rpartition("/")[0] for path in found}
        made: list[str] = []
        try:
            for path in sorted(found):
                landing = new + path.removeprefix(old)
                made.append(landing)
                if found[path]:
                    with suppress(NotImplementedError):  # it has no directories
                        self._make_directories(landing)
                    if path not in parents:
                        self._require_made(landing, path, source)
                else:
                    self._copy_for_move(path, landing, source.rstrip("/") + path.removeprefix(old))
        except BaseException:
            self._delete_all({path: found[old + path.removeprefix(new)] for path in made})
            raise
        left = self._delete_all(found)
        if left:
            raise left[0]

    def _copy_for_move(self, path: str, landing: str, uri: str) -> None:
        """Copy a file of a tree; the error names the file, for the caller names the tree."""
        try:
            self._copy(path, landing)
        except Exception as error:  # noqa: BLE001  (of any client)
            known = error_for(error, path=uri, operation="copy_file")
            message = f"{known.message}; nothing was moved, so it stays where it is"
            kind = type(known)
            raise kind(message, path=uri, operation="rename_file") from without_secrets(error)

    def _require_made(self, landing: str, path: str, source: str) -> None:
        """Refuse to move an empty directory to where the client made none: it would be lost."""
        if not self._is_there(landing):
            kind = f"above the empty directory {path!r}, which the client cannot make"
            raise wrong_kind("rename_file", source, kind)

    def _delete_all(self, found: dict[str, bool]) -> list[Exception]:
        """Delete files and then empty directories; return what failed of what is still there."""
        failures: list[Exception] = []
        files = sorted(path for path, is_directory in found.items() if not is_directory)
        directories = sorted(found.keys() - set(files), reverse=True)
        for path in [*files, *directories]:
            try:
                if not found[path]:
                    self._remove_file(path)
                elif self._is_there(path):  # else it has gone with what was in it
                    if self._children(path, asks=False):
                        failures.append(wrong_kind("rename_file", path, "not empty"))
                    else:
                        self._remove_empty(path)
            except Exception as error:  # noqa: BLE001  (of any client)
                failures.append(error)
        return failures


def _listing_of(children: list[Child]) -> Listing:
    found = store_listing(sorted(child.name for child in children))
    reached = {*found.names} - found.both
    statistics = {
        child.name: child.statistics
        for child in children
        if child.name in reached and child.statistics is not None
    }
    return found._replace(statistics=statistics)


class ClientWriter(WritableFile):
    """A stream of a client into a file that grows while it is written."""

    __slots__ = ("_file",)

    def __init__(self, file: Any, uri: str) -> None:
        self.uri = uri
        self._file: Any = file

    def append(self, data: Buffer) -> None:
        """Add all of `data`."""
        file = self._open_file()
        with translated_errors("append", self.uri):
            file.write(data)

    def tell(self) -> int:
        """Return the position at which the next byte will be written."""
        file = self._open_file()
        with translated_errors("tell", self.uri):
            return int(file.tell())

    def flush(self) -> None:
        """Hand bytes on as far as the client does before a file is closed."""
        file = self._open_file()
        with translated_errors("flush", self.uri):
            file.flush()

    def close(self) -> None:
        """Complete the file; a second call does nothing."""
        if self._file is not None:
            try:
                with translated_errors("close", self.uri):
                    self._file.close()
            except ModularTFError:
                self._file = None
                raise
            self._file = None

    def _open_file(self) -> Any:
        if self._file is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._file


def put_when_closed(
    uri: str,
    put: Callable[[str, int], object],
    fill: Callable[[Callable[[Buffer], None]], int] | None = None,
) -> WritableFile:
    """Return a file that one call of a client puts into a store whole; see `HeldWriter`.

    Args:
        uri: The URI it is opened as.
        put: Stores the content of a file on disk, given its path and its length in bytes.
        fill: Writes what the file begins with, to append to that; returns how many bytes it has.

    Raises:
        DataLossError: Not all came of what the file begins with.
    """
    writer = HeldWriter(
        uri,
        lambda file, length: put(f"/proc/self/fd/{file.fileno()}", length),
        is_torn=fill is not None,
    )
    if fill is not None:
        size = fill(writer.append)
        if size != writer.tell():
            raise DataLossError(
                f"{uri!r}: expected {size} bytes to append to, found {writer.tell()}; try again",
                path=uri,
                operation="new_appendable_file",
            )
        writer.begin_with_held()
    _register_end()
    _writers.add(writer)
    return writer


_writers: WeakSet[HeldWriter] = WeakSet()


@cache
def _register_end() -> None:
    """Have unclosed files stored at exit, before the client's library is shut down.

    A library that was imported later than this module registers its shutdown later, which would
    then run first.
    """
    atexit.register(_end_unclosed_writers)


def _end_unclosed_writers() -> None:
    """Store the files that nobody closed; Python prints the first failure."""
    failures = []
    for writer in list(_writers):
        try:
            writer.end_unclosed()
        except ModularTFError as error:
            failures.append(error)
    if failures:
        raise failures[0]
