"""The report as JUnit XML, which continuous integration knows how to show."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.report import Conformance, labels
from modular_tf.check.report.wording import details, headline

if TYPE_CHECKING:
    from modular_tf.check.outcome import Outcome
    from modular_tf.check.report.report import PluginReport, Report

_ENDED = {Verdict.CRASHED, Verdict.HUNG, Verdict.EXITED}
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF)
_NO_TEXT = {code: "\ufffd" for code in _CONTROLS if chr(code) not in "\t\n\r"}


def text_of_xml(text: str) -> str:
    """Return text as XML and HTML can hold it: without control characters and broken bytes."""
    return text.translate(_NO_TEXT).encode("utf-8", "replace").decode()


def junit(report: Report) -> bytes:
    """Return a report as XML: a suite for each plugin, subject and way, a case for each check.

    What a process of checks did not survive is an error, a wrong answer a failure. Warnings and
    notes are passed cases with a word on their output.
    """
    root = ET.Element("testsuites", name="modular-tf check", time=f"{report.seconds:.3f}")
    names = labels(report.plugins)
    shared = Counter(plugin.name for plugin in report.plugins)
    for plugin in report.plugins:
        label = names[plugin.path]
        owner = plugin.name if shared[plugin.name] == 1 else label
        for name in dict.fromkeys(_suite(outcome) for outcome in plugin.outcomes):
            outcomes = [outcome for outcome in plugin.outcomes if _suite(outcome) == name]
            root.append(_as_suite(f"{label}: {name}", f"{owner}.{name}", outcomes))
        if plugin.conformance is Conformance.UNKNOWN:
            root.append(_left_open(plugin, label, owner))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _suite(outcome: Outcome) -> str:
    return f"{outcome.subject or 'library'} ({outcome.reached.value})"


def _as_suite(name: str, owner: str, outcomes: list[Outcome]) -> ET.Element:
    verdicts = [outcome.verdict for outcome in outcomes]
    suite = ET.Element(
        "testsuite",
        name=text_of_xml(name),
        tests=str(len(outcomes)),
        failures=str(sum(verdict is Verdict.FAILED for verdict in verdicts)),
        errors=str(sum(verdict in _ENDED for verdict in verdicts)),
        skipped=str(sum(_is_skipped(verdict) for verdict in verdicts)),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        suite.append(_as_case(owner, outcome))
    return suite


def _left_open(plugin: PluginReport, name: str, owner: str) -> ET.Element:
    """Return a suite that has an error: what nobody knows must not look as if it conformed."""
    suite = ET.Element(
        "testsuite", name=text_of_xml(f"{name}: all checks"), tests="1", failures="0", errors="1",
        skipped="0", time="0",
    )  # fmt: skip
    case = ET.SubElement(
        suite, "testcase", classname=text_of_xml(owner), name="every check has a result",
        time="0",
    )  # fmt: skip
    ET.SubElement(case, "error", type="open", message=plugin.left_open)
    return suite


def _is_skipped(verdict: Verdict) -> bool:
    return verdict in {Verdict.SKIPPED, Verdict.BLOCKED, Verdict.KNOWN}


def _as_case(owner: str, outcome: Outcome) -> ET.Element:
    check = all_checks()[outcome.check_id]
    case = ET.Element(
        "testcase",
        classname=text_of_xml(f"{owner}.{check.group}"),
        name=f"{outcome.check_id} {check.rule.requirement}",
        time=f"{outcome.seconds:.3f}",
    )
    if outcome.verdict in BAD:
        kind = "error" if outcome.verdict in _ENDED else "failure"
        said = ET.SubElement(
            case, kind, type=outcome.verdict.value, message=text_of_xml(headline(outcome))
        )
        said.text = text_of_xml("\n".join(details(outcome)))
    elif _is_skipped(outcome.verdict):
        ET.SubElement(case, "skipped", message=text_of_xml(headline(outcome)))
    elif outcome.verdict is not Verdict.PASSED:
        output = ET.SubElement(case, "system-out")
        output.text = text_of_xml("\n".join((headline(outcome), *details(outcome))))
    return case
