"""The answer to `why NAME`: facts, and the lines that tell them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.rules import Violation

STATE = "state"
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the answer: a thing that is known about what was asked for.

    Most facts tell of no fault, and a fact may cite a rule that was kept. What was found wrong is a
    `Violation`, of which `of` makes a fact.

    Attributes:
        subject: What it is about: `plugin NAME`, `scheme NAME`, `device type NAME`, `device NAME`,
            `path PATH`, `distribution NAME`, `operation NAME`, `rule ID`, or `name NAME` for
            what nothing goes by.
        stage: `state` for what there is and `absent` for what is not, once for each subject and
            before its other facts; a stage of a plugin's way (`Violation.stage`) for what was
            decided there; `source`, `twin`, `serves`, `contest`, `quarantine`, `warning`, `holds`,
            `package`, `isolation`, `suggestion`, `problem` and `searched` for what
            these say; `if not`, `remedy`, `tried`, `paths` and `judged by` of a rule; `next` for
            what to do.
        text: The fact, one sentence without a full stop.
        rule: Id of the rule that decided, None where no single one did.
        remedy: What to do about it, None where nothing is to be done or nobody can know.
    """

    subject: str
    stage: str
    text: str
    rule: str | None = None
    remedy: str | None = None

    @classmethod
    def of(
        cls, subject: str, violation: Violation, stage: str | None = None, *, prefix: str = ""
    ) -> Fact:
        """Return the fact that shows what was found wrong.

        Args:
            subject: What it is about.
            violation: What was found wrong.
            stage: What the fact is told as, the violation's own stage by default.
            prefix: What its text begins with, before a colon.
        """
        text = f"{prefix}: {violation.message}" if prefix else violation.message
        shown_stage = violation.stage if stage is None else stage
        return cls(subject, shown_stage, text, violation.rule, violation.remedy)

    def lines(self) -> Iterator[str]:
        """Yield what people read of it."""
        rule = f" [{self.rule}]" if self.rule else ""
        if self.stage in {STATE, ABSENT}:
            yield f"{self.text}{rule}"
        else:
            yield f"  {self.stage}: {self.text}{rule}"
        if self.remedy:
            yield f"    {self.remedy}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer to `why NAME`.

    Attributes:
        name: What was asked for.
        known: Whether anything goes by that name.
        facts: What is known, the decisive things first.
    """

    name: str
    known: bool
    facts: tuple[Fact, ...]

    @property
    def lines(self) -> tuple[str, ...]:
        """The answer for people, one line after the other."""
        return tuple(line for fact in self.facts for line in fact.lines())

    def as_dict(self) -> dict[str, Any]:
        """Return it as values of JSON."""
        return {
            "name": self.name,
            "known": self.known,
            "facts": [asdict(fact) for fact in self.facts],
            "lines": list(self.lines),
        }
