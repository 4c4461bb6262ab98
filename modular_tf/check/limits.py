"""How long checks may take, and how many processes of them there may be at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.check.check import Check


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one run.

    Attributes:
        jobs: How many processes run checks at a time.
        seconds: How long each check may take, None for what it says itself (`Check.seconds`).
        preload: Whether the checking allocator stands in for the C library's.
    """

    jobs: int
    seconds: float | None = None
    preload: bool = True

    @classmethod
    def of(cls, *, jobs: int | None = None, seconds: float | None = None) -> Limits:
        """Make limits of what a user said; by default as many processes as there are processors."""
        usual = len(os.sched_getaffinity(0))
        return cls(jobs=usual if jobs is None else max(1, jobs), seconds=seconds)

    def seconds_of(self, check: Check) -> float:
        """Return how long a check may take."""
        return check.seconds if self.seconds is None else self.seconds
