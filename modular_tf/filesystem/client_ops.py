"""Filesystems of other libraries' clients: operations on paths, and the files that are written.

No client is imported here: the caller who passes one has imported its library.
"""

from __future__ import annotations

import atexit
import errno
import os
from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import WeakSet

from modular_tf.errors import (
    ClosedError,
    DataLossError,
    ModularTFError,
    NotFoundError,
)
from modular_tf.filesystem.files import (
    DeletedCounts,
    FileStatistics,
    RandomAccessFile,
    ReadOnlyMemoryRegion,
    WritableFile,
)
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
from modular_tf.filesystem.python_errors import translated_errors
from modular_tf.filesystem.store_files import ClientMemoryRegion, PiecewiseReader, RangeReader
from modular_tf.filesystem.trees import Copying, Item, Removal, move_by_copy
from modular_tf.filesystem.uri import join_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Buffer

_Operation = TypeVar("_Operation", bound="Callable[..., Any]")

_PIECE = 8 << 20
"""Bytes of each of the requests for a long read that are made at once."""
_MOVES_AT_ONCE = 8

Child = tuple[str, FileStatistics | None]
"""An entry in a directory of a client, and what `stat` would return of it, if the listing has that.

The name is that of the client, which may be none that a path can have; "" for keys with a doubled
slash.
"""


def translated(operation: _Operation) -> _Operation:
    """Return an operation on a URI that raises our errors instead of a client's."""

    @wraps(operation)
    def checked(self: ClientOps, uri: str, *more: Any) -> Any:
        with translated_errors(operation.__name__, uri, self.plugin):
            return operation(self, uri, *more)

    return cast("_Operation", checked)


class ClientOps(Filesystem, ABC):
    """The filesystem of a foreign client. [any thread]

    The methods with an underscore are what an adapter defines. They take the client's paths, and
    raise the client's errors or Python's own. The client stays the caller's: closing a service does
    not close it. Where `is_distant`, a request brings only the bytes that it names, and long reads
    are made by several requests at once.
    """

    is_distant = False

    def __init__(self, fs: Any, scheme: str = "", plugin: str | None = None) -> None:
        super().__init__(scheme, plugin or type(fs).__name__)
        self.fs = fs

    @property
    def store(self) -> object:
        """The client, which may serve other schemes as well."""
        return self.fs

    # -- what an adapter defines --------------------------------------------------------------

    def disk_path(self, uri: str) -> str | None:  # noqa: ARG002  (for adapters of disks)
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
    def _children(self, path: str, *, may_request: bool = True) -> list[Child]:
        """Return the entries of a directory; a name that is listed twice is also a file.

        `path` may be a file that other names lie below. With `may_request`, what the listing does
        not show may take another request.
        """

    def _listed(self, path: str, *, may_request: bool) -> list[Child]:
        """Do as `_children`; raise for a file that no others lie below."""
        children: list[Child] = []
        with suppress(FileNotFoundError):  # some clients raise it for a file
            children = self._children(path, may_request=may_request)
        if not children and not self._is_directory(path):
            raise NotADirectoryError("it is not a directory")
        return children

    @abstractmethod
    def _is_above_others(self, path: str) -> bool:
        """Return whether something lies below a name, which may be that of a file."""

    @abstractmethod
    def _reader(self, path: str, uri: str) -> RangeReader:
        """Open a file; `IsADirectoryError` for a directory."""

    @abstractmethod
    def _writer(self, path: str, uri: str, *, appends: bool) -> WritableFile: ...

    @abstractmethod
    def _make_directory(self, path: str, *, parents: bool) -> None:
        """Create a directory that is not there; where a client has none, do nothing."""

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

    @translated
    def new_random_access_file(self, uri: str) -> RandomAccessFile:
        file = self._reader(self.translate_name(uri), uri)
        return PiecewiseReader(file, _PIECE) if self.is_distant else file

    @translated
    def new_writable_file(self, uri: str) -> WritableFile:
        return self._writer(self.translate_name(uri), uri, appends=False)

    @translated
    def new_appendable_file(self, uri: str) -> WritableFile:
        return self._writer(self.translate_name(uri), uri, appends=True)

    @translated
    def new_read_only_memory_region_from_file(self, uri: str) -> ReadOnlyMemoryRegion:
        with self._reader(self.translate_name(uri), uri) as file:
            return ClientMemoryRegion(file.read(0, file.known_length()), uri)

    # -- questions ----------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        # Translated first: some clients raise `FileNotFoundError` for a server that is gone.
        with suppress(NotFoundError), translated_errors("path_exists", uri, self.plugin):
            self._is_directory(self.translate_name(uri))
            return True
        return False

    @translated
    def stat(self, uri: str) -> FileStatistics:
        return self._statistics(self.translate_name(uri))

    @translated
    def is_directory(self, uri: str) -> bool:
        return self._is_directory(self.translate_name(uri))

    def get_children(self, uri: str) -> list[str]:
        found = self.listing(uri, is_thorough=False)
        warn_left_out(uri, found.left_out)
        return found.names

    def get_children_statistics(self, uri: str) -> dict[str, FileStatistics]:
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
        with translated_errors("get_children", uri, self.plugin):
            children = self._listed(self.translate_name(uri), may_request=is_thorough)
        found = store_listing(sorted(name for name, _ in children))
        reached = {*found.names} - found.both
        known = {name: facts for name, facts in children if name in reached and facts is not None}
        return found._replace(statistics=known)

    def is_file_and_directory(self, uri: str) -> bool:
        if self.disk_path(uri) is not None:
            return False
        try:
            path = self.translate_name(uri)
            return self._is_file(path) and self._is_above_others(path)
        except Exception:  # noqa: BLE001  (of any client: there is no file)
            return False

    def _is_there(self, path: str) -> bool:
        with suppress(FileNotFoundError):
            self._is_directory(path)
            return True
        return False

    def _has_file(self, path: str) -> bool:
        """Return whether a file is there; `IsADirectoryError` for a directory."""
        with suppress(FileNotFoundError):
            if self._is_directory(path):
                raise IsADirectoryError(f"{path!r} is a directory")
            return True
        return False

    # -- changes ------------------------------------------------------------------------------

    @translated
    def create_dir(self, uri: str) -> None:
        path = self.translate_name(uri)
        if self._is_there(path):
            raise FileExistsError("it exists")
        self._make_directory(path, parents=False)

    @translated
    def recursively_create_dir(self, uri: str) -> None:
        path = self.translate_name(uri)
        with suppress(FileNotFoundError):
            if not self._is_directory(path):
                raise NotADirectoryError("it is a file")
            return
        self._make_directory(path, parents=True)

    @translated
    def delete_file(self, uri: str) -> None:
        path = self.translate_name(uri)
        if self._is_directory(path):
            raise IsADirectoryError("it is a directory")
        self._remove_file(path)

    @translated
    def delete_dir(self, uri: str) -> None:
        path = self.translate_name(uri)
        if not self._is_directory(path):
            raise NotADirectoryError("it is not a directory")
        if self._children(path, may_request=False):
            raise OSError(errno.ENOTEMPTY, "it is not empty")
        self._remove_empty(path)

    @translated
    def delete_recursively(self, uri: str) -> DeletedCounts:
        path = self.translate_name(uri)
        self._is_directory(path)  # whose error says that nothing is there
        on_disk = self.disk_path(uri)
        if on_disk is not None and not os.path.abspath(on_disk).strip("/"):
            raise IsADirectoryError("it is the root of all files of this machine")
        self._remove_tree(path)
        return DeletedCounts(0, 0)

    @translated
    def rename_file(self, source: str, target: str) -> None:
        """Move a file or a directory; a directory as target takes it in.

        A directory is moved file by file where the client does not rename it: all is copied first,
        and a failure until then leaves it as it was.
        """
        old = self.translate_name(source)
        is_directory = self._is_directory(old)
        landing = self._landing(old, target)
        new = self.translate_name(landing)
        is_taken_in = landing != target and not is_directory
        if old == new or (is_taken_in and self._is_one_place(source, landing)):
            return  # it lies in the directory that it is moved to
        if self.is_file_and_directory(source):
            raise incomplete(source, [FILE_AND_DIRECTORY])
        if not is_directory:
            self._move_file(old, new)
            return
        old, new = old.rstrip("/"), new.rstrip("/")
        if f"{new}/".startswith(f"{old}/"):
            raise IsADirectoryError("it cannot be moved into itself")
        if self._is_there(new):
            raise IsADirectoryError(f"it would replace what is at {new!r}")
        if not self._move_whole_directory(old, new):
            self._move_entries(source, landing)

    @translated
    def copy_file(self, source: str, target: str) -> None:
        old = self.translate_name(source)
        if self._is_directory(old):
            raise IsADirectoryError("it is a directory")
        landing = self._landing(old, target)
        if not self._is_one_place(source, landing):
            self._copy(old, self.translate_name(landing))

    def _landing(self, old: str, target: str) -> str:
        """Return the URI at which something arrives: a directory takes it in."""
        with suppress(NotFoundError):
            if self.is_directory(target):
                return join_path(target, old.rstrip("/").rpartition("/")[2])
        return target

    def _is_one_place(self, source: str, target: str) -> bool:
        return overlap((self, source), (self, target)) is Overlap.SAME

    def _move_entries(self, source: str, target: str) -> None:
        """Copy a tree, then remove what was copied of it, and directories that are empty."""
        job = Job(_MOVES_AT_ONCE if self.is_distant else 1)
        tree = Item(Location(self, source.rstrip("/")), Location(self, target.rstrip("/")))
        Copying(job, dry_run=True, is_move=True).run([tree])
        job.raise_first()

        def undo(begun: set[str]) -> None:
            removal = Removal(Job(), take=begun.__contains__, with_directories=True)
            removal.run([Item.at(tree.target)])

        if not move_by_copy(job, tree, undo=undo):
            error, last = job.failures[0].error, job.failures[-1].error
            if error is last or not isinstance(error, ModularTFError):
                raise error
            message = f"{error.message}; {last}"
            raise type(error)(message, path=error.path, operation="rename_file") from error


# -- files that are written -----------------------------------------------------------------------


class ClientWriter(WritableFile):
    """A stream of a client into a file that grows while it is written."""

    __slots__ = ("_file",)

    def __init__(self, file: Any, uri: str) -> None:
        self.uri = uri
        self._file: Any = file

    def append(self, data: Buffer) -> None:
        file = self._open_file()
        with translated_errors("append", self.uri):
            file.write(data)

    def tell(self) -> int:
        file = self._open_file()
        with translated_errors("tell", self.uri):
            return int(file.tell())

    def flush(self) -> None:
        file = self._open_file()
        with translated_errors("flush", self.uri):
            file.flush()

    def close(self) -> None:
        """Complete the file; a second call does nothing, but after an interrupt of the first."""
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


_writers: WeakSet[HeldWriter] = WeakSet()


def put_when_closed(
    uri: str,
    put: Callable[[str, int], object],
    fill: Callable[[Callable[[Buffer], None]], int] | None = None,
) -> WritableFile:
    """Return a file that one call of a client puts into a store whole; see `HeldWriter`.

    `put` stores the file on disk whose path and length in bytes it is given. `fill`, for an append,
    writes what the file begins with and returns how many bytes it has; `DataLossError` if another
    number was written.
    """
    writer = HeldWriter(
        uri,
        lambda file, length: put(f"/proc/self/fd/{file.fileno()}", length),
        is_torn=fill is not None,
    )
    if fill is not None:
        size = fill(writer.append)
        if size != writer.tell():
            found = f"expected {size} bytes to append to, found {writer.tell()}; try again"
            raise DataLossError.of("new_appendable_file", uri, found)
        writer.begin_with_held()
    _register_end()
    _writers.add(writer)
    return writer


@cache
def _register_end() -> None:
    """Have unclosed files stored at exit, before a library that was imported later shuts down."""
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
