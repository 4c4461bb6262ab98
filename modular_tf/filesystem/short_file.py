"""A file that was read to its end by the call that opened it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import ClosedError, NotFoundError
from modular_tf.filesystem.files import RandomAccessFile

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]

    from modular_tf.filesystem.filesystem import Filesystem


class ShortFile(RandomAccessFile):
    """A file that is closed in its store, and opened anew for bytes that may have been added.

    Where it is gone meanwhile, nothing was added. One thread at a time.
    """

    __slots__ = ("_again", "_closed", "_filesystem")

    def __init__(self, filesystem: Filesystem, uri: str) -> None:
        self.uri = uri
        self._filesystem = filesystem
        self._again: RandomAccessFile | None = None
        self._closed = False

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        file = self._opened()
        return b"" if file is None else file.read(offset, n)

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        file = self._opened()
        return 0 if file is None else file.readinto(offset, buffer)

    def _opened(self) -> RandomAccessFile | None:
        if self._closed:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        if self._again is None:
            try:
                self._again = self._filesystem.new_random_access_file(self.uri)
            except NotFoundError:
                return None
        return self._again

    def close(self) -> None:
        """Close it, where it was opened anew."""
        self._closed = True
        if self._again is not None:
            self._again.close()
