"""One outcome in words, the same in every report."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Verdict
from modular_tf.check.report.incidents import incident_headline, incident_remedy, last_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.check import Check
    from modular_tf.check.outcome import Outcome

PATH_LETTERS = (
    "F and G are files, E is an empty file, D an empty directory, N a directory with a file, X and "
    "Y are names that do not exist, F/x is a name below a file, X/y a name in a directory that "
    "does not exist"
)
"""The letters by which checks of filesystems name paths."""

_CALLS_SHOWN = 16
_OWN_FOLDERS = re.compile(
    r"(?:modular-tf-check/)?"
    # Digits are tried from their first one only: the time is linear, whatever a plugin has written.
    r"(?:(?<![0-9a-f])[0-9a-f]{12,}-[0-9]+/(?:[A-Z]{2}-[0-9]{3}-[0-9]+(?:/|(?=')))?)+"
)


def headline(outcome: Outcome) -> str:
    """Return what was found, in one line, without the check's name."""
    if outcome.verdict is Verdict.KNOWN:
        return f"known deviation: {outcome.reason}"
    if outcome.incident is not None:
        return without_own_folders(incident_headline(outcome, outcome.incident))
    return without_own_folders(outcome.message) or outcome.verdict.value


def remedy(outcome: Outcome) -> str:
    """Return what to do: that of the rule, or what helps against a crash, a hang or an exit."""
    if outcome.incident is not None:
        return incident_remedy(outcome, outcome.incident)
    return all_checks()[outcome.check_id].rule.remedy


def facts_of_check(check: Check) -> Iterator[str]:
    """Yield how a check is tried: on which level, in which ways, and on which conditions."""
    yield f"level {check.level:d}"
    yield f"group {check.group}"
    yield f"by {' and '.join(sorted(way.value for way in check.passes))}"
    if check.needs:
        yield f"needs {', '.join(f'`{slot}`' for slot in check.needs)}"
    if check.traits:
        yield f"takes for granted: {', '.join(sorted(check.traits))}"


def facts(outcome: Outcome, folder: str = "") -> Iterator[tuple[str, Sequence[str]]]:
    """Yield names and lines: what the rule asks, what was found, the calls before, what to do.

    Args:
        outcome: The outcome.
        folder: Of the plugin, which native frames are shown without.
    """
    rule = all_checks()[outcome.check_id].rule
    yield (
        "required" if outcome.incident is None else "tried",
        [f"{rule.requirement} [{rule.source}]"],
    )
    if outcome.expected:
        yield "expected", [without_own_folders(outcome.expected)]
    if outcome.found:
        yield "found", [without_own_folders(outcome.found)]
    yield "calls", [without_own_folders(call) for call in outcome.calls[-_CALLS_SHOWN:]]
    if outcome.incident is not None:
        yield "frames", [frame.removeprefix(folder) for frame in outcome.incident.backtrace]
        yield "said", last_words(outcome.incident.said)
    yield "remedy", [remedy(outcome)]


def details(outcome: Outcome, folder: str = "") -> Iterator[str]:
    """Yield the same as lines of text."""
    for name, lines in facts(outcome, folder):
        for number, line in enumerate(lines):
            label = "" if number else f"{name}:"
            yield f"{label:9} {line}"


def without_own_folders(text: str) -> str:
    """Return text whose URIs are shown without the folders that the kit makes for each check."""
    return _OWN_FOLDERS.sub("…/", text)
