"""The files that TensorFlow has open, by the numbers that the native side knows them by."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ClosedError, DeadlineExceededError
from modular_tf.filesystem.files import WritableFile

if TYPE_CHECKING:
    from modular_tf.filesystem.files import RandomAccessFile

_numbers = count(1)
_files: dict[int, OpenFile] = {}


class OpenFile:
    """A file that TensorFlow has open, and what became of its calls. [any thread]

    Args:
        file: The file.
        plugin: Who serves it.
        limit_s: How long a call may take; None as long as it takes.

    Attributes:
        file: The file.
        plugin: Who serves it.
        limit_s: How long a call may take.
    """

    __slots__ = ("_is_dropped", "_is_incomplete", "_late", "_lock", "file", "limit_s", "plugin")

    def __init__(
        self, file: RandomAccessFile | WritableFile, plugin: str, limit_s: float | None
    ) -> None:
        self.file = file
        self.plugin = plugin
        self.limit_s = limit_s
        self._lock = ForkLock()
        self._late = 0  # calls that were left behind and have not ended
        self._is_incomplete = False
        self._is_dropped = False

    def check(self, operation: str) -> None:
        """Return where a call may begin.

        Raises:
            DeadlineExceededError: One that was left behind has not ended; or, of a file that is
                written, one was ever left behind, so that nobody knows what the file holds.
        """
        if not self._late and not self._is_incomplete:
            return
        raise DeadlineExceededError(
            f"{operation} {self.file.uri!r}: an earlier call of {self.plugin!r} took longer than"
            f" {self.limit_s:g} s"
            + (", and what was written is lost" if self._is_incomplete else ""),
            plugin=self.plugin,
            path=self.file.uri,
            operation=operation,
        )

    def leave_call(self) -> None:
        """Note that a call is left behind."""
        with self._lock:
            self._late += 1
            self._is_incomplete = isinstance(self.file, WritableFile)

    def end_call(self) -> None:
        """Note that a call has ended that was left behind."""
        with self._lock:
            self._late -= 1
            is_last = self._is_dropped and not self._late
        if is_last:
            self._discard()

    def drop(self) -> None:
        """Give the file up when its last call has ended; a store keeps nothing of it."""
        with self._lock:
            self._is_dropped = True
            is_last = not self._late
        if is_last:
            self._discard()

    def _discard(self) -> None:
        with suppress(Exception):  # what failed was told when the call was left behind
            if isinstance(self.file, WritableFile):
                self.file.discard()
            else:
                self.file.close()


def add(opened: OpenFile) -> int:
    """Keep a file until it is removed, and return its number. [any thread]"""
    number = next(_numbers)
    _files[number] = opened
    return number


def get(number: int) -> OpenFile:
    """Return an open file. [any thread]

    Raises:
        ClosedError: It was removed.
    """
    try:
        return _files[number]
    except KeyError:
        raise ClosedError("the file is closed") from None


def remove(number: int) -> OpenFile | None:
    """Forget a file and return it; None if it was forgotten before. [any thread]"""
    return _files.pop(number, None)
