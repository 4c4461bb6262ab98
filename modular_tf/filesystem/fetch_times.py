"""What reads of a store have taken, and which holes between reads are therefore read with them."""

from __future__ import annotations

from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

TELLING = 1 << 18
"""Bytes from which on a read tells of throughput too."""

_MOST_TIMES = 8  # what a read tells of: longer ones than it by this factor


class FetchTimes:
    """Latency and throughput of one filesystem. [any thread]

    Attributes:
        reach: Bytes that come within one latency. To read through a hole that is shorter takes less
            time than a read of its own behind it. 0 until a read has told.
    """

    def __init__(self) -> None:
        self._latency = float("inf")
        self.reach = 0

    @contextmanager
    def measured(self, n: int) -> Iterator[None]:
        """Measure the read of `n` bytes in the block, unless it fails."""
        start = monotonic()
        yield
        self.note(n, monotonic() - start)

    def note(self, n: int, seconds: float) -> None:
        """Learn from a read; one that is shorter than the reach changes it by little."""
        self._latency = latency = min(self._latency, seconds)
        if n >= TELLING:
            transfer = max(seconds - latency, latency / _MOST_TIMES)
            told = int(n * latency / transfer)
            reach = self.reach
            self.reach = told if n >= reach else reach + (told - reach) * n // (4 * reach)
