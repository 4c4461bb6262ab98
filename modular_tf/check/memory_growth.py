"""How much memory something keeps."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_growth(work: Callable[[], object], rounds: int) -> int:
    """Do something, as often as asked for, twice; return by how many bytes the second time grew.

    What is kept once, such as memory that an allocator holds for later, comes the first time.

    Args:
        work: One round.
        rounds: How often.
    """
    before = 0
    for _ in range(2):
        before = resident()
        for _ in range(rounds):
            work()
        gc.collect()
    return resident() - before


def resident() -> int:
    """Return how many bytes of this process are in memory."""
    with open("/proc/self/statm", "rb") as sizes:
        return int(sizes.read().split()[1]) * _PAGE
