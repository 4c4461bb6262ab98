"""Ranges of bytes of one file: which are read together, and how they are cut apart again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GAP_OF_NETWORK = 1 << 18
"""Bytes between two ranges that are read and dropped rather than asked around."""

LARGEST_READ = 1 << 22
"""Bytes of ranges that are read together at most."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A range that somebody wants.

    Attributes:
        number: Its place among all that are wanted.
        start: Its first byte, counted from the start of the file.
        end: The byte behind its last; not before `start`.
    """

    number: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Limits:
    """A range as it was asked for: a slice, whose limits may be missing or negative.

    Attributes:
        number: Its place among all that are wanted.
        start: The first byte.
        end: The byte behind the last.
    """

    number: int
    start: int | None
    end: int | None

    @property
    def is_whole(self) -> bool:
        """Whether all of the file is meant."""
        return not self.start and self.end is None

    @property
    def needs_size(self) -> bool:
        """Whether it is counted from the end of the file."""
        return self.end is None or self.end < 0 or (self.start or 0) < 0

    def wanted(self, size: int | None) -> Wanted:
        """Return the range that is meant in a file of a size, which need not be known for all."""
        if self.end is not None and not self.needs_size:
            first, last = self.start or 0, self.end
        else:
            first, last, _ = slice(self.start, self.end).indices(size or 0)
        return Wanted(self.number, first, max(first, last))


def merged(ranges: Iterable[Wanted], gap: int | None) -> Iterator[list[Wanted]]:
    """Yield groups of ranges that are read together, sorted.

    Args:
        ranges: Ranges of one file.
        gap: Bytes that may lie between two of a group; None for no groups.
    """
    group: list[Wanted] = []
    end = 0
    for wanted in sorted(ranges, key=lambda one: (one.start, one.end)):
        fits = gap is not None and wanted.start - end <= gap
        if group and not (fits and max(end, wanted.end) - group[0].start <= LARGEST_READ):
            yield group
            group = []
        end = max(end, wanted.end) if group else wanted.end
        group.append(wanted)
    if group:
        yield group


def span(group: Sequence[Wanted]) -> tuple[int, int]:
    """Return the first byte of a group and how many bytes it spans."""
    start = group[0].start
    return start, max(wanted.end for wanted in group) - start


def cut_apart(group: Sequence[Wanted], data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each range of a group with its bytes, from what the group spans."""
    start = group[0].start
    for wanted in group:
        yield wanted.number, data[wanted.start - start : wanted.end - start]
