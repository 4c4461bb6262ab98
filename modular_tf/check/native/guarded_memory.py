"""Memory that is lent to a plugin, between two guards that it must not change."""

from __future__ import annotations

from typing import Any

from modular_tf.native.ffi import ffi

GUARD = 64
"""Bytes on each side."""

_ALIGNMENT = 64
_PATTERN = bytes((0xC5 + 7 * index) & 0xFF for index in range(GUARD))
_WORD = 8


class GuardedMemory:
    """A block of an exact size that shows writes beside it.

    The memory lives as long as this object; the owner of `pointer` must keep it. A fresh
    block holds `content`, and zeros behind that. Its address is a multiple of 64, and `shift` more.

    Attributes:
        size: Bytes that the borrower may use.
        pointer: Where they begin, as a `char *`.

    Args:
        size: Of the block.
        content: What it holds at first, at most `size` bytes.
        shift: How far it begins behind an aligned address.
    """

    __slots__ = ("_content", "_guarded", "_memory", "pointer", "size")

    def __init__(self, size: int, content: bytes = b"", *, shift: int = 0) -> None:
        self.size = size
        self._memory = ffi.new("char[]", 2 * GUARD + size + _ALIGNMENT + shift)
        start = -int(ffi.cast("uintptr_t", self._memory)) % _ALIGNMENT + shift
        self.pointer: Any = ffi.cast("char *", self._memory) + start + GUARD
        self._content = content
        whole = memoryview(ffi.buffer(self._memory)).cast("B")
        self._guarded = whole[start : start + 2 * GUARD + size]
        self._guarded[:GUARD] = self._guarded[GUARD + size :] = _PATTERN
        self.view[: len(content)] = content

    @property
    def view(self) -> memoryview:
        """The block, writable."""
        return self._guarded[GUARD : GUARD + self.size]

    @classmethod
    def string(cls, raw: bytes) -> GuardedMemory:
        """Lend a NUL-terminated string."""
        return cls(len(raw) + 1, raw)

    @classmethod
    def words(cls, *words: int) -> GuardedMemory:
        """Lend an array of 64-bit integers or addresses."""
        raw = b"".join((word & (1 << 64) - 1).to_bytes(_WORD, "little") for word in words)
        return cls(len(raw), raw)

    @property
    def address(self) -> int:
        """Where the block begins."""
        return int(ffi.cast("uintptr_t", self.pointer))

    def raw(self, most: int | None = None) -> bytes:
        """Copy the block, or its first bytes."""
        return bytes(self.view[:most])

    def word(self, index: int = 0) -> int:
        """Return an unsigned 64-bit integer out of it."""
        return int.from_bytes(self.raw()[index * _WORD :][:_WORD], "little")

    @property
    def is_unchanged(self) -> bool:
        """Whether the block still holds what it held at first."""
        return self.raw() == self._content.ljust(self.size, b"\0")

    def scribble(self) -> None:
        """Overwrite the block, so that a plugin that kept its address reads wrong bytes."""
        self.view[:] = b"\xdd" * self.size

    def breach(self) -> str | None:
        """Return which bytes beside the block were changed, None where none were."""
        before = _first_difference(bytes(self._guarded[:GUARD])[::-1], _PATTERN[::-1])
        if before is not None:
            return f"the byte {before + 1} before the {self.size} bytes that were lent"
        after = _first_difference(bytes(self._guarded[GUARD + self.size :]), _PATTERN)
        if after is not None:
            return f"byte {self.size + after} of the {self.size} bytes that were lent"
        return None


def _first_difference(found: bytes, expected: bytes) -> int | None:
    if found == expected:
        return None
    pairs = zip(found, expected, strict=True)
    return next(index for index, (left, right) in enumerate(pairs) if left != right)
