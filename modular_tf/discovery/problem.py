"""A problem of a candidate or of a place that was searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.rules import Severity, rule

if TYPE_CHECKING:
    from modular_tf.errors import ElfError
    from modular_tf.rules import Rule

__all__ = ["Problem", "problem_of"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One broken rule as a value, which the report keeps.

    Attributes:
        rule: Id of the rule, `LD-nnn`.
        message: What was expected and what was found, one sentence without a full stop.
        remedy: What the user or the author can do.
        path: The file or directory concerned, if one is.
        origin: What named it: a variable, a distribution, a directory.
    """

    rule: str
    message: str
    remedy: str
    path: str | None = None
    origin: str | None = None

    @property
    def severity(self) -> Severity:
        """Whether it refuses the plugin or warns."""
        return rule(self.rule).severity

    @property
    def is_error(self) -> bool:
        """Whether it refuses the plugin."""
        return self.severity is Severity.ERROR

    @classmethod
    def of(
        cls,
        broken: Rule,
        message: str,
        *,
        remedy: str | None = None,
        path: str | None = None,
        origin: str | None = None,
    ) -> Problem:
        """Return the problem of a `broken` rule; its own remedy unless a better one is known."""
        return cls(broken.id, message, remedy or broken.remedy, path, origin)


def problem_of(error: ElfError) -> Problem:
    """Return the problem that an error of the ELF reader describes."""
    return Problem.of(rule(error.rule or "LD-005"), error.message, path=error.path)
