"""The contents of files, of many at once: `cat`, `cat_ranges`, `pipe`."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import AlreadyExistsError, ModularTFError, NotFoundError
from modular_tf.filesystem.files import known_length
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.fsspec import ranges
from modular_tf.fsspec.changes import Changes
from modular_tf.fsspec.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from modular_tf.filesystem.files import RandomAccessFile


class Contents(Changes):
    """The part of `ModularFileSystem` that reads and writes whole files and ranges of them."""

    def cat_file(
        self, path: Any, start: int | None = None, end: int | None = None, **_: Any
    ) -> bytes:
        """Return the bytes `start` to `end` of a file; negative ones count from its end."""
        path = self._strip_protocol(path)
        if not start and end is None:
            with self._no_directory(path):
                return self.filesystem.read_file(self.uri(path))
        return self._ranges_of_one(path, [ranges.Limits(0, start, end)])[0][1]

    def cat(
        self,
        path: Any,
        recursive: bool = False,
        on_error: str = "raise",
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return the bytes of a file, or those of many by path, which are read at once.

        Args:
            path: A path, a pattern, or a list of them.
            recursive: Read all files below directories.
            on_error: "raise" the first error, "return" errors in place of bytes, or "omit" the
                files that have them.
            batch_size: How many files are read at once at most; -1 for as many as configured.
            kwargs: Passed to `cat_file`, such as `start` and `end`.
        """
        paths = self._files_in(path) if recursive else self.expand_path(path)
        if paths == [self._strip_protocol(path)] and not isinstance(path, list):
            return self.cat_file(paths[0], **kwargs)
        found: dict[str, Any] = {}
        crew = self._crew(batch_size)
        for outcome in crew.run(lambda one: self.cat_file(one, **kwargs), paths):
            if outcome.error is None:
                found[outcome.item] = outcome.result
            elif on_error == "raise" or not isinstance(outcome.error, Exception):
                raise outcome.error
            elif on_error == "return":
                found[outcome.item] = outcome.error
        return found

    def _files_in(self, path: Any) -> list[str]:
        """Return the paths of all files in directories, and of the files among what is named."""
        survey = Survey(self)
        found: list[str] = survey.expand_path(path, recursive=True)
        return [one for one in found if not survey.is_known_directory(one)]

    def cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        batch_size: int | None = None,
        **_: Any,
    ) -> list[Any]:
        """Return ranges of bytes of files, in the order asked for, read at once.

        A file is opened once, or not at all in an object store. Ranges near each other are read
        together from a network.

        Args:
            paths: Which files; one may come often.
            starts: The first byte of each range, or one for all, as in `cat_file`.
            ends: The byte behind each range, or one for all, as in `cat_file`.
            max_gap: Bytes between two ranges that are read together at most. Default: 256 KiB
                where a network is read, else nothing is read together.
            on_error: "return" errors in place of bytes, or "raise" the first one.
            batch_size: How many reads are made at once at most; -1 for as many as configured.
        """
        wanted = _by_path([self._strip_protocol(path) for path in _list(paths)], starts, ends)
        if max_gap is None and not is_of_this_machine(self.scheme):
            max_gap = ranges.GAP_OF_NETWORK
        answers: list[Any] = [b""] * len(paths)
        reads = self._reads(wanted, max_gap)
        for outcome in self._crew(batch_size).run(lambda read: read.make(), reads):
            if outcome.error is None:
                for number, data in outcome.get():
                    answers[number] = data
            elif on_error == "return" and isinstance(outcome.error, Exception):
                for number in outcome.item.numbers:
                    answers[number] = outcome.error
            else:
                raise outcome.error
        return answers

    def _reads(self, wanted: dict[str, list[ranges.Limits]], gap: int | None) -> Iterator[_Read]:
        for path, limits in wanted.items():
            if any(one.needs_size for one in limits):
                numbers = [one.number for one in limits]
                yield _Read(numbers, partial(self._ranges_of_one, path, limits, gap))
                continue
            groups = list(ranges.merged([one.wanted(None) for one in limits], gap))
            file: _SharedFile | _UnopenedFile
            if len(groups) == 1 or self.filesystem.is_object_store:
                file = _UnopenedFile(partial(self._read_unopened, path))
            else:
                file = _SharedFile(partial(self._opened, path), len(groups))
            for group in groups:
                yield _Read([one.number for one in group], partial(file.read, group))

    def _ranges_of_one(
        self, path: str, limits: Sequence[ranges.Limits], gap: int | None = None
    ) -> list[tuple[int, bytes]]:
        """Return ranges of one file, some of which may be counted from its end."""
        if all(one.is_whole for one in limits):
            whole = self.cat_file(path)
            return [(one.number, whole) for one in limits]
        counts_back = any(one.needs_size for one in limits)
        if not counts_back and len(limits) == 1:
            return self._read_unopened(path, [limits[0].wanted(None)])
        with self._opened(path) as file, self._no_directory(path):
            size = self._size_of(path, file) if counts_back else None
            groups = ranges.merged([one.wanted(size) for one in limits], gap)
            return [pair for group in groups for pair in _read_group(file, group)]

    def _read_unopened(self, path: str, group: Sequence[ranges.Wanted]) -> list[tuple[int, bytes]]:
        """Return ranges of a file by one read, which needs no open file."""
        with self._no_directory(path):
            data = self.filesystem.read_range(self.uri(path), *ranges.span(group))
        return list(ranges.cut_apart(group, data))

    def _opened(self, path: str) -> RandomAccessFile:
        with self._no_directory(path):
            return self.filesystem.new_random_access_file(self.uri(path))

    def _size_of(self, path: str, file: RandomAccessFile) -> int:
        """Return the size of an open file, which may be known since it was opened."""
        known = known_length(file)
        return self._file_size(path) if known is None else known

    def _file_size(self, path: str) -> int:
        entry = self.info(path)
        if entry["type"] == "directory":
            raise self._is_a_directory(path)
        return int(entry["size"])

    @contextmanager
    def _no_directory(self, path: str) -> Iterator[None]:
        """Raise `IsADirectoryError` if an operation has failed because of a directory."""
        try:
            yield
        except NotFoundError:
            raise
        except ModularTFError as error:
            if self.isdir(path):
                raise self._is_a_directory(path) from error
            raise

    def pipe_file(self, path: Any, value: Any, mode: str = "overwrite", **kwargs: Any) -> None:
        """Write the bytes of a file; `mode="create"` refuses to replace one.

        Raises:
            AlreadyExistsError: Something is there and the mode is "create".
        """
        if mode == "create" and self.exists(path):
            raise AlreadyExistsError(f"{self.uri(path)} exists already", path=self.uri(path))
        super().pipe_file(path, value, **kwargs)

    def pipe(
        self, path: Any, value: Any = None, batch_size: int | None = None, **kwargs: Any
    ) -> None:
        """Write the bytes of a file, or of many at once, given as a dictionary by path."""
        if not isinstance(path, dict):
            super().pipe(path, value, **kwargs)
            return
        write = self.pipe_file
        for outcome in self._crew(batch_size).run(
            lambda item: write(item[0], item[1], **kwargs), path.items()
        ):
            outcome.get()


class _Read(NamedTuple):
    """A read of several ranges.

    Attributes:
        numbers: The places of the ranges among all that are wanted.
        make: Returns the bytes of each range with its number.
    """

    numbers: Sequence[int]
    make: Callable[[], list[tuple[int, bytes]]]


class _UnopenedFile:
    """A file of a store that knows no open files: each read stands alone.

    Args:
        read: Reads a group of ranges. Once it finds no file, it is not called again.
    """

    def __init__(self, read: Callable[[Sequence[ranges.Wanted]], list[tuple[int, bytes]]]) -> None:
        self._read = read
        self._missing: NotFoundError | None = None

    def read(self, group: Sequence[ranges.Wanted]) -> list[tuple[int, bytes]]:
        """Return the ranges of a group by number."""
        if self._missing is not None:
            raise self._missing
        try:
            return self._read(group)
        except NotFoundError as error:
            self._missing = error
            raise


class _SharedFile:
    """A file that several threads read, opened by the first and closed by the last of some reads.

    Args:
        opener: Opens it.
        reads: How many reads there will be.
    """

    def __init__(self, opener: Callable[[], RandomAccessFile], reads: int) -> None:
        self._opener = opener
        self._left = reads
        self._lock = ForkLock()
        self._file: RandomAccessFile | None = None
        self._error: Exception | None = None

    def read(self, group: Sequence[ranges.Wanted]) -> list[tuple[int, bytes]]:
        """Return the ranges of a group by number."""
        try:
            return list(_read_group(self._opened(), group))
        finally:
            self._end_read()

    def _opened(self) -> RandomAccessFile:
        with self._lock:
            if self._error is not None:
                raise self._error
            if self._file is None:
                try:
                    self._file = self._opener()
                except Exception as error:
                    self._error = error
                    raise
            return self._file

    def _end_read(self) -> None:
        with self._lock:
            self._left -= 1
            if self._left == 0 and self._file is not None:
                self._file.close()


def _read_group(
    file: RandomAccessFile, group: Sequence[ranges.Wanted]
) -> Iterator[tuple[int, bytes]]:
    start, length = ranges.span(group)
    return ranges.cut_apart(group, file.read(start, length) if length else b"")


def _list(paths: Any) -> list[Any]:
    if not isinstance(paths, list):
        raise TypeError(f"expected a list of paths, found {paths!r:.80}")
    return paths


def _by_path(paths: list[str], starts: Any, ends: Any) -> dict[str, list[ranges.Limits]]:
    """Return the ranges of each path."""
    starts, ends = (
        list(limits) if hasattr(limits, "__iter__") else [limits] * len(paths)
        for limits in (starts, ends)
    )
    if not len(starts) == len(ends) == len(paths):
        raise ValueError(f"{len(paths)} paths, {len(starts)} starts and {len(ends)} ends")
    wanted: dict[str, list[ranges.Limits]] = {}
    for number, (path, start, end) in enumerate(zip(paths, starts, ends, strict=True)):
        wanted.setdefault(path, []).append(ranges.Limits(number, start, end))
    return wanted
