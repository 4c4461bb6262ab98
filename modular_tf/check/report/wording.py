"""One outcome in words, the same in every report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Verdict
from modular_tf.check.report.incidents import incident_headline, incident_remedy, process_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.outcome import Outcome

_CALLS_SHOWN = 16
_OWN_FOLDERS = re.compile(
    r"(?:modular-tf-check/)?(?:[0-9a-f]{12,}-[0-9]+/(?:[A-Z]{2}-[0-9]{3}-[0-9]+(?:/|(?=')))?)+"
)


def headline(outcome: Outcome) -> str:
    """Return what was found, in one line, without the check's name."""
    if outcome.verdict is Verdict.KNOWN:
        return f"known deviation: {outcome.reason}"
    if outcome.incident is not None:
        return without_own_folders(incident_headline(outcome, outcome.incident))
    return outcome.message or outcome.verdict.value


def remedy(outcome: Outcome) -> str:
    """Return what to do: that of the rule, or what helps against a crash, a hang or an exit."""
    if outcome.incident is not None:
        return incident_remedy(outcome, outcome.incident)
    return all_checks()[outcome.check_id].rule.remedy


def details(outcome: Outcome, folder: str = "") -> Iterator[str]:
    """Yield lines: what the rule asks, what was found, the calls before, and what to do.

    Args:
        outcome: The outcome.
        folder: Of the plugin, which native frames are shown without.
    """
    rule = all_checks()[outcome.check_id].rule
    asked = "required:" if outcome.incident is None else "tried:   "
    yield f"{asked} {rule.requirement} [{rule.source}]"
    if outcome.expected:
        yield f"expected: {outcome.expected}"
    if outcome.found:
        yield f"found:    {outcome.found}"
    for number, call in enumerate(outcome.calls[-_CALLS_SHOWN:]):
        yield f"{'calls:   ' if number == 0 else '         '} {without_own_folders(call)}"
    if outcome.incident is not None:
        yield from process_lines(outcome.incident, folder)
    yield f"remedy:   {remedy(outcome)}"


def without_own_folders(text: str) -> str:
    """Return text whose URIs are shown without the folders that the kit makes for each check."""
    return _OWN_FOLDERS.sub("…/", text)
