"""The report as annotations of a continuous integration's log.

GitHub shows a line `::error title=...::message` beside the change that it checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.wording import headline, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.report.report import Report

_ESCAPES_OF_MESSAGES = {ord("%"): "%25", ord("\r"): "%0D", ord("\n"): "%0A"}
_ESCAPES_OF_PROPERTIES = {**_ESCAPES_OF_MESSAGES, ord(":"): "%3A", ord(","): "%2C"}
_KINDS = {
    **dict.fromkeys(BAD, "error"),
    Verdict.BLOCKED: "warning",
    Verdict.WARNED: "warning",
    Verdict.NOTED: "notice",
}


def github_annotations(report: Report) -> Iterator[str]:
    """Yield a line for each outcome that a person should see, the worst first."""
    for wanted in ("error", "warning", "notice"):
        for plugin in report.plugins:
            for outcome in plugin.outcomes:
                if _KINDS.get(outcome.verdict) == wanted:
                    yield _annotation(wanted, plugin.name, outcome)


def _annotation(kind: str, plugin: str, outcome: Outcome) -> str:
    rule = all_checks()[outcome.check_id].rule
    where = " ".join(part for part in (outcome.subject, outcome.reached.value) if part)
    title = f"{plugin}: {outcome.check_id} ({where})"
    message = f"{rule.requirement}\n{headline(outcome)}\n{remedy(outcome)}"
    return (
        f"::{kind} title={title.translate(_ESCAPES_OF_PROPERTIES)}"
        f"::{message.translate(_ESCAPES_OF_MESSAGES)}"
    )
