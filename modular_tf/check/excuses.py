"""What becomes of a deviation that the profile excuses, or that the author knows of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.settings import CheckSettings, KnownDeviation

_DEVIATIONS = BAD | {Verdict.WARNED}


def excused(outcome: Outcome, settings: CheckSettings) -> Outcome:
    """Return an outcome as the author's settings see it.

    A profile excuses a wrong answer, never a crash; a known deviation may be one.
    """
    if outcome.verdict not in _DEVIATIONS:
        return outcome
    for known in settings.known:
        if known.covers(outcome):
            return replace(outcome, verdict=Verdict.KNOWN, reason=known.reason)
    excuse = settings.profile.excuse(all_checks()[outcome.check_id].traits)
    if excuse is not None and outcome.verdict in {Verdict.FAILED, Verdict.WARNED}:
        return replace(outcome, verdict=Verdict.NOTED)
    return outcome


def outdated(known: Iterable[KnownDeviation], outcomes: Sequence[Outcome]) -> list[KnownDeviation]:
    """Return the known deviations that were looked for and not found: they can be removed."""
    return [
        deviation
        for deviation in known
        if (covered := [outcome for outcome in outcomes if deviation.covers(outcome)])
        and all(outcome.verdict is Verdict.PASSED for outcome in covered)
    ]
