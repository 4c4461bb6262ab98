"""What one watcher is given at a time: checks of one subject that share a process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.outcome import Outcome


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

    def after(self, lost_calls: Mapping[str, str]) -> Job:
        """Return the job for processes that come after others, which were lost in these calls."""
        return replace(self, target=replace(self.target, lost_calls=dict(lost_calls)))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "target": self.target.as_dict(),
            "subject": self.subject,
            "checks": list(self.checks),
            "environment": dict(self.environment),
        }

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Job:
        """Make it from what `as_dict` gave, in a process that trusts the one that did."""
        return cls(
            target=Target.from_dict(value["target"]),
            subject=value["subject"],
            checks=tuple(value["checks"]),
            environment=value["environment"],
        )


def note_lost_call(lost_calls: dict[str, str], outcome: Outcome) -> None:
    """Add the call in which a check lost its process, if it did; see `Target.lost_calls`."""
    if outcome.lost_call is not None:
        lost_calls.setdefault(outcome.lost_call, outcome.check_id)
