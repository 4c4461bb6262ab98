"""Two reports side by side: what got better, what got worse."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.check.outcome import BAD, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.report.report import PluginReport, Report

_Key = tuple[str, str, str, str]

_RANKS = {
    Verdict.PASSED: 0,
    Verdict.NOTED: 1,
    Verdict.KNOWN: 2,
    Verdict.WARNED: 3,
    Verdict.SKIPPED: 4,
    Verdict.BLOCKED: 5,
    **dict.fromkeys(BAD, 6),
}
"""How bad a verdict is: a check that is no longer tried is worse than one that warned."""


@dataclass(frozen=True, slots=True)
class Change:
    """One check whose verdict is another than before.

    Attributes:
        plugin: The file name of the library.
        check_id: Id of the check.
        subject: The scheme or device.
        reached: In which way.
        before: The verdict then, None where it was not tried.
        after: The verdict now, None where it was not tried.
    """

    plugin: str
    check_id: str
    subject: str
    reached: str
    before: Verdict | None
    after: Verdict | None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            "plugin": self.plugin,
            "check_id": self.check_id,
            "subject": self.subject,
            "reached": self.reached,
            "before": None if self.before is None else self.before.value,
            "after": None if self.after is None else self.after.value,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one run to the next; what stayed as it was is not listed.

    Attributes:
        better: Verdicts that improved.
        worse: Verdicts that got worse.
        added: Checks that were tried now and not then.
        gone: Checks that were tried then and not now.
    """

    better: tuple[Change, ...]
    worse: tuple[Change, ...]
    added: tuple[Change, ...]
    gone: tuple[Change, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {
            name: [change.as_dict() for change in getattr(self, name)]
            for name in ("better", "worse", "added", "gone")
        }


def compare(before: Report, after: Report) -> Comparison:
    """Compare two runs; plugins are the same by the file name of their library."""
    then, now = dict(_outcomes(before)), dict(_outcomes(after))
    changes = [Change(*key, then[key], now[key]) for key in now if key in then]
    return Comparison(
        better=tuple(change for change in changes if _steps(change) < 0),
        worse=tuple(change for change in changes if _steps(change) > 0),
        added=tuple(Change(*key, None, now[key]) for key in now if key not in then),
        gone=tuple(Change(*key, then[key], None) for key in then if key not in now),
    )


def _steps(change: Change) -> int:
    if change.before is None or change.after is None:
        return 0
    return _RANKS[change.after] - _RANKS[change.before]


def _outcomes(report: Report) -> Iterator[tuple[_Key, Verdict]]:
    for plugin in report.plugins:
        for outcome in plugin.outcomes:
            yield _key(plugin, outcome), outcome.verdict


def _key(plugin: PluginReport, outcome: Outcome) -> _Key:
    name = os.path.basename(plugin.path)
    return name, outcome.check_id, outcome.subject, outcome.reached.value
