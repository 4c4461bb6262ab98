"""The report for people: what is wrong, why it matters, what to do, and a summary."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.causes import causes
from modular_tf.check.report.report import Conformance
from modular_tf.check.report.wording import details, headline, without_own_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.report.causes import Cause
    from modular_tf.check.report.comparison import Change, Comparison
    from modular_tf.check.report.report import PluginReport, Report

_SHOWN_AT_LENGTH = (*sorted(BAD, key=lambda verdict: verdict.value), Verdict.WARNED)
_SHOWN_IN_SHORT = (Verdict.NOTED, Verdict.KNOWN)
_FIRST_COLUMN = 16
_MOST_BLOCKED = 3


def plugin_lines(plugin: PluginReport, *, verbose: bool) -> Iterator[str]:
    """Yield the report of one plugin.

    Args:
        plugin: Its report.
        verbose: Show every outcome, also those that passed and were skipped.
    """
    yield f"{plugin.path}"
    yield f"  {_what_was_asked(plugin)}"
    for remark in plugin.remarks:
        yield f"  {remark}"
    for cause in causes(plugin.outcomes, _SHOWN_AT_LENGTH):
        yield ""
        yield from _at_length(plugin, cause)
    yield from _in_short(plugin, _SHOWN_IN_SHORT)
    yield from _blocked(plugin)
    if verbose:
        yield from _in_short(plugin, (Verdict.SKIPPED, Verdict.PASSED))
    for known in plugin.outdated:
        yield f"  {known.check_id} is no known deviation any more: remove it ({known.reason})"
    yield ""
    yield from _table(plugin)


def _what_was_asked(plugin: PluginReport) -> str:
    kinds = " and ".join(plugin.kinds) or "no plugin"
    profile = f", profile {plugin.profile}" if "filesystem" in plugin.kinds else ""
    return f"{kinds}{profile}, level {plugin.level:d}, seed {plugin.seed}"


def summary_line(plugin: PluginReport) -> str:
    """Return the one line that says it all."""
    name = os.path.basename(plugin.path)
    verdict = plugin.conformance.value
    if plugin.conformance is Conformance.UNCHECKED:
        return f"{name}: {verdict}"
    if plugin.conformance is Conformance.UNKNOWN:
        verdict = f"{verdict}, {plugin.left_open}"
    reached = plugin.level_reached
    level = "no level" if reached is None else f"level {reached:d}"
    counts = ", ".join(f"{plugin.counts[v]} {v.value}" for v in Verdict if plugin.counts[v])
    total = len(plugin.outcomes)
    return (
        f"{name}: {verdict}; reaches {level} of {plugin.level:d}; "
        f"{total} checks: {counts} ({plugin.seconds:.1f} s)"
    )


def total_line(report: Report) -> str:
    """Return the line under several plugins."""
    good = sum(plugin.conforms for plugin in report.plugins)
    total = len(report.plugins)
    return f"{good} of {total} plugins conform ({report.seconds:.1f} s)"


def _at_length(plugin: PluginReport, cause: Cause) -> Iterator[str]:
    first, others = cause.first, cause.check_ids[1:]
    check = all_checks()[first.check_id]
    name = f"{first.verdict.value.upper()} {first.check_id}"
    yield f"{name} ({check.group}, level {check.level:d}) {places(cause.outcomes)}"
    yield f"    {headline(first)}"
    for line in details(first, f"{os.path.dirname(plugin.path)}/"):
        yield f"    {line}"
    yield f"    again:    {again(plugin, first.check_id)}"
    if others:
        yield f"    the same: {', '.join(others)} ({extent(cause)} of one cause)"


def extent(cause: Cause) -> str:
    """Return how many checks and outcomes a cause has."""
    checks, outcomes = len(cause.check_ids), len(cause.outcomes)
    return f"{checks} check{'s'[: checks > 1]}, {outcomes} outcome{'s'[: outcomes > 1]}"


def again(plugin: PluginReport, check_id: str) -> str:
    """Return the command that tries one check once more."""
    return shlex.join(("modular-tf", "check", "--only", check_id, *plugin.repeated_by, plugin.path))


def places(outcomes: Iterable[Outcome]) -> str:
    """Return subjects with the ways in which they were reached: `ram:// raw and host`."""
    ways: dict[str, dict[str, None]] = {}
    for outcome in outcomes:
        ways.setdefault(outcome.subject or "the library", {})[outcome.reached.value] = None
    return ", ".join(
        subject if [*reached] == ["library"] else f"{subject} {' and '.join(reached)}"
        for subject, reached in ways.items()
    )


def _in_short(plugin: PluginReport, verdicts: Sequence[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        for number, cause in enumerate(causes(plugin.outcomes, (verdict,))):
            if number == 0:
                yield ""
            first = cause.first
            requirement = all_checks()[first.check_id].rule.requirement
            what = requirement if verdict is Verdict.PASSED else headline(first)
            yield f"{verdict.value} {first.check_id} ({places(cause.outcomes)}): {what}"


def _blocked(plugin: PluginReport) -> Iterator[str]:
    """Yield a line for each cause, with the first of the checks that it kept from being tried."""
    for number, cause in enumerate(causes(plugin.outcomes, (Verdict.BLOCKED,))):
        if number == 0:
            yield ""
        ids, first = cause.check_ids, cause.first
        named = ", ".join(ids[:_MOST_BLOCKED])
        if (more := len(ids) - _MOST_BLOCKED) > 0:
            named += f", and {more} more"
        found = f" ({without_own_folders(first.found)})" if first.found else ""
        yield f"blocked {named}: {headline(first)}{found}"


def _table(plugin: PluginReport) -> Iterator[str]:
    """Yield a table of levels and verdicts."""
    columns = [verdict for verdict in Verdict if plugin.counts[verdict]]
    heads = "".join(f"{verdict.value:>9}" for verdict in columns)
    yield f"{'level':{_FIRST_COLUMN}}{heads}"
    for level, counts in plugin.counts_by_level.items():
        name = f"{level:d} {level.name.lower()}"
        cells = "".join(f"{counts[verdict] or '':>9}" for verdict in columns)
        yield f"{name:{_FIRST_COLUMN}}{cells}".rstrip()


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what changed since an earlier run, the worse first."""
    for name in ("worse", "better", "added", "gone"):
        for change in getattr(comparison, name):
            yield f"{name} {change_line(change)}"
    yield (
        f"since then: {len(comparison.better)} better, {len(comparison.worse)} worse, "
        f"{len(comparison.added)} added, {len(comparison.gone)} gone"
    )


def change_line(change: Change) -> str:
    """Return what became of one check."""
    where = " ".join(part for part in (change.subject, change.reached) if part)
    before = "not tried" if change.before is None else change.before.value
    after = "not tried" if change.after is None else change.after.value
    return f"{change.check_id} ({change.plugin}, {where}): {before} -> {after}"
