"""The report as one HTML page that needs nothing else: no network, and no script to be read."""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.causes import causes
from modular_tf.check.report.comparison import compare
from modular_tf.check.report.markup import element
from modular_tf.check.report.report import Conformance
from modular_tf.check.report.text import (
    again,
    change_line,
    extent,
    places,
    summary_line,
    total_line,
)
from modular_tf.check.report.wording import facts, headline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.check.check import Check
    from modular_tf.check.level import Level
    from modular_tf.check.outcome import Outcome
    from modular_tf.check.report.causes import Cause
    from modular_tf.check.report.report import PluginReport, Report

_SHOWN = (
    *sorted(BAD, key=lambda verdict: verdict.value),
    Verdict.BLOCKED,
    Verdict.WARNED,
    Verdict.NOTED,
    Verdict.KNOWN,
)
_STATES = {
    Conformance.CONFORMS: "good",
    Conformance.DEVIATES: "bad",
    Conformance.UNKNOWN: "open",
    Conformance.UNCHECKED: "open",
}
"""The style of each in page.css."""
_FOLDED = {"calls", "frames", "said"}
_TITLE = "modular-tf check"


def html_page(report: Report, before: Report | None = None) -> bytes:
    """Return a report as a page.

    What plugins have said is text there, whatever it looks like; the page's own policy runs no
    script and loads nothing but its own.

    Args:
        report: The report.
        before: That of an earlier run, to compare with; None for none.
    """
    style, script = _beside("page.css"), _beside("page.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"{_TITLE}: {', '.join(plugin.name for plugin in report.plugins)}"),
        element("style", style),
    )
    body = element("body", *_body(report, before), element("script", script))
    page = ET.tostring(element("html", head, body, lang="en"), encoding="unicode", method="html")
    return f"<!DOCTYPE html>\n{page}\n".encode()


def _beside(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as stream:
        return stream.read()


def _policy(style: str, script: str) -> str:
    """Return a policy that lets the browser use this style and this script, and nothing else."""
    return f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _body(report: Report, before: Report | None) -> Iterator[ET.Element]:
    yield element("h1", _TITLE)
    if len(report.plugins) > 1:
        yield element("p", total_line(report))
    if report.interrupted:
        yield element("p", "The run was interrupted: there is less here than was asked for.")
    yield _filters(report)
    if before is not None:
        yield from _changes(report, before)
    for plugin in report.plugins:
        yield element("section", *_plugin(plugin))


def _filters(report: Report) -> ET.Element:
    """Return the form that the script shows; without the script it stays hidden."""
    checks = [all_checks()[o.check_id] for plugin in report.plugins for o in plugin.outcomes]
    levels = {f"{level:d}": _level(level) for level in sorted({check.level for check in checks})}
    families = {name: name for name in sorted({check.group for check in checks})}
    return element(
        "form",
        element("label", "level ", _choice("level", levels)),
        element("label", "family ", _choice("family", families)),
        id="filters",
        hidden="hidden",
    )


def _choice(name: str, choices: dict[str, str]) -> ET.Element:
    options = {"": "all", **choices}
    made = [element("option", shown, value=value) for value, shown in options.items()]
    return element("select", *made, name=name)


def _level(level: Level) -> str:
    return f"{level:d} {level.name.lower()}"


def _changes(report: Report, before: Report) -> Iterator[ET.Element]:
    """Yield what is better or worse than in the earlier run."""
    compared = compare(before, report)
    yield element("h2", "Since the earlier run")
    for name in ("worse", "better", "added", "gone"):
        changes = getattr(compared, name)
        heading = element("summary", _badge(name), f" {len(changes)}")
        lines = [_item(change.check_id, change_line(change)) for change in changes]
        made = element("details", heading, element("ul", *lines), class_="changes")
        if name == "worse" and changes:
            made.set("open", "open")
        yield made


def _plugin(plugin: PluginReport) -> Iterator[ET.Element]:
    yield element("h2", plugin.name)
    said = plugin.conformance
    yield element("p", _badge(_STATES[said], said.value), f" {summary_line(plugin)}")
    yield element("p", element("code", plugin.path))
    for remark in plugin.remarks:
        yield element("p", remark)
    for known in plugin.outdated:
        yield element("p", f"{known.check_id} is no known deviation any more: remove it")
    yield _table(plugin)
    found = list(causes(plugin.outcomes, _SHOWN))
    yield element("h3", f"Found: {len(found)}")
    for number, cause in enumerate(found):
        yield _cause(plugin, cause, is_open=number == 0)
    yield _all_checks(plugin)


def _table(plugin: PluginReport) -> ET.Element:
    columns = [verdict for verdict in Verdict if plugin.counts[verdict]]
    heads = [element("th", verdict.value, class_="number") for verdict in columns]
    rows = [element("tr", element("th", "level"), *heads)]
    for level, counts in plugin.counts_by_level.items():
        cells = [element("td", str(counts[each] or ""), class_="number") for each in columns]
        rows.append(element("tr", element("td", _level(level)), *cells))
    return element("table", *rows)


def _cause(plugin: PluginReport, cause: Cause, *, is_open: bool) -> ET.Element:
    first = cause.first
    heading = element(
        "summary",
        _badge(cause.verdict.value),
        " ",
        element("code", first.check_id),
        f" {headline(first)} ",
        element("span", f"({extent(cause)})", class_="count"),
    )
    told = list(facts(first, f"{os.path.dirname(plugin.path)}/"))
    shown = [(name, lines) for name, lines in told if name not in _FOLDED]
    pairs = [*shown, ("again", [again(plugin, first.check_id)])]
    made = element(
        "details",
        heading,
        element("dl", *(part for name, lines in pairs for part in _pair(name, lines))),
        *(_folded(name, lines) for name, lines in told if name in _FOLDED and lines),
        element("ul", *(_told_of(outcome) for outcome in cause.outcomes)),
        class_="cause holder",
    )
    if is_open:
        made.set("open", "open")
    return made


def _pair(name: str, lines: Iterable[str]) -> Iterator[ET.Element]:
    yield element("dt", name)
    yield element("dd", element("code", *lines) if name == "again" else "\n".join(lines))


def _folded(name: str, lines: Iterable[str]) -> ET.Element:
    items = [element("li", line, class_="call") for line in lines]
    heading = element("summary", f"{name} ({len(items)})")
    return element("details", heading, element("ol", *items), class_=name)


def _told_of(outcome: Outcome) -> ET.Element:
    requirement = all_checks()[outcome.check_id].rule.requirement
    return _item(outcome.check_id, f"{outcome.check_id} {places([outcome])}: {requirement}")


def _item(check_id: str, text: str) -> ET.Element:
    check = all_checks().get(check_id)  # an earlier run may have known others
    filtered = {} if check is None else _filtered_by(check)
    return element("li", text, **filtered)


def _filtered_by(check: Check) -> dict[str, str]:
    return {"data_level": f"{check.level:d}", "data_family": check.group}


def _all_checks(plugin: PluginReport) -> ET.Element:
    """Return every outcome, one a row, folded."""
    rows = [
        element(
            "tr",
            element("td", _badge(outcome.verdict.value)),
            element("td", outcome.check_id),
            element("td", f"{check.group}, level {check.level:d}"),
            element("td", places([outcome])),
            element("td", check.rule.requirement),
            **_filtered_by(check),
        )
        for outcome in plugin.outcomes
        for check in (all_checks()[outcome.check_id],)
    ]
    heading = element("summary", f"all checks ({len(rows)})")
    return element("details", heading, element("table", *rows), class_="all holder")


def _badge(kind: str, text: str | None = None) -> ET.Element:
    return element("span", text or kind, class_=f"verdict {kind}")
