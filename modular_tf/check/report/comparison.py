"""Two reports side by side: what got better, what got worse."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.report import labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.check.report.report import PluginReport, Report

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
    """Compare two runs; `same_plugins` says which of their plugins are the same."""
    names_then, names_now = labels(before.plugins), labels(after.plugins)
    same = same_plugins(
        [each.path for each in before.plugins], [each.path for each in after.plugins]
    )
    then = {
        (same.get(plugin.path, plugin.path), *key): (verdict, names_then[plugin.path])
        for plugin in before.plugins
        for key, verdict in _verdicts(plugin)
    }
    now = {
        (plugin.path, *key): (verdict, names_now[plugin.path])
        for plugin in after.plugins
        for key, verdict in _verdicts(plugin)
    }
    changes = [
        Change(name, *key[1:], then[key][0], verdict)
        for key, (verdict, name) in now.items()
        if key in then
    ]
    return Comparison(
        better=tuple(change for change in changes if _steps(change) < 0),
        worse=tuple(change for change in changes if _steps(change) > 0),
        added=tuple(
            Change(name, *key[1:], None, verdict)
            for key, (verdict, name) in now.items()
            if key not in then
        ),
        gone=tuple(
            Change(name, *key[1:], verdict, None)
            for key, (verdict, name) in then.items()
            if key not in now
        ),
    )


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


def _steps(change: Change) -> int:
    if change.before is None or change.after is None:
        return 0
    return _RANKS[change.after] - _RANKS[change.before]


def _verdicts(plugin: PluginReport) -> Iterator[tuple[tuple[str, str, str], Verdict]]:
    for outcome in plugin.outcomes:
        yield (outcome.check_id, outcome.subject, outcome.reached.value), outcome.verdict
