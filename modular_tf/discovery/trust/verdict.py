"""The verdict of trust on a plugin, with the rule that decided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.rules import Violation

__all__ = ["TrustVerdict"]


class TrustVerdict(NamedTuple):
    """Whether a plugin may be opened, and by which rule that was decided.

    The files that were judged are `checked`, as they were then: what is mapped has to be the same.
    There is none if the plugin is refused, or if there is no file, which the probe reports.
    """

    rule: str
    message: str  # one sentence without a full stop
    refused: Violation | None = None  # None if the plugin may be opened
    checked: tuple[SeenFile, ...] = ()
    remarks: tuple[str, ...] = ()  # what could not be compared; `message` ends with it

    @property
    def accepted(self) -> bool:
        """Whether the plugin may be opened."""
        return self.refused is None

    @classmethod
    def of_problem(cls, problem: Violation) -> TrustVerdict:
        """Return the refusal for a broken rule."""
        return cls(problem.rule_id, problem.message, problem)

    def on(self, checked: tuple[SeenFile, ...]) -> TrustVerdict:
        """Return the same verdict with these files as `checked`."""
        return TrustVerdict(self.rule, self.message, self.refused, checked, self.remarks)

    def remark(self, *remarks: str) -> TrustVerdict:
        """Return the same verdict with other remarks, if there are any."""
        if not remarks:
            return self
        message = "; ".join((self.message, *remarks))
        return self._replace(message=message, remarks=(*self.remarks, *remarks))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows the reason of a refused plugin, accepts as well."""
        return {
            "stage": "trust",
            "rule": self.rule,
            "message": self.message,
            "remedy": self.refused.remedy if self.refused else None,
        }
