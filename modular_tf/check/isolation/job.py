"""What one watcher is given at a time: checks of one subject that share a process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from modular_tf.check.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping


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
