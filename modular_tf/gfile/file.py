"""`GFile`: the file object of `tf.io.gfile`.

It is opened by the first read or write, not when it is made, and its two directions are two
handles: what was written is seen by reads after `flush`. Since TensorFlow does not say what a
file does that was closed, this one refuses to be read or written again (`ClosedError`), where
TensorFlow reopens it and, in mode "w", empties it.
"""

from __future__ import annotations

import operator
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from modular_tf.errors import (
    ClosedError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    OutOfRangeError,
    PermissionDeniedError,
)
from modular_tf.filesystem.files import RandomAccessFile, Written
from modular_tf.filesystem.streams import buffered, reset
from modular_tf.service.default import default_service

if TYPE_CHECKING:
    import io
    from collections.abc import Buffer, Iterable  # type: ignore[attr-defined,unused-ignore]

    from typing_extensions import Self

    from modular_tf.filesystem.files import WritableFile
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.gfile.functions import ServesFilesystems

PathArgument: TypeAlias = "str | bytes | bytearray | os.PathLike[str] | os.PathLike[bytes]"
"""Anything that names a file: a URI, a plain path, or an object that has one."""

_READING = frozenset(("r", "r+", "a+", "w+"))
_WRITING = frozenset(("a", "w", "r+", "a+", "w+"))
_MODES = _READING | _WRITING
_BUFFER = 64 << 10


def as_uri(path: object) -> str:
    """Return `path` as text, with surrogateescape for bytes that are not UTF-8.

    `TypeError` if it is none of the types of `PathArgument`.
    """
    if isinstance(path, str):
        return path
    if isinstance(path, (bytes, bytearray)):
        return path.decode("utf-8", "surrogateescape")
    if isinstance(path, os.PathLike):
        return as_uri(os.fspath(path))
    raise TypeError(f"a path is text, bytes or a path object; found {path!r}")


class GFile(Written):
    r"""A file of any registered scheme, for one thread at a time.

    In text mode reads give `str` (UTF-8) and `readline` drops `\r`, as TensorFlow's does; in
    binary mode reads give `bytes`, unchanged. Positions and counts are bytes in both. Writes take
    text and bytes in both.

    Args:
        name: What to open.
        mode: `r`, `w`, `a`, `r+`, `w+` or `a+`, with `b` for bytes. `r+` and `w+` empty the file
            at the first write. `w` and `a` create it, at the latest when they are closed.
        service: Where filesystems come from; the default service where it is not given.

    Raises:
        InvalidArgumentError: The mode is none of these.
    """

    __slots__ = (
        "_action", "_binary", "_closed", "_failure", "_mode", "_name", "_position", "_reader",
        "_service", "_writer", "_wrote",
    )  # fmt: skip

    def __init__(
        self, name: PathArgument, mode: str = "r", *, service: ServesFilesystems | None = None
    ) -> None:
        self._binary = "b" in mode
        self._action = mode.replace("b", "")
        if self._action not in _MODES:
            raise InvalidArgumentError(
                f"mode {mode!r} is not 'r', 'w', 'a', 'r+', 'w+' or 'a+', with or without 'b'"
            )
        self._name = name
        self._mode = mode
        self._service = service
        self._reader: io.BufferedReader | None = None
        self._position = 0  # of the next read; the reader is opened there
        self._writer: WritableFile | None = None
        self._wrote = False
        self._closed = False
        self._failure: Exception | None = None

    def __repr__(self) -> str:
        return f"<GFile {self._name!r} {self._mode!r}{' closed' if self._closed else ''}>"

    @property
    def name(self) -> PathArgument:
        """The name that was given, unchanged."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode, as it was given."""
        return self._mode

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    def readable(self) -> bool:
        """Return whether the mode allows reads."""
        return self._action in _READING

    def writable(self) -> bool:
        """Return whether the mode allows writes."""
        return self._action in _WRITING

    def seekable(self) -> bool:
        """Return True, also in modes whose `seek` is refused (TensorFlow's answer)."""
        return True

    def size(self) -> int:
        """Return the length of the file now, in bytes; unflushed writes do not count.

        Raises:
            NotFoundError: It does not exist (yet).
        """
        return self._filesystem(self._uri()).stat(self._uri()).length

    # -- reading ------------------------------------------------------------------------------

    def read(self, n: int = -1) -> Any:
        """Return the next `n` bytes, in text mode decoded; the whole rest if `n` is -1.

        Raises:
            InvalidArgumentError: `n` is less than -1.
            UnicodeDecodeError: In text mode, the bytes are not UTF-8 or end within a character.
        """
        count = operator.index(n)
        if count < -1:
            raise InvalidArgumentError(f"read: the number of bytes is negative: {count}")
        begin = self._position
        try:
            if self._reader is None and not begin and not self.writable():
                data = self._read_first(count)
            else:
                data = (self._reader or self._open_reader()).read(count)
            self._position = begin + len(data)
            return data if self._binary else data.decode()
        except BaseException as error:
            self._restore(begin, error)
            raise

    def _read_first(self, count: int) -> bytes:
        """Return the start of a file, or all of it; a short one of this machine by one call."""
        uri = self._uri_to_read()
        filesystem = self._filesystem(uri)
        if count == -1:
            return filesystem.read_file(uri)
        data, file = filesystem.read_first(uri, count)
        if file is not None:
            self._use(filesystem, file, len(data))
        return data

    def readinto(self, buffer: Buffer) -> int:
        """Fill a writable buffer with the next bytes; return their number, 0 at the end."""
        begin = self._position
        try:
            count = (self._reader or self._open_reader()).readinto(buffer)
            self._position = begin + count
        except BaseException as error:
            self._restore(begin, error)
            raise
        return count

    def readline(self) -> Any:
        r"""Return the next line with its `\n`; empty at the end of the file."""
        begin = self._position
        try:
            line = (self._reader or self._open_reader()).readline()
            self._position = begin + len(line)
            if self._binary:
                return line
            text = line.decode()
            return text.replace("\r", "") if "\r" in text else text
        except BaseException as error:
            self._restore(begin, error)
            raise

    def readlines(self) -> list[Any]:
        """Return all lines from here on."""
        begin = self._position
        try:
            return list(iter(self.readline, b"" if self._binary else ""))
        except BaseException as error:
            self._restore(begin, error)
            raise

    def _restore(self, begin: int, error: BaseException) -> None:
        """Move the position back to before a failed read, so that it can be tried again.

        As in TensorFlow, the next read after a decoding error finds what follows.
        """
        if not isinstance(error, UnicodeDecodeError):
            self._position = begin
            if self._reader is not None:
                reset(self._reader, begin)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    next = __next__

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Set the position of the next read.

        Args:
            offset: In bytes, relative to `whence`.
            whence: 0 for the start of the file, 1 for the current position, 2 for the end.
            position: An older name of `offset`.

        Raises:
            OutOfRangeError: It lies past the end; reads then find the end.
            PermissionDeniedError: The file is not open for reading.
        """
        reader = self._reader or self._open_reader()
        if (offset is None) == (position is None):
            raise TypeError("seek() takes either an offset or a position")
        wanted = operator.index(position if offset is None else offset)  # type: ignore[arg-type]
        if whence == 1:
            wanted += self._position
        elif whence == 2:  # noqa: PLR2004 - io.SEEK_END
            wanted += self.size()
        elif whence != 0:
            raise InvalidArgumentError(f"whence is 0, 1 or 2; found {whence!r}")
        if wanted < 0:
            raise InvalidArgumentError(f"seek: position {wanted} lies before the start")
        if wanted:
            reader.seek(wanted - 1)  # where a byte is only if the file is that long
            if not reader.peek(1):
                self._position = self.size()
                reset(reader, self._position)
                if wanted > self._position:
                    raise OutOfRangeError(
                        f"seek: position {wanted} lies past the end, which is {self._position}"
                    )
                return
        reader.seek(wanted)
        self._position = wanted

    def tell(self) -> int:
        """Return the position of the next read or, where the mode has no reads, write.

        A file that is only written is opened by this, and in mode "w" emptied.
        """
        if not self.readable():
            return (self._writer or self._open_writer()).tell()
        self._require_open()
        if self._reader is None and not self._position:
            self._open_reader()
        return self._position

    # -- writing ------------------------------------------------------------------------------

    def write(self, file_content: str | Buffer) -> None:
        """Add text (as UTF-8) or bytes at the end."""
        writer = self._writer or self._open_writer()
        data = file_content.encode() if isinstance(file_content, str) else file_content
        self._reset_reader()
        try:
            writer.append(memoryview(data))
        except Exception as error:
            if writer.is_failure(error):
                self._failure = error
            raise

    def writelines(self, lines: Iterable[str | Buffer]) -> None:
        """Add each of `lines`, which bring their own line ends."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand on what was written, so that readers see it."""
        if self._writer is not None:
            self._writer.flush()
        self._reset_reader()

    # -- opening and closing ------------------------------------------------------------------

    def close(self) -> None:
        """Close both directions; a second call does nothing.

        A file in mode "w" or "a" that was never written is created now (as in TensorFlow after
        2.21, and as `open` does). A call that was interrupted is finished by the next. After a
        write that failed, an object store keeps nothing, and the failure rises again.
        """
        if self._closed:
            return
        failure = self._failure
        if failure is not None:
            self._drop_from_store()
            if self._writer is None:
                self.close()
                raise failure
        failures: list[Exception] = []
        try:
            if self._is_yet_to_be_created():
                self._open_writer()
        except Exception as error:  # noqa: BLE001  (raised below)
            failures.append(error)
        for file in (self._reader, self._writer):
            try:
                if file is not None:
                    file.close()
            except Exception as error:  # noqa: BLE001  (likewise)
                failures.append(error)
        writer = self._writer
        if writer is not None and not all(map(writer.is_failure, failures)):
            raise failures[0]  # of a signal handler; the file is open
        self._closed, self._reader, self._writer = True, None, None
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def discard(self) -> None:
        """Close it; a store stays as it was, and elsewhere what was written stays."""
        self._drop_from_store()
        self.close()

    def _drop_from_store(self) -> None:
        if self.writable() and self._filesystem(self._uri()).is_object_store:
            self._wrote = True  # what was never written is not created
        elif self._is_yet_to_be_created():  # the file of a client knows whether it is in a store
            with suppress(ModularTFError):  # the reason for the discard is raised
                self._open_writer()
        writer = self._writer
        if writer is not None and writer.is_stored_by_close:
            self._writer, self._failure = None, None
            writer.give_up()

    def _open_reader(self) -> io.BufferedReader:
        uri = self._uri_to_read()
        filesystem = self._filesystem(uri)
        file: RandomAccessFile
        try:
            # What is written through this file must be seen: no block of it is kept.
            file = (
                filesystem.new_random_access_file(uri)
                if self.writable()
                else filesystem.open_input(uri)
            )
        except NotFoundError:
            if not self._position:
                raise
            file = _Ended(uri)  # it was read to its end before it was removed
        return self._use(filesystem, file, self._position)

    def _use(
        self, filesystem: Filesystem, file: RandomAccessFile, position: int
    ) -> io.BufferedReader:
        reader = buffered(filesystem, file, self.size, _BUFFER)
        if position:
            reader.seek(position)
        self._reader = reader
        return reader

    def _reset_reader(self) -> None:
        if self._reader is not None:
            reset(self._reader, self._position)

    def _uri_to_read(self) -> str:
        self._require_open()
        if not self.readable():
            self._refuse("reading")
        return self._uri()

    def _open_writer(self) -> WritableFile:
        self._require_open()
        if not self.writable():
            self._refuse("writing")
        uri = self._uri()
        try:
            filesystem = self._filesystem(uri)
            appends = "a" in self._mode
            open_file = filesystem.new_appendable_file if appends else filesystem.new_writable_file
            self._writer = open_file(uri)
        except ModularTFError:
            self._wrote = True  # close must not fail a second time
            raise
        self._wrote = True
        return self._writer

    def _is_yet_to_be_created(self) -> bool:
        return not self._wrote and ("w" in self._mode or "a" in self._mode)

    def _require_open(self) -> None:
        if self._closed:
            raise ClosedError(f"{self._name!r} was closed before", path=self._uri())

    def _refuse(self, purpose: str) -> NoReturn:
        raise PermissionDeniedError(
            f"{self._name!r} is open in mode {self._mode!r}, which is not for {purpose}",
            path=self._uri(),
        )

    def _uri(self) -> str:
        return as_uri(self._name)

    def _filesystem(self, uri: str) -> Filesystem:
        return (self._service or default_service()).filesystem_for(uri)


class _Ended(RandomAccessFile):
    """A file that is gone, and was read to its end."""

    def __init__(self, uri: str) -> None:
        self.uri = uri

    def readinto(self, offset: int, buffer: Buffer) -> int:  # noqa: ARG002
        """Return 0, as at the end of any file."""
        return 0

    def close(self) -> None:
        """Nothing is open."""
