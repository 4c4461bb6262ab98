"""The report as annotations of a continuous integration's log.

GitHub shows a line `::error title=...::message` beside the change that it checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.causes import causes
from modular_tf.check.report.text import places
from modular_tf.check.report.wording import headline, remedy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.report.causes import Cause
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
    """Yield a line for each cause that a person should see, the worst first.

    GitHub shows the first ten of a step.
    """
    for wanted in ("error", "warning", "notice"):
        verdicts = [verdict for verdict, kind in _KINDS.items() if kind == wanted]
        for plugin in report.plugins:
            for cause in causes(plugin.outcomes, sorted(verdicts, key=lambda each: each.value)):
                yield _annotation(wanted, plugin.name, cause)


def _annotation(kind: str, plugin: str, cause: Cause) -> str:
    first = cause.first
    rule = all_checks()[first.check_id].rule
    title = f"{plugin}: {first.check_id} ({places(cause.outcomes)})"
    message = f"{rule.requirement}\n{headline(first)}\n{remedy(first)}"
    if others := cause.check_ids[1:]:
        message += f"\nthe same: {', '.join(others)}"
    return (
        f"::{kind} title={title.translate(_ESCAPES_OF_PROPERTIES)}"
        f"::{message.translate(_ESCAPES_OF_MESSAGES)}"
    )
