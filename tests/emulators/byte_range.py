"""The `Range` header of HTTP, for a single range of bytes (RFC 9110 §14)."""

from __future__ import annotations

import re
from typing import NamedTuple

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")


class ByteRange(NamedTuple):
    """Bytes `first` to `last`, both included, of something `length` bytes long."""

    first: int
    last: int
    length: int

    @property
    def content_range(self) -> str:
        """The value of a `Content-Range` header."""
        return f"bytes {self.first}-{self.last}/{self.length}"


class UnsatisfiableRange(ValueError):  # noqa: N818  (the name that RFC 9110 gives to the 416 case)
    """No byte of the resource lies in the range."""


def requested_range(header: str | None, length: int) -> ByteRange | None:
    """Return the range that a `Range` header asks for; None stands for the whole resource.

    A header that is malformed, or asks for several ranges, counts as absent, as the RFC allows.

    Raises:
        UnsatisfiableRange: The range begins at or behind the end.
    """
    match = _RANGE.match(header or "")
    if match is None or match.group() == "bytes=-":
        return None
    first, last = match.groups()
    if not first:
        return _within(length - min(int(last), length), length - 1, length)
    if last and int(last) < int(first):
        return None
    return _within(int(first), int(last) if last else length - 1, length)


def _within(first: int, last: int, length: int) -> ByteRange:
    if first >= length:
        raise UnsatisfiableRange(f"{first} lies behind the end, {length}")
    return ByteRange(first, min(last, length - 1), length)
