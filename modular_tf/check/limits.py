"""How long checks may take, and how many processes they may be tried in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run.

    Attributes:
        patience: How many times as long as usual each check may take (`Check.seconds`).
        jobs: How many processes run at a time; None for one per processor.
    """

    patience: float = 1.0
    jobs: int | None = None
