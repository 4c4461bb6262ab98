"""The report as JUnit XML, which continuous integration knows how to show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Verdict
from modular_tf.check.report.report import Conformance, labels
from modular_tf.check.report.wording import details, headline, without_own_folders

if TYPE_CHECKING:
    from modular_tf.check.outcome import Outcome
    from modular_tf.check.report.report import Report

_KINDS = {
    Verdict.FAILED: "failure",
    **dict.fromkeys((Verdict.CRASHED, Verdict.HUNG, Verdict.EXITED), "error"),
    **dict.fromkeys((Verdict.SKIPPED, Verdict.BLOCKED, Verdict.KNOWN), "skipped"),
    **dict.fromkeys((Verdict.WARNED, Verdict.NOTED), "system-out"),
}
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF)
_NO_TEXT = {code: "\ufffd" for code in _CONTROLS if chr(code) not in "\t\n\r"}


def text_of_xml(text: str) -> str:
    """Return text as XML and HTML can hold it: without control characters and broken bytes."""
    return text.translate(_NO_TEXT).encode("utf-8", "replace").decode()


def junit(report: Report) -> bytes:
    """Return a report as XML: a suite for each plugin, subject and way, a case for each check.

    What a process of checks did not survive is an error, a wrong answer a failure. Warnings and
    notes are passed cases with a word on their output. Suites of checks that were selected have the
    property `only`.
    """
    root = ET.Element("testsuites", name="modular-tf check", time=f"{report.seconds:.3f}")
    names = labels(report.plugins)
    shared = Counter(plugin.name for plugin in report.plugins)
    for plugin in report.plugins:
        label = names[plugin.path]
        owner = plugin.name if shared[plugin.name] == 1 else label
        by_place: dict[str, list[Outcome]] = {}
        for outcome in plugin.outcomes:
            place = f"{outcome.subject or 'library'} ({outcome.reached.value})"
            by_place.setdefault(place, []).append(outcome)
        for place, outcomes in by_place.items():
            cases = [_case(f"{owner}.{place}", outcome) for outcome in outcomes]
            suite = _suite(f"{label}: {place}", cases, sum(it.seconds for it in outcomes))
            if plugin.only:
                properties = ET.Element("properties")
                ET.SubElement(properties, "property", name="only", value=" ".join(plugin.only))
                suite.insert(0, properties)
            root.append(suite)
        if plugin.conformance is Conformance.UNKNOWN:  # which must not look as if it conformed
            case = ET.Element(
                "testcase", classname=owner, name="every check has a result", time="0"
            )
            ET.SubElement(case, "error", type="open", message=plugin.left_open)
            root.append(_suite(f"{label}: all checks", [case], 0))
    ET.indent(root)
    text = text_of_xml(ET.tostring(root, encoding="unicode"))
    return f"<?xml version='1.0' encoding='utf-8'?>\n{text}".encode()


def _suite(name: str, cases: list[ET.Element], seconds: float) -> ET.Element:
    kinds = Counter(part.tag for case in cases for part in case)
    suite = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(kinds["failure"]),
        errors=str(kinds["error"]),
        skipped=str(kinds["skipped"]),
        time=f"{seconds:.3f}",
    )
    suite.extend(cases)
    return suite


def _case(owner: str, outcome: Outcome) -> ET.Element:
    check = all_checks()[outcome.check_id]
    name = f"{outcome.check_id} {check.rule.requirement}"
    seconds = f"{outcome.seconds:.3f}"
    case = ET.Element("testcase", classname=f"{owner}.{check.group}", name=name, time=seconds)
    if (kind := _KINDS.get(outcome.verdict)) is None:
        return case
    part = ET.SubElement(case, kind)
    if kind == "system-out":
        part.text = "\n".join((headline(outcome), *details(outcome)))
        return case
    said = headline(outcome)
    if outcome.verdict is Verdict.BLOCKED and outcome.found:
        said = f"{said} ({without_own_folders(outcome.found)})"
    part.set("message", said)
    if kind != "skipped":
        part.set("type", outcome.verdict.value)
        part.text = "\n".join(details(outcome))
    return case
