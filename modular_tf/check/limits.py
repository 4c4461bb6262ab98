"""How long checks may take, and how many processes of them there may be at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.check.check import Check


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run.

    Attributes:
        patience: How many times as long as usual each check may take (`Check.seconds`).
        jobs: How many processes run checks at a time; None for one per processor.
        preload: Whether the checking allocator stands in for the C library's.
    """

    patience: float = 1.0
    jobs: int | None = None
    preload: bool = True

    @property
    def processes(self) -> int:
        """How many processes run checks at a time."""
        return len(os.sched_getaffinity(0)) if self.jobs is None else max(1, self.jobs)

    def seconds_of(self, check: Check) -> float:
        """Return how long a check may take."""
        return check.seconds * self.patience
