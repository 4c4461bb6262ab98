"""Writable files as `io` objects, and those that are open, so that their filesystem closes them.

A write that fails or is interrupted ends its stream: how much of it has arrived is unknown, and the
buffers of io would bring all of it again. Every later write fails too, and `close` discards the
file and raises the failure again. A store keeps what it had before; elsewhere what has arrived
stays.
"""

from __future__ import annotations

import io
import weakref
from abc import abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from modular_tf.errors import AbortedError, FailedPreconditionError, ModularTFError, collected
from modular_tf.filesystem.files import (
    GivenUpByException,
    give_up,
    is_failure_of,
    is_stored_by_close,
    require_uninterrupted,
)
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Buffer, Iterator  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.files import WritableFile
    from modular_tf.filesystem.filesystem import Filesystem


_being_stored: set[_Stream] = set()
"""Streams of stores whose `close` was interrupted, until a second one. Their end would wait for the
upload, which goes on in the background, and its errors would be lost."""


class _Stream(GivenUpByException):
    """A stream that its end stores, unless a write failed or was interrupted."""

    _stream: WriterStream

    @abstractmethod
    def _close_now(self) -> None:
        """Close it; an interrupt leaves it open, to be closed again."""

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
        return is_stored_by_close(self._stream.file)

    @property
    def is_torn(self) -> bool:
        """Whether a write failed or was interrupted."""
        return self._stream.failure is not None

    def prepare_close(self) -> None:
        """Skip the plugin's flush from now on, since its close writes everything."""
        self._stream.is_ending = True

    def give_up_in_store(self) -> None:
        """Discard the file of a store, which stays as it was; keep any other."""
        if self.is_in_store:
            self._stream.give_up()

    def __del__(self) -> None:
        with suppress(AttributeError):  # its making was interrupted
            if self.is_torn:
                self._stream.give_up()
        super().__del__()  # type: ignore[misc]  # of io, which closes it


class WriterStream(_Stream, io.RawIOBase):
    """A raw `io` stream around a `WritableFile`, which it owns. One thread at a time.

    Attributes:
        file: The file, whose end lies at `position` when the stream is made.
        failure: Why a write failed; None if none did.
        is_ending: The file is about to be closed, and the plugin's flush is not called: its close
            delivers everything by itself, and a cloud store may upload at each flush.
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
        """Return True: the stream can be written."""
        return True

    def readinto(self, buffer: Buffer) -> int:  # noqa: ARG002  (io's signature)
        """Raise: the stream is write-only."""
        self._check_open()
        raise io.UnsupportedOperation("not readable")

    def write(self, data: Buffer) -> int:
        """Append all of `data`. After a failed or interrupted append every write fails."""
        count = memoryview(data).nbytes
        if self._is_given_up:
            return count
        self._check_open()
        require_uninterrupted(self.file, "append")
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
        """Flush the plugin's file, unless it is about to be closed."""
        self._check_open()
        if not self.is_ending:
            self.file.flush()

    def _close_now(self) -> None:
        """Close the file too; one whose making was interrupted has none."""
        if self.closed or not hasattr(self, "file"):
            return
        self.is_ending = True  # io's close flushes, which a closed file would refuse
        if self.failure is not None and not self._is_given_up:
            self.give_up()
            io.RawIOBase.close(self)
            raise self.failure
        try:
            self.file.close()
        except Exception as error:
            if is_failure_of(self.file, error):
                io.RawIOBase.close(self)
            raise
        io.RawIOBase.close(self)

    def give_up(self) -> None:
        """Discard the file; what is written from now on is dropped."""
        if not self.closed:
            self._is_given_up = self.is_ending = True
            give_up(self.file)

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


class StreamWriter(_Stream, io.BufferedWriter):
    """A buffered writer, which its filesystem flushes and closes when it closes itself.

    Large writes go to the plugin's `append` without another copy. The file is complete when
    `close` has returned without an error. An exception that leaves its `with` block discards the
    file of an object store. One thread at a time.

    Attributes:
        stores_at_flush: Whether `flush` has a store keep what was written so far.
    """

    stores_at_flush = True

    def __init__(
        self, filesystem: Filesystem, file: WritableFile, position: int, mode: str, buffer_size: int
    ) -> None:
        self._stream = WriterStream(file, position, mode)
        super().__init__(self._stream, buffer_size)
        filesystem.remember_writer(self)

    def flush(self) -> None:
        """Write the buffer to the plugin and flush the plugin's file."""
        super().flush()
        if not self._stream.is_ending and (self.stores_at_flush or not self.is_in_store):
            self._stream.flush()

    def _close_now(self) -> None:
        if self.closed:
            return
        self.prepare_close()
        try:
            io.BufferedWriter.flush(self)  # io's own close would drop what an interrupt leaves
        except Exception:
            if self.is_torn:  # else an exception of a signal handler
                with suppress(Exception):
                    self._stream.close()
            raise
        self._stream.close()


class TextWriter(_Stream, io.TextIOWrapper):
    """A text writer on a `StreamWriter`; its filesystem flushes and closes both."""

    def __init__(self, filesystem: Filesystem, writer: StreamWriter, **options: Any) -> None:
        super().__init__(writer, **options)
        self._stream = writer.raw  # type: ignore[assignment]
        filesystem.remember_writer(self)

    def write(self, text: str, /) -> int:
        """Write text; return the number of characters."""
        with self._ended_by_interrupt():
            return super().write(text)

    def flush(self) -> None:
        """Write the text to the plugin and flush the plugin's file."""
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

    def _close_now(self) -> None:
        if self.closed:
            return
        self.prepare_close()
        try:
            self.flush()  # not by io's close, which closes the file although an interrupt came
        except Exception:
            if self.is_torn:
                with suppress(Exception):
                    self.buffer.close()
            raise
        self.buffer.close()


class OpenWriters:
    """The open streams of one filesystem, as long as they are referenced. [any thread]"""

    def __init__(self) -> None:
        self._streams: dict[weakref.ref[_Stream], None] = {}

    def add(self, stream: StreamWriter | TextWriter) -> None:
        """Record a stream; one that stands on top of another comes after that."""
        self._streams[weakref.ref(stream, self._streams.pop)] = None

    def close(self, failures: list[ModularTFError]) -> None:
        """Write out and close all; add errors of the filesystem to `failures`.

        An interrupt leaves the rest to the next call. A store keeps nothing of a file that lacks
        bytes, since a write failed or was interrupted. What a user has put on top, such as a
        `gzip.GzipFile`, is the user's to close before.
        """
        streams = [reference() for reference in list(self._streams)]
        for stream in filter(None, reversed(streams)):
            # A user may close or detach it meanwhile, or be in the middle of its making.
            with suppress(ValueError, AttributeError), collected(failures):
                stream.prepare_close()
                if stream.is_torn:
                    stream.give_up_in_store()
                try:
                    stream.close()
                except RuntimeError as error:  # io's, to a signal handler in the middle of a write
                    text = f"a file is being written to: {error}"
                    failures.append(FailedPreconditionError(text))

    def abandon(self) -> None:
        """Drop all of them in a forked child: the parent writes their buffers.

        A thread that was writing to one does not exist here and would never give it back.
        """
        self._streams.clear()
