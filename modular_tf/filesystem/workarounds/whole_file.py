"""A file of a store whose bytes came when it was opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import ClosedError, InvalidArgumentError
from modular_tf.filesystem.files import RandomAccessFile

if TYPE_CHECKING:
    from collections.abc import Buffer  # type: ignore[attr-defined,unused-ignore]


class WholeFile(RandomAccessFile):
    """A file that was read whole when it was opened [any thread]

    Args:
        uri: What it was opened as.
        data: Its bytes.
    """

    __slots__ = ("_data",)
    holds_bytes = True

    def __init__(self, uri: str, data: bytes) -> None:
        self.uri = uri
        self._data: bytes | None = data

    def known_length(self) -> int:
        """Return the length that the file had when it was opened."""
        return len(self._held())

    def read(self, offset: int, n: int) -> bytes:
        """Return up to `n` bytes from `offset`; fewer only where the file ends."""
        if offset < 0 or n < 0:
            raise InvalidArgumentError(
                f"read {self.uri!r}: no file has {n} bytes at {offset}", path=self.uri
            )
        return self._held()[offset : offset + n]

    def readinto(self, offset: int, buffer: Buffer) -> int:
        """Fill `buffer` from `offset`; return the number of bytes read."""
        target = memoryview(buffer).cast("B")
        data = self.read(offset, len(target))
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Forget the bytes."""
        self._data = None

    def _held(self) -> bytes:
        if self._data is None:
            raise ClosedError(f"{self.uri!r} is closed", path=self.uri)
        return self._data
