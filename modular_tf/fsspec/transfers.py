"""Transfers of files and trees, many at once: `get`, `put`, `copy`."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

import errno
import io
import os
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore[import-untyped]
from fsspec.utils import isfilelike  # type: ignore[import-untyped]

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import AlreadyExistsError, DataLossError, NotFoundError
from modular_tf.filesystem.copying import write_whole
from modular_tf.filesystem.files import known_length
from modular_tf.filesystem.overlap import Overlap, overlap
from modular_tf.filesystem.unchanged import UnchangedSource, require_all_read
from modular_tf.fsspec.contents import Contents
from modular_tf.fsspec.local_file import arriving_file
from modular_tf.fsspec.survey import Survey

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.filesystem.files import RandomAccessFile, WritableFile

    _Pair = tuple[Any, Any]

_PIECE = 1 << 23
"""Bytes of a file that are in memory at a time."""


class Transfers(Contents):
    """The part of `ModularFileSystem` that copies between places."""

    def get(
        self,
        rpath: Any,
        lpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Copy files to this machine, many at once.

        An interrupt leaves each file whole or as it was.

        Args:
            rpath: A path, a pattern, or a list of them.
            lpath: Where to: a directory if it ends in a slash, or a list of one path each.
            recursive: Copy what is in directories.
            callback: Told of the files that have arrived; its branches are told of bytes.
            maxdepth: How many levels to go down; None for all.
            batch_size: How many files are copied at once at most; -1 for as many as configured.
            kwargs: Passed to `get_file`.
        """
        survey = Survey(self)
        survey.get(rpath, lpath, recursive=recursive, maxdepth=maxdepth)
        files: list[_Pair] = []
        for source, target in survey.pairs:
            if survey.is_known_directory(source):
                os.makedirs(target, exist_ok=True)
            else:
                files.append((source, target))

        def get_one(source: Any, target: Any, **options: Any) -> None:
            is_short = survey.is_known_to_be_at_most(source, _PIECE)
            (self._get_short if is_short else self._get_one)(source, target, **options)

        self._transfer(get_one, files, callback, batch_size, kwargs)

    def get_file(
        self,
        rpath: Any,
        lpath: Any = None,
        callback: Any = DEFAULT_CALLBACK,
        outfile: IO[bytes] | None = None,
        **_: Any,
    ) -> None:
        """Copy one file to this machine, or into an open file; a directory is only made."""
        if outfile is None and isfilelike(lpath):
            outfile = lpath
        self._get_one(rpath, lpath, callback=callback, outfile=outfile)

    def _get_short(
        self, rpath: Any, lpath: Any, *, callback: Any, check: Callable[[], object], **_: Any
    ) -> None:
        """Copy a file that is read as a whole, by fewer requests than an open file."""
        check()
        if self._is_itself(rpath, lpath):
            return
        data = self.cat_file(rpath)
        callback.set_size(len(data))
        with arriving_file(os.fspath(lpath)) as local:
            local.write(data)
            check()
        callback.relative_update(len(data))

    def _get_one(
        self,
        rpath: Any,
        lpath: Any,
        *,
        callback: Any,
        outfile: IO[bytes] | None = None,
        check: Callable[[], object] = lambda: None,
        **_: Any,
    ) -> None:
        path = self._strip_protocol(rpath)
        if outfile is None and self._is_itself(path, lpath):
            return
        try:
            with self._opened(path) as file, self._no_directory(path):
                unchanged = UnchangedSource(self.filesystem, self.uri(path), known_length(file))
                first = _Pieces(file, callback, check)
                if outfile is not None:
                    first.write_to(outfile)
                    unchanged.check(first.offset)
                    return
                first.read()  # what cannot be read makes no file
                with arriving_file(os.fspath(lpath)) as local:
                    first.write_to(local)
                    unchanged.check(first.offset)
        except IsADirectoryError:
            if outfile is not None or not self.isdir(path):
                raise
            os.makedirs(lpath, exist_ok=True)

    def put(
        self,
        lpath: Any,
        rpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Copy files of this machine to here, many at once.

        Links are followed, to directories too. A tree with a link that leads back to a directory
        above it, or with a directory that cannot be listed, is refused before anything is copied.

        Args:
            lpath: A path, a pattern, or a list of them.
            rpath: Where to: a directory if it ends in a slash, or a list of one path each.
            recursive: Copy what is in directories.
            callback: Told of the files that have arrived; its branches are told of bytes.
            maxdepth: How many levels to go down; None for all.
            batch_size: How many files are copied at once at most; -1 for as many as configured.
            kwargs: Passed to `put_file`.
        """
        survey = Survey(self)
        survey.put(lpath, rpath, recursive=recursive, maxdepth=maxdepth)
        files: list[_Pair] = []
        for source, target in survey.pairs:
            if os.path.isdir(source):
                self.makedirs(target, exist_ok=True)
            else:
                files.append((source, target))
        self._transfer(self._put_one, files, callback, batch_size, kwargs)

    def put_file(
        self,
        lpath: Any,
        rpath: Any,
        callback: Any = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **_: Any,
    ) -> None:
        """Copy one file of this machine to here; a directory is only made.

        Missing directories above it are made.

        Raises:
            AlreadyExistsError: Something is there and the mode is "create".
        """
        if os.path.isdir(lpath):
            self.makedirs(rpath, exist_ok=True)
        else:
            self._put_one(lpath, rpath, callback=callback, mode=mode)

    def _put_one(
        self,
        lpath: Any,
        rpath: Any,
        *,
        callback: Any,
        mode: str = "overwrite",
        check: Callable[[], object] = lambda: None,
        **_: Any,
    ) -> None:
        path = self._strip_protocol(rpath)
        uri = self.uri(path)
        if mode == "create" and self.exists(path):
            raise AlreadyExistsError(f"{uri} exists already", path=uri)
        if self._is_itself(path, lpath):
            return
        with open(lpath, "rb") as local:
            before = os.fstat(local.fileno())
            callback.set_size(before.st_size)

            def write(writer: WritableFile) -> None:
                local.seek(0)
                done = 0
                while piece := local.read(_PIECE):
                    check()
                    writer.append(piece)
                    done += len(piece)
                    callback.relative_update(len(piece))
                require_all_read(local, before, done)

            self._with_parents(path, lambda: write_whole(self.filesystem, uri, write))
        self.forget_listing(path)

    def _is_itself(self, path: Any, local_path: Any) -> bool:
        """Return whether a path is a file of this machine, and the same as a local one."""
        here = (self.filesystem, self.uri(path))
        is_there = os.path.exists(local_path)
        return is_there and overlap(here, (None, os.fspath(local_path))) is Overlap.SAME

    def copy(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Copy files within the scheme, many at once.

        Args:
            path1: A path, a pattern, or a list of them.
            path2: Where to: a directory if it ends in a slash, or a list of one path each.
            recursive: Copy what is in directories.
            maxdepth: How many levels to go down; None for all.
            on_error: "raise", or "ignore" sources that are not found. Default: "ignore" with
                `recursive`, else "raise".
            batch_size: How many files are copied at once at most; -1 for as many as configured.
            kwargs: Passed to `cp_file`.
        """
        survey = Survey(self)
        survey.copy(path1, path2, recursive=recursive, maxdepth=maxdepth)
        if on_error is None:
            on_error = "ignore" if recursive else "raise"
        files: list[_Pair] = []
        for source, target in survey.pairs:
            if survey.is_known_directory(source):
                self.makedirs(target, exist_ok=True)
            else:
                files.append((source, target))
        for outcome in self._crew(batch_size).run(
            lambda pair: self.cp_file(*pair, **kwargs), files
        ):
            if outcome.error is not None and not (
                on_error == "ignore" and isinstance(outcome.error, NotFoundError)
            ):
                raise outcome.error

    def _transfer(
        self,
        transfer: Callable[..., None],
        files: list[_Pair],
        callback: Any,
        batch_size: int | None,
        kwargs: dict[str, Any],
    ) -> None:
        """Transfer files at once, and tell a callback of them, one thread at a time."""
        crew = self._crew(batch_size)
        telling = ForkLock()

        def one(pair: _Pair) -> None:
            with _branch(callback, pair, telling) as branch:
                transfer(*pair, callback=branch, check=crew.check, **kwargs)

        callback.set_size(len(files))
        for outcome in crew.run(one, files):
            outcome.get()
            callback.relative_update(1)


@contextmanager
def _branch(callback: Any, pair: _Pair, telling: ForkLock) -> Iterator[Any]:
    """Yield the callback for one file, which is used by one thread."""
    with telling:
        branch = callback.branched(*pair)
        entered = branch.__enter__()
    try:
        yield entered
    finally:
        with telling:
            branch.__exit__(None, None, None)


class _Pieces:
    """The bytes of an open file in large pieces, up to the length that it had when opened."""

    def __init__(self, file: RandomAccessFile, callback: Any, check: Callable[[], object]) -> None:
        self._file = file
        self._callback = callback
        self._check = check
        self._length = known_length(file)
        self.offset = 0
        self._next: bytes | None = None
        callback.set_size(self._length)

    def read(self) -> None:
        """Read the next piece, which `write_to` begins with."""
        self._check()
        left = _PIECE if self._length is None else min(_PIECE, self._length - self.offset)
        self._next = self._file.read(self.offset, left) if left > 0 else b""
        self.offset += len(self._next)
        if self._length is not None and len(self._next) < left:
            raise DataLossError(
                f"read {self._file.uri!r}: it ended after {self.offset} of {self._length} bytes;"
                " try again",
                path=self._file.uri,
                operation="read",
            )

    def write_to(self, target: IO[bytes]) -> None:
        """Write all that is left."""
        while True:
            if self._next is None:
                self.read()
            piece, self._next = self._next, None
            if not piece:
                return
            _write_all(target, piece)
            self._callback.relative_update(len(piece))
            if len(piece) < _PIECE:
                return


def _write_all(target: IO[bytes], data: bytes) -> None:
    """Write all of a piece; a raw file may take a part at a time.

    Raises:
        BlockingIOError: A file that does not block takes no more now.
    """
    left = memoryview(data)
    while left:
        count = target.write(left)
        if count is None and isinstance(target, io.RawIOBase):
            raise BlockingIOError(errno.EAGAIN, "the file takes no more bytes without blocking")
        left = left[len(left) if count is None else count :]  # some classes return nothing
