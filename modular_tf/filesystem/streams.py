"""Files as `io` objects: what `open`, `zipfile`, `pickle` and pandas understand.

A write that fails or is interrupted ends its stream: how much of it has arrived is unknown, and the
buffers of io would bring all of it again. Every later write fails too, and `close` discards the
file and raises the failure again. A store keeps what it had before; elsewhere what has arrived
stays. `OpenWriters` are those that are open, so that their filesystem closes them.
"""

from __future__ import annotations

import io
import sys
import weakref
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any

from modular_tf.errors import (
    AbortedError,
    AlreadyExistsError,
    FailedPreconditionError,
    ModularTFError,
    collected,
)
from modular_tf.filesystem.files import Written, read_rest
from modular_tf.filesystem.uri import is_of_this_machine
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from typing_extensions import Buffer

    from modular_tf.filesystem.files import RandomAccessFile, WritableFile
    from modular_tf.filesystem.filesystem import Filesystem

DEFAULT_BUFFER = 1 << 16
_FIRST_BLOCK = 1 << 13


class ReaderStream(io.RawIOBase):
    """A position over a `RandomAccessFile`, which it closes. One thread at a time.

    `length` is that of the file in bytes, past which nothing is read; for a file that may grow, a
    function that returns it, which is called when the file does not know it.
    """

    mode = "rb"

    def __init__(self, file: RandomAccessFile, length: int | Callable[[], int]) -> None:
        super().__init__()
        self._file = file
        self._length = length
        self._end = length if isinstance(length, int) else None
        self._position = 0

    @property
    def name(self) -> str:
        """The URI, without secrets."""
        return redacted(self._file.uri)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        """Fill `buffer` from the position, without a copy."""
        self._check_open()
        if self._end is not None:  # no request only finds the end
            buffer = memoryview(buffer).cast("B")[: max(0, self._end - self._position)]
        count = self._file.readinto(self._position, buffer)
        self._position += count
        return count

    def write(self, data: Buffer) -> int:  # noqa: ARG002  (io's signature)
        self._check_open()
        raise io.UnsupportedOperation("not writable")

    def readall(self) -> bytes:
        """Return all that is left, read in one call where the length is known."""
        self._check_open()
        start = self._position
        if self._end is not None:
            data = self.piece(start, self._end)
        else:
            data = read_rest(self._file, start, self._size, _FIRST_BLOCK)
        self._position = start + len(data)  # last: what fails before can be tried again
        return data

    def piece(self, start: int, n: int) -> bytes:
        """Return up to `n` bytes from `start`, wherever the position is."""
        if self._end is not None:
            n = min(n, self._end - start)
        return self._file.read(start, n) if n > 0 else b""

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the position or the end."""
        self._check_open()
        if whence == io.SEEK_CUR:
            offset += self._position
        elif whence == io.SEEK_END:
            offset += self._size()
        elif whence != io.SEEK_SET:
            raise ValueError(f"whence is {whence}; 0, 1 and 2 are known")
        if offset < 0:
            raise ValueError(f"cannot seek to {offset}, before the start of {self.name!r}")
        self._position = offset
        return offset

    def _size(self) -> int:
        if isinstance(self._length, int):
            return self._length
        known = self._file.known_length()
        return self._length() if known is None else known

    def tell(self) -> int:
        self._check_open()
        return self._position

    def close(self) -> None:
        """Close the file too; one whose making was interrupted has none."""
        if not self.closed and hasattr(self, "_file"):
            try:
                self._file.close()
            finally:
                super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def buffered(
    filesystem: Filesystem,
    file: RandomAccessFile,
    length: int | Callable[[], int],
    buffer_size: int = DEFAULT_BUFFER,
) -> io.BufferedReader:
    """Return a buffered reader of a file that `filesystem.open_input` has opened."""
    if is_of_this_machine(filesystem.scheme):  # in C alone
        return io.BufferedReader(ReaderStream(file, length), buffer_size)
    return FileReader(file, length, buffer_size)


class FileReader(io.BufferedReader):
    """A buffered reader of a `RandomAccessFile`, which it closes. [creating thread]

    A long read goes straight into the memory of the caller, and by one read of the file: io would
    read the last part of it on its own.
    """

    raw: ReaderStream

    def __init__(
        self,
        file: RandomAccessFile,
        length: int | Callable[[], int],
        buffer_size: int = DEFAULT_BUFFER,
    ) -> None:
        super().__init__(ReaderStream(file, length), buffer_size)

    def read(self, size: int | None = -1, /) -> bytes:
        """Return up to `size` bytes, all that is left without one."""
        if size is None or size < DEFAULT_BUFFER:
            return super().read(size)
        start = self.tell()
        data = self.raw.piece(start, size)
        self.seek(start + len(data))
        return data


def reset(reader: io.BufferedReader, position: int) -> None:
    """Discard a buffer that may be out of date, and move to a position."""
    reader.seek(sys.maxsize)  # within its buffer, io would not move the stream below
    reader.seek(position)


# -- writing ----------------------------------------------------------------------------------

_being_stored: set[_Stream] = set()
"""Streams of stores whose `close` was interrupted, until a second one. Their end would wait for the
upload, which goes on in the background, and its errors would be lost."""


class _Stream(Written):
    """A stream whose finalizer stores the file, unless a write failed or was interrupted."""

    _stream: WriterStream
    _below: _Stream

    if TYPE_CHECKING:
        closed: bool

        def flush(self) -> None: ...  # of the class of io that is derived

    def _close_now(self) -> None:
        """Write out the buffer and close what is below; an interrupt leaves it to be done again.

        The close of io would drop the buffer then.
        """
        if self.closed:
            return
        self._stream.is_ending = True
        try:
            self.flush()
        except Exception:
            if self.is_torn:  # else an exception of a signal handler
                with suppress(Exception):
                    self._below.close()
            raise
        self._below.close()

    def close(self) -> None:
        """Hand over the rest and close the file; closing twice is harmless.

        An interrupt leaves it open with what it holds, to be closed again.
        """
        try:
            self._close_now()
        except Exception:
            raise
        except BaseException:
            if self.is_in_store:
                _being_stored.add(self)
            raise
        _being_stored.discard(self)

    @property
    def is_in_store(self) -> bool:
        """Whether the file is stored when it is closed, or flushed."""
        return self._stream.file.is_stored_by_close

    @property
    def is_torn(self) -> bool:
        """Whether a write failed or was interrupted."""
        return self._stream.failure is not None

    def _drop_from_store(self) -> None:
        if self.is_in_store:
            self._stream.drop()

    def discard(self) -> None:
        """Close it; a store stays as it was, and elsewhere what was written stays."""
        self._drop_from_store()
        self.close()

    def end(self) -> None:
        """Write out and close a stream that is left open; a store keeps nothing of a torn file."""
        self._stream.is_ending = True
        if self.is_torn:
            self._drop_from_store()
        self.close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # its making was interrupted
            if self.is_torn:
                self._stream.drop()
        super().__del__()  # type: ignore[misc]  # of io, which closes it


class WriterStream(_Stream, io.RawIOBase):
    """A raw `io` stream around a `WritableFile`, which it owns. One thread at a time.

    The file's end lies at `position` when the stream is made. `failure` is why a write failed, None
    if none did. While `is_ending`, the plugin's flush is not called, since its close delivers
    everything by itself, and a cloud store may upload at each flush.
    """

    def __init__(self, file: WritableFile, position: int, mode: str) -> None:
        super().__init__()
        self.file = file
        self._position = position
        self.failure: BaseException | None = None
        self._is_given_up = False
        self.is_ending = False
        self.name = redacted(file.uri)
        self.mode = mode

    @property
    def _stream(self) -> WriterStream:  # type: ignore[override]
        return self

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:  # noqa: ARG002  (io's signature)
        self._check_open()
        raise io.UnsupportedOperation("not readable")

    def write(self, data: Buffer) -> int:
        """Append all of `data`. After a failed or interrupted append every write fails."""
        count = memoryview(data).nbytes
        if self._is_given_up:
            return count
        self._check_open()
        self.file.require_uninterrupted("append")
        if self.failure is not None:
            raise self.failure
        try:
            self.file.append(data)
        except BaseException as error:
            self.end_by(error)
            raise
        self._position += count
        return count

    def end_by(self, error: BaseException) -> None:
        """Have every later write fail, since one failed or was interrupted."""
        if self.failure is None:
            self.failure = error
            if not isinstance(error, Exception):
                self.failure = AbortedError.of(
                    "append",
                    self.file.uri,
                    "a write was interrupted, and how much of it has"
                    " arrived is unknown; write the file again",
                )

    def tell(self) -> int:
        """Return the length of the file in bytes, without the buffer on top."""
        self._check_open()
        return self._position

    def flush(self) -> None:
        self._check_open()
        if not self.is_ending:
            self.file.flush()

    def _close_now(self) -> None:
        """Close the file too; one whose making was interrupted has none."""
        if self.closed or not hasattr(self, "file"):
            return
        self.is_ending = True  # io's close flushes, which a closed file would refuse
        if self.failure is not None and not self._is_given_up:
            self.drop()
            io.RawIOBase.close(self)
            raise self.failure
        try:
            self.file.close()
        except Exception as error:
            if self.file.is_failure(error):
                io.RawIOBase.close(self)
            raise
        io.RawIOBase.close(self)

    def drop(self) -> None:
        """Discard the file; what is written from now on is dropped."""
        if not self.closed:
            self._is_given_up = self.is_ending = True
            self.file.give_up()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


def is_in_write() -> bool:
    """Return whether this thread was interrupted in a write, and has the lock of its stream."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001  (there is no other way to ask)
    while frame is not None and frame.f_code is not WriterStream.write.__code__:
        frame = frame.f_back
    return frame is not None


class StreamWriter(_Stream, io.BufferedWriter):
    """A buffered writer, which its filesystem flushes and closes when it closes itself.

    Large writes go to the plugin's `append` without another copy. One thread at a time. With
    `stores_at_flush`, `flush` has a store keep what was written so far.
    """

    stores_at_flush = True

    def __init__(
        self, filesystem: Filesystem, file: WritableFile, position: int, mode: str, buffer_size: int
    ) -> None:
        self._stream = self._below = WriterStream(file, position, mode)
        super().__init__(self._stream, buffer_size)
        filesystem.remember_writer(self)

    def flush(self) -> None:
        super().flush()
        if not self._stream.is_ending and (self.stores_at_flush or not self.is_in_store):
            self._stream.flush()


class TextWriter(_Stream, io.TextIOWrapper):
    """A text writer on a `StreamWriter`; its filesystem flushes and closes both."""

    def __init__(self, filesystem: Filesystem, writer: StreamWriter, **options: Any) -> None:
        super().__init__(writer, **options)
        self._stream, self._below = writer.raw, writer  # type: ignore[assignment]
        filesystem.remember_writer(self)

    def write(self, text: str, /) -> int:
        with self._ended_by_interrupt():
            return super().write(text)

    def flush(self) -> None:
        with self._ended_by_interrupt():
            super().flush()

    @contextmanager
    def _ended_by_interrupt(self) -> Iterator[None]:
        """End the stream by an interrupt: io forgets the text that it was about to hand on."""
        try:
            yield
        except Exception:
            raise
        except BaseException as interrupt:
            self._stream.end_by(interrupt)
            raise


class OpenWriters:
    """The open files and streams of one filesystem, as long as they are referenced. [any thread]"""

    def __init__(self) -> None:
        self._writers: dict[weakref.ref[_Stream | WritableFile], None] = {}

    def add(self, writer: _Stream | WritableFile) -> None:
        """Record a file or a stream; one that stands on top of another comes after that."""
        self._writers[weakref.ref(writer, self._writers.pop)] = None

    def close(self, failures: list[ModularTFError]) -> None:
        """Write out and close all; add errors of the filesystem to `failures`.

        An interrupt leaves the rest to the next call. A store keeps nothing of a file that lacks
        bytes, since a write failed or was interrupted. What a user has put on top, such as a
        `gzip.GzipFile`, is the user's to close before.
        """
        writers = [reference() for reference in list(self._writers)]
        for writer in reversed(writers):
            # A user may close or detach it meanwhile, or be in the middle of its making.
            with suppress(ValueError, AttributeError), collected(failures):
                try:
                    if writer is not None:
                        writer.end()
                except RuntimeError as error:  # io's, to a signal handler in the middle of a write
                    text = f"a file is being written to: {error}"
                    failures.append(FailedPreconditionError(text))

    def abandon(self) -> None:
        """Drop all of them in a forked child: the parent writes their buffers.

        A thread that was writing to one does not exist here and would never give it back.
        """
        self._writers.clear()


# -- opening ----------------------------------------------------------------------------------


def open_stream(
    filesystem: Filesystem,
    uri: str,
    mode: str,
    buffering: int,
    encoding: str | None,
    errors: str | None,
    newline: str | None,
) -> IO[Any]:
    """Open a file as `Filesystem.open` documents."""
    action, binary = _parse_mode(mode)
    if binary and (encoding or errors or newline):
        raise ValueError("a binary file takes no encoding, errors or newline")
    if buffering == 0 and not binary:
        raise ValueError("a text file cannot be unbuffered")
    size = buffering if buffering > 1 or buffering == 0 else DEFAULT_BUFFER
    options: dict[str, Any] = {
        "encoding": encoding or "utf-8",
        "errors": errors,
        "newline": newline,
        "line_buffering": buffering == 1,
    }
    if not binary:  # what is refused must not have emptied the file
        io.TextIOWrapper(io.BytesIO(), **options)
    opened = _open_binary(filesystem, uri, action, size)
    if binary:
        return opened  # type: ignore[no-any-return]
    if action == "r":
        return io.TextIOWrapper(opened, **options)
    return TextWriter(filesystem, opened, **options)


def _parse_mode(mode: str) -> tuple[str, bool]:
    """Return the action, one of `r`, `w`, `a`, `x`, and whether the file is binary."""
    actions = [letter for letter in mode if letter in "rwax"]
    if set(mode) - set("rwaxbt") or len(actions) != 1 or len(mode) != len(set(mode)):
        raise ValueError(
            f"mode {mode!r}: expected one of r, w, a, x, and b or t; no plugin can update in place"
        )
    if "b" in mode and "t" in mode:
        raise ValueError(f"mode {mode!r}: a file is binary or text, not both")
    return actions[0], "b" in mode


def _open_binary(filesystem: Filesystem, uri: str, action: str, buffer_size: int) -> Any:
    if action == "r":

        def length() -> int:
            return filesystem.get_file_size(uri)

        if not buffer_size:
            return ReaderStream(filesystem.new_random_access_file(uri), length)
        return buffered(filesystem, filesystem.open_input(uri), length, buffer_size)
    position = 0
    if action == "a":
        position = filesystem.get_file_size(uri) if filesystem.path_exists(uri) else 0
        writer = filesystem.new_appendable_file(uri)
    else:
        if action == "x" and filesystem.path_exists(uri):
            raise AlreadyExistsError.of("open", uri, "it exists", plugin=filesystem.plugin)
        writer = filesystem.new_writable_file(uri)
    if not buffer_size:
        return WriterStream(writer, position, f"{action}b")
    return StreamWriter(filesystem, writer, position, f"{action}b", buffer_size)
