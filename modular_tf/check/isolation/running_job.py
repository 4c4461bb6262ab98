"""A job that a watcher has, as far as the application knows what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.isolation.ending import blocked, ended_watcher
from modular_tf.check.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.isolation.job import Job


class CheckFaultError(RuntimeError):
    """A check, or the kit, failed by itself, so nothing can be said of the plugin.

    Attributes:
        check_id: The check, None where it was none.
        subject: What it was tried on.
        text: What happened, mostly a traceback.
    """

    def __init__(self, check_id: str | None, subject: str, text: str) -> None:
        super().__init__(f"check {check_id or 'of none'} on {subject or 'the library'}: {text}")
        self.check_id = check_id
        self.subject = subject
        self.text = text


class RunningJob:
    """A job that a watcher has.

    Attributes:
        number: The job's among all.
        job: The job, as far as it was given.
        outcomes: What has become of its checks so far.
        heard: Whether the watcher has said anything of the job.
        fault: How the kit failed at it, None where it did not.

    Args:
        number: The job's among all.
        job: The job.
        tell: Is given each outcome.
    """

    def __init__(self, number: int, job: Job, tell: Callable[[Outcome], None]) -> None:
        self.number = number
        self.job = job
        self.outcomes: list[Outcome] = []
        self.heard = False
        self.fault: CheckFaultError | None = None
        self._tell = tell

    def take(self, entry: dict[str, Any]) -> bool:
        """Take what the watcher tells; tell whether the job is finished."""
        self.heard = True
        match entry:
            case {"outcome": dict(value)}:
                self._add(Outcome.from_dict(value))
            case {"fault": str(text)}:
                self.fault = CheckFaultError(entry["check"], self.job.subject, text)
        return "finished" in entry

    @property
    def number_left(self) -> int:
        """How many checks nothing is known of."""
        return len(self.job.checks) - len(self.outcomes)

    def blame(self) -> None:
        """Hold the loss of the watcher against the check that was under way."""
        if (left := self.left()) is not None:
            self._add(ended_watcher(left, left.checks[0]))

    def block(self, why: str) -> None:
        """Say of all checks that are left that they are not tried, and why."""
        for check_id in self.job.checks[len(self.outcomes) :]:
            self._add(blocked(self.job, check_id, why))

    def finish(self) -> None:
        """See to it that no check of the job, which is finished, is forgotten."""
        if (left := self.left()) is not None and self.fault is None:
            self.fault = CheckFaultError(left.checks[0], left.subject, "nothing became of it")

    def left(self) -> Job | None:
        """Return the job with the checks that nothing is known of, None where there are none."""
        if len(self.outcomes) == len(self.job.checks):
            return None
        return replace(self.job, checks=self.job.checks[len(self.outcomes) :])

    def _add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._tell(outcome)
