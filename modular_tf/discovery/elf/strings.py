"""The string table of a library's dynamic section."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.discovery.elf.image import Image

__all__ = ["StringTable"]

# Mangled names of C++ templates reach some ten thousand bytes.
_MAX_STRING = 64 * 1024
# Many symbols may point into one long string: without a budget a file of a few megabytes could
# ask for terabytes of names. TensorFlow's own 520 000 exports need about 60 MB.
_MAX_TOTAL = 256 * 1024 * 1024


class StringTable:
    """NUL-terminated strings by offset."""

    __slots__ = ("_budget", "_image", "_offset", "_size", "_whole")

    def __init__(self, image: Image, address: int, size: int) -> None:
        self._image = image
        self._size = size
        self._offset = image.offset_of(address, size, "the string table") if size else 0
        self._whole: bytes | None = None
        self._budget = _MAX_TOTAL

    def text(self, at: int) -> str:
        """Return the string at offset `at`; bytes that are not UTF-8 become surrogates.

        Raises:
            ElfError: It lies outside the table, does not end, or is absurdly long.
        """
        return self._raw(at).decode("utf-8", "surrogateescape")

    def equals(self, at: int, name: bytes) -> bool:
        """Return whether the string at offset `at` is `name`.

        Raises:
            ElfError: It lies outside the table or does not end, and so is no string.
        """
        length = len(name) + 1
        if at + length > self._size:
            return self._raw(at) == name
        data = self._image.source.read(self._offset + at, length, "a string")
        return data[-1] == 0 and data[:-1] == name

    def load(self) -> None:
        """Read the whole table at once; faster where many strings follow."""
        if self._whole is None:
            self._whole = self._image.source.read(self._offset, self._size, "the string table")

    def mentions(self, name: bytes) -> bool:
        """Return whether a string is `name` or ends with it: linkers let strings share their tails.

        Raises:
            ElfError: The table cannot be read.
        """
        self.load()
        return self._whole is not None and name + b"\0" in self._whole

    def _raw(self, at: int) -> bytes:
        if self._whole is not None:
            end = self._whole.find(b"\0", at, at + _MAX_STRING)
            found = self._whole[at:end] if end >= 0 else None
        else:
            found = self._read_one(at)
        if found is None:
            raise self._image.source.damaged(f"the string at {at} does not end")
        self._budget -= len(found) + 1
        if self._budget < 0:
            raise self._image.source.damaged("its strings are longer than any real library's")
        return found

    def _read_one(self, at: int) -> bytes | None:
        """Read on in growing steps, since nearly all strings are short."""
        step = 128
        while True:
            length = min(step, self._size - at)
            data = self._image.source.read(self._offset + at, max(length, 0), "a string")
            end = data.find(b"\0")
            if end >= 0:
                return data[:end]
            if length < step or step > _MAX_STRING:
                return None
            step *= 8
