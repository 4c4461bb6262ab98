"""Writable files as `io` objects."""

from __future__ import annotations

import io
import sys
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.filesystem.files import (
    GivenUpByException,
    appended,
    give_up,
    is_failure_of,
    is_stored_by_close,
    require_uninterrupted,
)
from modular_tf.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.files import WritableFile
    from modular_tf.filesystem.filesystem import Filesystem


# From Python 3.13 on, as many bytes as the buffer holds pass it by.
_FULL_BUFFERS_COME_AGAIN = sys.version_info < (3, 13)


class _Stream(GivenUpByException):
    """A stream that its end stores, unless a write failed or was interrupted."""

    @property
    @abstractmethod
    def is_torn(self) -> bool:
        """Whether a write failed or was interrupted."""

    def __del__(self) -> None:
        with suppress(AttributeError):  # its making was interrupted
            if self.is_torn:
                self.give_up_in_store()
        super().__del__()  # type: ignore[misc]  # of io, which closes it


class WriterStream(_Stream, io.RawIOBase):
    """A raw `io` stream around a `WritableFile`, which it owns. One thread at a time.

    Args:
        file: What to write to.
        position: Where its end lies now.
        mode: As the user asked.
        buffer_size: Of the buffer on top of it, in bytes; 0 for none.

    Attributes:
        is_ending: The file is about to be closed, and the plugin is asked for no flush: its close
            delivers everything by itself, and a cloud store may upload at each flush.
    """

    def __init__(self, file: WritableFile, position: int, mode: str, buffer_size: int = 0) -> None:
        super().__init__()
        self._file = file
        self._position = position
        self._buffer_size = buffer_size
        # What the file counts, less the position: more than 0 where opening it rewrote the file.
        self._counted_from = (appended(file) or 0) - position if position else 0
        self._told_late = b""  # appended, but the buffer on top may bring it again
        self._tried = 0  # bytes of an append of which nothing else is recorded yet
        self._failure: Exception | None = None
        self._was_interrupted = False
        self._is_given_up = False
        self.is_ending = False
        self.name = redacted(file.uri)
        self.mode = mode

    def writable(self) -> bool:
        """Return True: the stream can be written."""
        return True

    def readinto(self, buffer: Buffer) -> int:  # noqa: ARG002  (io's signature)
        """Raise: the stream is write-only."""
        self._check_open()
        raise io.UnsupportedOperation("not readable")

    def write(self, data: Buffer) -> int:
        """Append all of `data`.

        After a failed append every write fails: it is unknown how much of it has arrived, and the
        buffer on top would bring all of it again.
        """
        if self._is_given_up:
            return memoryview(data).nbytes
        self._check_open()
        require_uninterrupted(self._file, "append")
        if self._failure is not None:
            raise self._failure
        if self._tried:  # a second interrupt came before the first was noted
            most = self._buffer_size - (not _FULL_BUFFERS_COME_AGAIN)
            self._note_interrupt(data, self._tried, most)
        if late := self._told_late:
            count = len(late)
            is_again = bytes(memoryview(data)[:count]) == late
            self._told_late = b""  # no interrupt can come between this line and the return
            if is_again:
                return count
        count = self._tried = memoryview(data).nbytes
        try:
            self._file.append(data)
        except Exception as error:
            if is_failure_of(self._file, error):
                self._failure = error
            else:
                self._note_interrupt(data, count, self._buffer_size)
            raise
        except BaseException:
            self._note_interrupt(data, count, self._buffer_size)
            raise
        self._position, self._tried = self._position + count, 0
        return count

    def _note_interrupt(self, data: Buffer, count: int, most_again: int) -> None:
        """Record what was appended before an interrupt, so that it is not appended twice.

        The buffer on top keeps what it could not write, and brings it again first of all. More
        than it holds never comes out of it, and from Python 3.13 on, as much as it holds may have
        passed it by: only the next bytes tell.

        Args:
            data: The bytes, or what came first of all after them.
            count: How many they are.
            most_again: How many may be brought again.
        """
        self._was_interrupted = True
        taken = appended(self._file) == self._counted_from + self._position + count
        late = bytes(memoryview(data)[:count]) if taken and count <= most_again else b""
        position = self._position + count if taken else self._position
        # All or none, wherever a second interrupt comes.
        self._position, self._told_late, self._tried = position, late, 0

    def tell(self) -> int:
        """Return the length of the file in bytes, without the buffer on top."""
        self._check_open()
        return self._position - len(self._told_late)

    def flush(self) -> None:
        """Flush the plugin's file, unless it is about to be closed."""
        self._check_open()
        if not self.is_ending:
            self._file.flush()

    def close(self) -> None:
        """Close the file too; its errors rise, since the data may not have been kept.

        An interrupt leaves it open, to be closed again; one whose making was interrupted has none.
        After a failed append it is discarded, and the failure rises again.
        """
        if not self.closed and hasattr(self, "_file"):
            self.is_ending = True  # io's close flushes, which a closed file would refuse
            if self._failure is not None and not self._is_given_up:
                self._give_up()
                super().close()
                raise self._failure
            try:
                self._file.close()
            except Exception as error:
                if is_failure_of(self._file, error):
                    super().close()
                raise
            except BaseException:
                self.keep_while_stored(self)
                raise
            super().close()

    def give_up_in_store(self) -> None:
        """Discard the file of a store, which stays as it was; keep any other."""
        if self.is_in_store and not self.closed:
            self._give_up()

    def _give_up(self) -> None:
        """Discard the file; what is written from now on is dropped."""
        self._is_given_up = self.is_ending = True
        give_up(self._file)

    def keep_while_stored(self, stream: io.IOBase) -> None:
        """Keep a stream as long as the file is being stored after an interrupt."""
        keep = getattr(self._file, "keep_while_stored", None)  # an object of the user's may lack it
        if keep is not None:
            keep(stream)

    @property
    def is_in_store(self) -> bool:
        """Whether the file is stored when it is closed, or flushed."""
        return is_stored_by_close(self._file)

    @property
    def is_torn(self) -> bool:
        """Whether a write failed or was interrupted."""
        return self.has_failed or self._was_interrupted or self._tried > 0

    @property
    def has_failed(self) -> bool:
        """Whether an append has failed; every later write fails too."""
        return self._failure is not None

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")


class StreamWriter(_Stream, io.BufferedWriter):
    """A buffered writer, which its filesystem flushes and closes when it closes itself.

    Large writes go to the plugin's `append` without another copy. The file is complete when
    `close` has returned without an error. An exception that leaves its `with` block discards the
    file of an object store. One thread at a time.

    Args:
        filesystem: Whose file it is.
        file: The file, opened for writing.
        position: Where its end lies now.
        mode: As the user asked.
        buffer_size: In bytes.

    Attributes:
        stores_at_flush: Whether `flush` has a store keep what was written so far.
    """

    stores_at_flush = True

    def __init__(
        self, filesystem: Filesystem, file: WritableFile, position: int, mode: str, buffer_size: int
    ) -> None:
        self._stream = WriterStream(file, position, mode, buffer_size)
        super().__init__(self._stream, buffer_size)
        filesystem.remember_writer(self)

    @property
    def is_torn(self) -> bool:
        """Whether a write failed or was interrupted."""
        return self._stream.is_torn

    def give_up_in_store(self) -> None:
        """Discard the file of a store, which stays as it was; keep any other."""
        self._stream.give_up_in_store()

    def flush(self) -> None:
        """Write the buffer to the plugin and flush the plugin's file."""
        super().flush()
        if not self._stream.is_ending and (self.stores_at_flush or not self._stream.is_in_store):
            self._stream.flush()

    def close(self) -> None:
        """Hand over the rest and close the plugin's file; closing twice is harmless.

        An interrupt leaves it open with what it holds, to be closed again; io's own close would
        have dropped that.
        """
        if self.closed:
            return
        self.prepare_close()
        try:
            super().flush()
        except Exception:
            if self._stream.has_failed:  # else an exception of a signal handler
                with suppress(Exception):
                    self._stream.close()
            raise
        self._close_stream()

    def _close_stream(self) -> None:
        try:
            self._stream.close()
        except Exception:
            raise
        except BaseException:
            self.keep_while_stored(self)
            raise

    def keep_while_stored(self, stream: io.IOBase) -> None:
        """Keep a stream as long as the file is being stored after an interrupt."""
        self._stream.keep_while_stored(stream)

    def empty_buffer(self) -> None:
        """Write the buffer to the plugin; a failure is raised by `close`."""
        try:
            super().flush()
        except Exception:
            if not self._stream.has_failed:
                raise

    def prepare_close(self) -> None:
        """Skip the plugin's flush from now on, since its close writes everything."""
        self._stream.is_ending = True


class TextWriter(_Stream, io.TextIOWrapper):
    """A text writer on a `StreamWriter`; its filesystem flushes and closes both."""

    def __init__(self, filesystem: Filesystem, writer: StreamWriter, **options: Any) -> None:
        super().__init__(writer, **options)
        self._writer = writer
        filesystem.remember_writer(self)

    @property
    def is_torn(self) -> bool:
        """Whether a write failed or was interrupted."""
        return self._writer.is_torn

    def give_up_in_store(self) -> None:
        """Discard the file of a store, which stays as it was; keep any other."""
        self._writer.give_up_in_store()

    def close(self) -> None:
        """Hand over the rest and close the file; closing twice is harmless."""
        if not self.closed:
            self.prepare_close()
            # io forgets the text that it hands to a full buffer whose write is interrupted.
            self._writer.empty_buffer()
        try:
            super().close()
        except Exception:
            raise
        except BaseException:
            self._writer.keep_while_stored(self)
            raise

    def prepare_close(self) -> None:
        """Skip the plugin's flush from now on."""
        self._writer.prepare_close()
