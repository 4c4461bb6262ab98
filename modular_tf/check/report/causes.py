"""Outcomes that one fault of a plugin explains: told once, and the rest counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Verdict
from modular_tf.check.report.incidents import function_of, own_frame
from modular_tf.check.report.wording import headline

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from modular_tf.check.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Cause:
    """What has, as far as can be told, one cause.

    Attributes:
        first: The outcome to tell in full: of the lowest level, with the fewest calls before it.
        outcomes: All of them, in the order of the report.
    """

    first: Outcome
    outcomes: tuple[Outcome, ...]

    @property
    def verdict(self) -> Verdict:
        """The verdict that all of them have."""
        return self.first.verdict

    @property
    def check_ids(self) -> list[str]:
        """The checks: the first one's, then the others in the order of their ids."""
        first = self.first.check_id
        return [first, *sorted({outcome.check_id for outcome in self.outcomes} - {first})]


def causes(outcomes: Iterable[Outcome], verdicts: Iterable[Verdict]) -> Iterator[Cause]:
    """Bring together what has one cause, verdict by verdict.

    How a plugin took its process down is one cause where function and frame are the same; so is
    what keeps checks from being tried. Anything else is one where the same check found the same,
    on several subjects and in both ways.
    """
    known = list(outcomes)
    for verdict in verdicts:
        together: dict[Hashable, list[Outcome]] = {}
        for outcome in known:
            if outcome.verdict is verdict:
                together.setdefault(_key(outcome), []).append(outcome)
        for found in together.values():
            yield Cause(min(found, key=_length_of_story), tuple(found))


def _key(outcome: Outcome) -> Hashable:
    incident = outcome.incident
    if outcome.verdict is Verdict.BLOCKED:
        return headline(outcome)
    if incident is None or outcome.verdict is Verdict.KNOWN:
        return outcome.check_id, headline(outcome)
    function = function_of(incident.last_call)
    frame = own_frame(incident)
    if function is None and frame is None:
        return outcome.check_id, headline(outcome)
    if outcome.verdict is Verdict.HUNG:  # where a loop was when it was asked is chance
        return function, incident.signal
    return function, incident.signal, incident.exit_status, frame


def _length_of_story(outcome: Outcome) -> tuple[int, int]:
    return int(all_checks()[outcome.check_id].level), len(outcome.calls)
