"""A writer that stores nothing before everything is there."""

from __future__ import annotations

import os
import threading
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from modular_tf.concurrency.threads import LastingWork
from modular_tf.errors import ClosedError, DataLossError, ModularTFError, ResourceExhaustedError
from modular_tf.filesystem.files import WritableFile
from modular_tf.filesystem.plugin_filesystem import store_aside
from modular_tf.filesystem.python_errors import error_for, translated_errors

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable  # type: ignore[attr-defined,unused-ignore]
    from io import FileIO


class HeldWriter(WritableFile):
    """A writer that holds what is appended in a temporary file until it is stored. [one thread]

    For a store that would have a torn file if its own writer were discarded: because an append
    writes the old content again, or because ending the writer stores what it has.

    - `close`, `flush` and `sync` store everything in one go; after that readers see it.
    - If these are interrupted in the main thread, storing continues in another thread; a second
      call waits for it and raises its errors.
    - Without `close`, the finalizer stores the file, unless it is torn or nothing was appended.
    - The temporary file is in `TMPDIR`; `ResourceExhaustedError` if there is none, for example
      because no descriptor is left.

    `store` replaces the file by the first bytes of the temporary file, given that and their number.
    A file `is_torn` while it lacks bytes: because an append failed or was interrupted, or, where it
    is to begin with old content, until `begin_with_held`.
    """

    is_stored_by_close = True

    def __init__(
        self, uri: str, store: Callable[[FileIO, int], object], *, is_torn: bool = False
    ) -> None:
        self._file: FileIO | None = None
        self.uri = uri
        self.is_torn = is_torn
        self._store_held = store
        self._process = os.getpid()
        self._end = self._old_length = 0
        self._stored: int | None = None  # how many of the bytes the store has
        self._is_ending = False
        self._storing = LastingWork()
        self._is_storing = False  # its thread then closes the file where it is released meanwhile
        try:
            self._file = TemporaryFile(buffering=0)  # noqa: SIM115
        except OSError as error:  # without a descriptor Python finds no directory either
            why = f"no temporary file holds what is written: {error}"
            raise ResourceExhaustedError.of("new_writable_file", uri, why) from error

    def begin_with_held(self) -> None:
        """Treat what was appended so far as the old content, which the store has already."""
        self._stored = self._old_length = self._end
        self.is_torn = False

    def append(self, data: Buffer) -> None:
        """Hold all of `data`; none of it where this raises."""
        file = self._open_file()
        with memoryview(data) as whole, whole.cast("B") as view:
            done = 0
            try:
                while done < len(view):
                    done += os.pwrite(file.fileno(), view[done:], self._end + done)
                self._end += done  # last: bytes past the end do not count, and are written over
            except BaseException as error:
                self.is_torn = True
                if isinstance(error, OSError):
                    raise error_for(error, path=self.uri, operation="append") from error
                raise

    def appended(self) -> int | None:
        return None if self._file is None else self._end - self._old_length

    def tell(self) -> int:
        self._open_file()
        return self._end

    def flush(self) -> None:
        self._open_file()
        self._store_all()

    def close(self) -> None:
        """Store everything and release the file; a failure does too, an interrupt does not."""
        if self._file is not None and self._process == os.getpid():
            self._is_ending = True
            try:
                self._store_all()
            except ModularTFError:
                self.discard()
                raise
        self.discard()

    def discard(self) -> None:
        """Release the temporary file; what was not stored before is lost."""
        file, self._file = self._file, None
        if file is not None and not self._is_storing:
            file.close()

    def end_unclosed(self) -> None:
        """Store a file that nobody closed, unless it is torn.

        One without a byte is not stored: it may be that `open` was interrupted before it returned.
        """
        if getattr(self, "_end", 0):
            self.end()
        elif hasattr(self, "_is_storing"):
            self.discard()

    def __del__(self) -> None:
        self.end_unclosed()

    def _open_file(self) -> FileIO:
        if self._file is None or self._is_ending:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        if self._process != os.getpid():
            raise ClosedError(f"{self.uri!r} belongs to the parent process", path=self.uri)
        return self._file

    def _store_all(self) -> None:
        """Store what the store does not have yet; `DataLossError` for a torn file.

        After any error the store has what it had before.
        """
        if self.is_torn:
            torn = "it lacks bytes, since an append failed, and was not stored; write it again"
            raise DataLossError.of("close", self.uri, torn)
        if threading.current_thread() is threading.main_thread():
            for _ in range(2):  # the thread of an interrupted flush may have begun with fewer bytes
                if self._stored != self._end:
                    store_aside(self._storing, self._store, self.uri)
        self._store()  # where no thread could be had

    def _store(self) -> None:
        """Write a new file of all that is held, unless the store has it."""
        self._is_storing = True  # first: what is released from now on is closed here
        file, end = self._file, self._end
        try:
            if file is not None and self._stored != end:
                with translated_errors("close", self.uri):
                    self._store_held(file, end)
                self._stored = end
        finally:
            self._is_storing = False
            if self._file is None and file is not None:
                file.close()
