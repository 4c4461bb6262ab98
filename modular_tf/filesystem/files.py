"""The three kinds of file objects of all filesystems, and the statistics of files.

They are context managers, safe to close twice, and refuse use after close with `ClosedError`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.errors import ModularTFError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import (  # type: ignore[attr-defined,unused-ignore]
        Buffer,
        Callable,
        Iterator,
    )

    from typing_extensions import Self

SHORT_FILE = 64 << 10
"""Bytes: a file that is shorter is read whole without a question for its length."""


class FileStatistics(NamedTuple):
    """The result of `stat` (`TF_FileStatistics`).

    Attributes:
        length: Bytes; meaningless for a directory.
        mtime_nsec: Time of last change, nanoseconds since 1970; 0 or less where unknown.
        is_directory: Whether it is one.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


DIRECTORY = FileStatistics(0, 0, is_directory=True)
"""A directory of which nothing else is known, as those of stores."""


class DeletedCounts(NamedTuple):
    """The numbers of files and directories that `delete_recursively` could not delete."""

    undeleted_files: int
    undeleted_dirs: int


class _Closable(ABC):
    """A context manager with a `close` that may be called twice."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> None:
        """Release it; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RandomAccessFile(_Closable):
    """A file to read from at any position, by any number of threads at once.

    Attributes:
        uri: What it was opened as.
        holds_bytes: Whether reads may come from its memory, so that their duration shows nothing.
    """

    __slots__ = ("uri",)
    uri: str
    holds_bytes = False

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        buffer = bytearray(n)
        return bytes(memoryview(buffer)[: self.readinto(offset, buffer)])

    def known_length(self) -> int | None:
        """Return the length in bytes that was learned when it was opened; None if none was."""
        return None

    @abstractmethod
    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset` without a copy between; return the number of bytes read.

        The count falls short of the buffer's size only where the file ends.
        """


class Written(_Closable):
    """A file object whose `with` block closes it, and gives it up where an exception leaves it."""

    __slots__ = ()

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self.close()
        else:
            self.give_up()

    def discard(self) -> None:
        """Release it; what was written need not be stored.

        A store that keeps a file when it is closed stays as it was. Elsewhere what was appended may
        stay, as after `close`, which this is by default.
        """
        self.close()

    def give_up(self) -> None:
        """Discard it for a reason that is raised already, so that no error of it is."""
        with suppress(ModularTFError):
            self.discard()


class WritableFile(Written):
    """A file that grows at its end, used by one thread at a time.

    An exception that leaves its `with` block discards it.

    Attributes:
        uri: What it was opened as.
        is_stored_by_close: Whether its store has nothing of it before it is closed, or flushed, so
            that `discard` leaves the store as it was.
        is_torn: Whether an append to such a store failed or was interrupted, so that it lacks
            bytes.
    """

    __slots__ = ("uri",)
    uri: str
    is_stored_by_close = False
    is_torn = False

    @abstractmethod
    def append(self, data: Buffer) -> None:
        """Add all of `data`, any contiguous buffer of bytes, at the end."""

    @abstractmethod
    def tell(self) -> int:
        """Return the position at which the next byte will be written."""

    def appended(self) -> int | None:
        """Return how many bytes were added since it was opened; None if they are not counted.

        An interrupt may come when `append` has done its work and has not returned.
        """
        return None

    def flush(self) -> None:
        """Hand buffered bytes on; they need not have reached the disk."""

    def sync(self) -> None:
        """Return when all bytes written so far have reached the store."""
        self.flush()

    def require_uninterrupted(self, operation: str) -> None:
        """Refuse an operation to a signal handler that has interrupted a call of the file.

        Raises:
            FailedPreconditionError: That call is one of this thread, and goes on afterwards.
        """

    def is_failure(self, error: Exception) -> bool:
        """Return whether an exception comes from the file, not from a signal handler in its call.

        Files that users write in Python may raise any, and most do not count what they are given.
        """
        return isinstance(error, ModularTFError) or self.appended() is None

    def end(self) -> None:
        """End a file that nobody closed: it is stored, unless it is torn."""
        if self.is_torn:
            self.give_up()
        else:
            self.close()


class ReadOnlyMemoryRegion(_Closable):
    """A whole file as memory.

    Attributes:
        uri: What it was opened as.
    """

    __slots__ = ("uri",)
    uri: str

    @abstractmethod
    def view(self) -> memoryview:
        """Return the bytes, read-only; the view may outlive `close`, which then waits for it."""

    @abstractmethod
    def __len__(self) -> int: ...


def read_rest(
    file: RandomAccessFile, start: int, length: Callable[[], int], first: int = SHORT_FILE
) -> bytes:
    """Return all bytes of a file from an offset on, by as few reads as its length allows.

    Where the file does not know its length, `first` bytes are read, and only if there are so many
    is `length` called.
    """
    known = file.known_length()
    if known is not None and (start < known or not start):
        return file.read(start, known - start)
    data = file.read(start, first)
    if len(data) < first:
        return data
    return read_on(file, start, data, length)


def read_on(file: RandomAccessFile, start: int, first: bytes, length: Callable[[], int]) -> bytes:
    """Return all bytes from `start` on, where `first` was read there and more may follow.

    A long file is read again from `start` in one piece, because joining two pieces would copy it.
    """
    try:
        expected = length() - start
    except NotFoundError:  # deleted since it was opened: it still reads
        expected = 0
    if expected > len(first):
        return file.read(start, expected)
    # Some lengths are false, such as that of a file in /proc.
    return first + b"".join(blocks(file, start + len(first)))


def blocks(file: RandomAccessFile, start: int = 0, size: int = 512 << 10) -> Iterator[bytes]:
    """Yield the bytes of a file from `start` to its end, `size` of them at a time."""
    while block := file.read(start, size):
        yield block
        start += len(block)


# -- files of users' classes ------------------------------------------------------------------


class _Reader(RandomAccessFile):
    """A file of another class, with the defaults of what it lacks."""

    def __init__(self, file: Any, uri: str) -> None:
        self.uri, self._file = uri, file
        _take_over(self, file, "holds_bytes", "known_length", "read")

    def readinto(self, offset: int, buffer: Buffer) -> int:
        return int(self._file.readinto(offset, buffer))

    def close(self) -> None:
        self._file.close()


class _Writer(WritableFile):
    """The same for one that is written; its own `with` decides what an exception leaves."""

    def __init__(self, file: Any, uri: str) -> None:
        self.uri, self._file = uri, file
        _take_over(self, file, "appended", "discard", "flush", "is_stored_by_close")
        _take_over(self, file, "require_uninterrupted", "sync")

    def __exit__(self, *error: object) -> None:
        own = getattr(type(self._file), "__exit__", None)
        if own is None:
            super().__exit__(*error)
        else:
            own(self._file, *error)

    def append(self, data: Buffer) -> None:
        self._file.append(data)

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()


def _take_over(adapter: object, file: object, *names: str) -> None:
    for name in names:
        if hasattr(file, name):
            setattr(adapter, name, getattr(file, name))


def _completed_writer(file: Any, uri: str) -> WritableFile:
    return file if isinstance(file, WritableFile) else _Writer(file, uri)


COMPLETED: dict[str, Callable[[Any, str], object]] = {
    "new_random_access_file": lambda file, uri: (
        file if isinstance(file, RandomAccessFile) else _Reader(file, uri)
    ),
    "new_writable_file": _completed_writer,
    "new_appendable_file": _completed_writer,
}
"""What gives a file of any class, with its URI, the methods of ours, by the operation."""


def completing(name: str, operation: Any) -> Any:
    """Return an operation of a class that opens files, with files that have all methods."""
    complete = COMPLETED[name]

    @wraps(operation)
    def opening(self: object, uri: str, *more: Any, **named: Any) -> object:
        return complete(operation.__get__(self, type(self))(uri, *more, **named), uri)

    return opening
