"""Two reports side by side: what got better, what got worse."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.report import labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.check.report.report import Report

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
        plugin: The file name of the library, its path where another one has that name.
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


def compare(before: Report, after: Report) -> Comparison:
    """Compare two runs; `same_plugins` says which of their plugins are the same."""
    same = same_plugins([it.path for it in before.plugins], [it.path for it in after.plugins])
    then, now = _verdicts(before, same), _verdicts(after, {})
    found: dict[str, list[Change]] = {"better": [], "worse": [], "added": [], "gone": []}
    for key in now | then:
        name, new = now.get(key, ("", None))
        old_name, old = then.get(key, ("", None))
        change = Change(name or old_name, *key[1:], old, new)
        if old is None:
            found["added"].append(change)
        elif new is None:
            found["gone"].append(change)
        elif _RANKS[old] != _RANKS[new]:
            found["better" if _RANKS[new] < _RANKS[old] else "worse"].append(change)
    return Comparison(**{name: tuple(changes) for name, changes in found.items()})


def _verdicts(
    report: Report, same: Mapping[str, str]
) -> dict[tuple[str, str, str, str], tuple[str, Verdict]]:
    """Return the label of the plugin and the verdict by plugin, check, subject and way."""
    names = labels(report.plugins)
    return {
        (same.get(plugin.path, plugin.path), each.check_id, each.subject, each.reached.value): (
            names[plugin.path],
            each.verdict,
        )
        for plugin in report.plugins
        for each in plugin.outcomes
    }


def same_plugins(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """Return which library of a later run is one of an earlier run, by their paths.

    They are the same where as much as possible of the end of their paths is: a build in another
    directory is compared, and of two libraries of one name each with its own. What could be one or
    another is neither.
    """
    then, now = set(before), set(after)
    found: dict[str, str] = {}
    for length in range(max((path.count(os.sep) for path in then | now), default=0) + 1, 0, -1):
        ends_then, ends_now = _by_end(then, length), _by_end(now, length)
        for end in ends_then.keys() & ends_now.keys():
            if len(ends_then[end]) == len(ends_now[end]) == 1:
                (old,), (new,) = ends_then[end], ends_now[end]
                found[old] = new
                then.remove(old)
                now.remove(new)
    return found


def _by_end(paths: Iterable[str], length: int) -> dict[tuple[str, ...], list[str]]:
    ends: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        ends.setdefault(tuple(path.split(os.sep)[-length:]), []).append(path)
    return ends
