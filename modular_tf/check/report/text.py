"""The report for people, and as annotations of a continuous integration's log."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.report import Conformance
from modular_tf.check.report.wording import (
    causes,
    facts,
    headline,
    places,
    remedy,
    without_own_folders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.report.comparison import Change, Comparison
    from modular_tf.check.report.report import PluginReport, Report
    from modular_tf.check.report.wording import Cause

_SHOWN_AT_LENGTH = (*BAD, Verdict.WARNED)
_SHOWN_IN_SHORT = (Verdict.NOTED, Verdict.KNOWN, Verdict.BLOCKED)
_FIRST_COLUMN = 16
_MOST_BLOCKED = 3
_MOST_SELECTED = 3
_STYLES = {
    **dict.fromkeys(BAD, "bad"),
    Verdict.WARNED: "warning",
    Verdict.BLOCKED: "warning",
    Verdict.PASSED: "good",
}


class Line(NamedTuple):
    """A line of text, of which one word may have a style.

    Attributes:
        before: The text before that word.
        style: `good`, `bad`, `open`, `warning` or `label`; "" for none.
        word: The word.
        after: The text after it.
    """

    before: str
    style: str = ""
    word: str = ""
    after: str = ""

    def __str__(self) -> str:
        return f"{self.before}{self.word}{self.after}"


def report_lines(
    report: Report, changes: Comparison | None = None, *, verbose: bool = False
) -> Iterator[Line]:
    """Yield the whole report; with `verbose`, each outcome."""
    for plugin in report.plugins:
        yield from plugin_lines(plugin, verbose=verbose)
        yield Line("")
    if changes is not None:
        yield from comparison_lines(changes)
    yield from map(summary_line, report.plugins)
    if len(report.plugins) > 1:
        yield Line(total_line(report))


def plugin_lines(plugin: PluginReport, *, verbose: bool) -> Iterator[Line]:
    """Yield the report of one plugin; with `verbose`, also what passed and what was skipped."""
    kinds = " and ".join(plugin.kinds) or "no plugin"
    profile = f", profile {plugin.profile}" if "filesystem" in plugin.kinds else ""
    yield Line(plugin.path)
    asked = f"only {' and '.join(plugin.only)}" if plugin.only else f"level {plugin.level:d}"
    yield Line(f"  {kinds}{profile}, {asked}, seed {plugin.seed}")
    for remark in plugin.remarks:
        yield Line(f"  {remark}")
    for cause in causes(plugin.outcomes, _SHOWN_AT_LENGTH):
        yield Line("")
        yield from _at_length(plugin, cause)
    yield from _in_short(plugin, _SHOWN_IN_SHORT)
    if verbose:
        yield from _in_short(plugin, (Verdict.SKIPPED, Verdict.PASSED))
    for known in plugin.outdated:
        yield Line(f"  {known.check_id} is no known deviation any more: remove it ({known.reason})")
    yield Line("")
    yield from _table(plugin)


def summary_line(plugin: PluginReport) -> Line:
    """Return the one line that says it all."""
    said, name = plugin.conformance, f"{os.path.basename(plugin.path)}: "
    if said is Conformance.UNCHECKED:
        return Line(name, said.style, said.value)
    reason = f", {plugin.left_open}" if said is Conformance.UNKNOWN else ""
    counts = ", ".join(f"{plugin.counts[v]} {v.value}" for v in Verdict if plugin.counts[v])
    number = len(plugin.outcomes)
    rest = (
        f"{_selected_or_reached(plugin, reason)}; "
        f"{number} check{'' if number == 1 else 's'}: {counts} ({plugin.seconds:.1f} s)"
    )
    return Line(name, said.style, plugin.verdict, rest)


def _selected_or_reached(plugin: PluginReport, reason: str) -> str:
    if plugin.only:
        more = len(plugin.only) - _MOST_SELECTED
        rest = f" and {more} more" if more > 0 else ""
        return f" ({', '.join(plugin.only[:_MOST_SELECTED])}{rest}){reason}"
    reached = plugin.level_reached
    level = "no level" if reached is None else f"level {reached:d}"
    return f"{reason}; reaches {level} of {plugin.level:d}"


def total_line(report: Report) -> str:
    """Return the line under several plugins."""
    good = sum(plugin.conforms for plugin in report.plugins)
    return f"{good} of {len(report.plugins)} plugins conform ({report.seconds:.1f} s)"


def _at_length(plugin: PluginReport, cause: Cause) -> Iterator[Line]:
    first, others = cause.first, cause.check_ids[1:]
    check = all_checks()[first.check_id]
    group = f"({check.group}, level {check.level:d})"
    rest = f" {first.check_id} {group} {places(cause.outcomes)}"
    yield Line("", _STYLES[first.verdict], first.verdict.value.upper(), rest)
    yield Line(f"    {headline(first)}")
    for name, lines in facts(first, plugin.path):
        for number, line in enumerate(lines):
            yield _labelled("" if number else name, line)
    yield _labelled("again", again(plugin, first.check_id))
    if others:
        yield _labelled("the same", f"{', '.join(others)} ({cause.extent} of one cause)")


def _labelled(label: str, text: str) -> Line:
    word = f"{label}:" if label else ""
    return Line("    ", "label", word, f"{' ' * (9 - len(word))} {text}")


def again(plugin: PluginReport, check_id: str) -> str:
    """Return the command that tries one check once more."""
    return shlex.join(("modular-tf", "check", "--only", check_id, *plugin.repeated_by, plugin.path))


def _in_short(plugin: PluginReport, verdicts: Sequence[Verdict]) -> Iterator[Line]:
    """Yield a line for each cause; where checks were blocked, with the first of them."""
    for verdict in verdicts:
        found = list(causes(plugin.outcomes, (verdict,)))
        if found:
            yield Line("")
        for cause in found:
            first, ids = cause.first, cause.check_ids
            named, what = f"{first.check_id} ({places(cause.outcomes)})", headline(first)
            if verdict is Verdict.PASSED:
                what = all_checks()[first.check_id].rule.requirement
            elif verdict is Verdict.BLOCKED:
                more = len(ids) - _MOST_BLOCKED
                named = ", ".join(ids[:_MOST_BLOCKED]) + (f", and {more} more" if more > 0 else "")
                what += f" ({without_own_folders(first.found)})" if first.found else ""
            yield Line("", _STYLES.get(verdict, ""), verdict.value, f" {named}: {what}")


def _table(plugin: PluginReport) -> Iterator[Line]:
    """Yield a table of levels and verdicts."""
    columns = [verdict for verdict in Verdict if plugin.counts[verdict]]
    yield Line(f"{'level':{_FIRST_COLUMN}}{''.join(f'{each.value:>9}' for each in columns)}")
    for level, counts in plugin.counts_by_level.items():
        name = f"{level:d} {level.name.lower()}"
        cells = "".join(f"{counts[verdict] or '':>9}" for verdict in columns)
        yield Line(f"{name:{_FIRST_COLUMN}}{cells}".rstrip())


def comparison_lines(comparison: Comparison) -> Iterator[Line]:
    """Yield what changed since an earlier run, the worse first."""
    kinds = {"worse": "bad", "better": "good", "added": "", "gone": ""}
    for name, style in kinds.items():
        for change in getattr(comparison, name):
            yield Line("", style, name, f" {change_line(change)}")
    yield Line(
        f"since then: {len(comparison.better)} better, {len(comparison.worse)} worse, "
        f"{len(comparison.added)} added, {len(comparison.gone)} gone"
    )


def change_line(change: Change) -> str:
    """Return how the verdict of one check changed."""
    where = " ".join(part for part in (change.subject, change.reached) if part)
    before = "not tried" if change.before is None else change.before.value
    after = "not tried" if change.after is None else change.after.value
    return f"{change.check_id} ({change.plugin}, {where}): {before} -> {after}"


# -- annotations ----------------------------------------------------------------------------------

_ESCAPES_OF_MESSAGES = {ord("%"): "%25", ord("\r"): "%0D", ord("\n"): "%0A"}
_ESCAPES_OF_PROPERTIES = {**_ESCAPES_OF_MESSAGES, ord(":"): "%3A", ord(","): "%2C"}
_KINDS = {
    "error": BAD,
    "warning": (Verdict.BLOCKED, Verdict.WARNED),
    "notice": (Verdict.NOTED,),
}


def github_annotations(report: Report) -> Iterator[str]:
    """Yield a line for each cause that a person should see, the worst first.

    GitHub shows a line `::error title=...::message` beside the change that it checks, and the first
    ten of a step.
    """
    for kind, verdicts in _KINDS.items():
        for plugin in report.plugins:
            for cause in causes(plugin.outcomes, verdicts):
                first, others = cause.first, cause.check_ids[1:]
                requirement = all_checks()[first.check_id].rule.requirement
                title = f"{plugin.name}: {first.check_id} ({places(cause.outcomes)})".translate(
                    _ESCAPES_OF_PROPERTIES
                )
                message = f"{requirement}\n{headline(first)}\n{remedy(first)}"
                if others:
                    message += f"\nthe same: {', '.join(others)}"
                yield f"::{kind} title={title}::{message.translate(_ESCAPES_OF_MESSAGES)}"
