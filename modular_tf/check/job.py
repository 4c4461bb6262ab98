"""Checks that share a process, how long they may take, and where they may write."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping  # noqa: TC003  (for the codec)
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from modular_tf.check.outcome import Outcome
from modular_tf.check.target import Target  # noqa: TC001  (likewise)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.outcome import Verdict


@dataclass(frozen=True, slots=True)
class Job:
    """Checks of one subject that share a process.

    Attributes:
        target: What they work on.
        subject: What a report calls it.
        checks: Their ids, in the order in which they are tried.
        environment: Variables of the process beyond those of this one.
        alone: Jobs that name the same thing here are tried one after the other; None for any time.
    """

    target: Target
    subject: str
    checks: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    alone: str | None = None

    def outcome(self, check_id: str, verdict: Verdict, message: str, **more: Any) -> Outcome:
        """Return the outcome of one of its checks; `more` are further fields."""
        return Outcome(check_id, self.subject, self.target.reached, verdict, message, **more)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a run.

    Attributes:
        patience: How many times as long as usual each check may take (`Check.seconds`).
        jobs: How many processes run checks at a time; None for one per processor.
        preload: Whether the checking allocator replaces the C library's.
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


@contextmanager
def scratch_folder(parent: str | None = None) -> Iterator[str]:
    """Make an empty local directory for the block, and remove whatever is in it afterwards."""
    folder = tempfile.mkdtemp(prefix="modular_tf_check-", dir=parent)
    try:
        yield folder
    finally:
        for inner, _, _ in os.walk(folder):  # top down: what was locked is listed afterwards
            with suppress(OSError):
                os.chmod(inner, stat.S_IRWXU)
        shutil.rmtree(folder, ignore_errors=True)
