"""What a process has taken, sampled, and whether it goes on taking."""

from __future__ import annotations

import gc
import os
import resource
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median
from typing import NamedTuple

_PAGE_MIB = resource.getpagesize() / (1 << 20)


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at this process.

    Attributes:
        memory_mib: What of it lies in memory.
        descriptors: Open files.
        threads: Of Python and of plugins.
        mappings: Lines of /proc/self/maps.
    """

    memory_mib: float
    descriptors: int
    threads: int
    mappings: int


def take_sample():
    """Look at this process, its garbage collected."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    with Path("/proc/self/maps").open(errors="replace") as maps:
        mappings = sum(1 for _ in maps)
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208  (only how many)
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    return Sample(pages * _PAGE_MIB, descriptors, threads, mappings)


class Trend(NamedTuple):
    """What became of one measure after the warm-up.

    Attributes:
        name: Of the measure.
        first: Its median over the first third of the samples.
        last: The same over the last third.
        allowed: By how much `last` may be above `first`.
    """

    name: str
    first: float
    last: float
    allowed: float

    @property
    def is_flat(self):
        """Whether it stays where it was, but for what heaps and thread pools do by chance."""
        return self.last - self.first <= self.allowed


# A share of the first third, and a number: what the allocator of eight threads may keep, and a few
# of the rest; medians hide what single jobs hold at the moment of a look.
_ALLOWED = {
    "memory_mib": (0.05, 8.0),
    "descriptors": (0.1, 4.0),
    "threads": (0.1, 2.0),
    "mappings": (0.05, 24.0),
}


def trends(samples):
    """Return how each measure went; the warm-up is the first fifth.

    Raises:
        ValueError: There are too few samples for an answer.
    """
    kept = samples[len(samples) // 5 :]
    third = len(kept) // 3
    if third < 2:
        raise ValueError(f"{len(samples)} samples are too few for a trend")
    return [_trend(entry.name, kept[:third], kept[-third:]) for entry in fields(Sample)]


def _trend(name, early, late):
    first = median(getattr(sample, name) for sample in early)
    last = median(getattr(sample, name) for sample in late)
    share, number = _ALLOWED[name]
    return Trend(name, first, last, max(share * first, number))
