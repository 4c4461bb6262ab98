"""What a report comes to, which every form of it says alike: conformance, and the level reached."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.json_report import as_json
from modular_tf.check.report.junit import junit
from modular_tf.check.report.pages import badge, html_page
from modular_tf.check.report.report import Conformance, Report
from modular_tf.check.report.text import plugin_lines, summary_line
from tests.check.report.outcomes import FAILED, outcome, plugin, report

_SVG = "{http://www.w3.org/2000/svg}"
_GREEN, _RED, _GREY = "#1a7f37", "#b3261e", "#57606a"
_GOOD = outcome("FS-150", Verdict.PASSED)
_BLOCKED = outcome("FS-152", Verdict.BLOCKED, message="create_dir failed")
_SKIPPED = outcome("FS-193", Verdict.SKIPPED, message="it is NULL")
_OTHER = {verdict: outcome("FS-156", verdict) for verdict in Verdict}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (report(_GOOD), Conformance.CONFORMS),
        (report(_GOOD, _SKIPPED), Conformance.CONFORMS),
        *(
            (report(_GOOD, _OTHER[verdict]), Conformance.CONFORMS)
            for verdict in (Verdict.WARNED, Verdict.NOTED, Verdict.KNOWN)
        ),
        *((report(_GOOD, _OTHER[verdict]), Conformance.DEVIATES) for verdict in BAD),
        (report(_GOOD, FAILED, _BLOCKED, unanswered=2), Conformance.DEVIATES),
        (report(_GOOD, _BLOCKED), Conformance.UNKNOWN),
        (report(_GOOD, unanswered=2), Conformance.UNKNOWN),
        (report(_GOOD, faults=("a check failed",)), Conformance.UNKNOWN),
        (report(_SKIPPED), Conformance.UNCHECKED),
        (report(_SKIPPED, _BLOCKED), Conformance.UNCHECKED),
        (report(), Conformance.UNCHECKED),
    ],
)
def test_text_badge_page_and_the_rest_have_one_verdict(made, expected):
    (plugin,) = made.plugins
    page = html_page(made).decode()
    verdicts = re.findall(r'<section>.*?<p><span class="verdict \w+">(.*?)</span>', page, re.DOTALL)

    assert plugin.conformance is made.conformance is expected
    assert plugin.has_checked is (expected is not Conformance.UNCHECKED)
    assert str(summary_line(plugin)).startswith(f"libmine.so: {expected.value}")
    assert ET.fromstring(badge(made)).get("aria-label").startswith(f"modular-tf: {expected.value}")
    assert verdicts == [expected.value]
    conforms = expected is Conformance.CONFORMS
    assert made.conforms is plugin.conforms is as_json(made)["conforms"] is conforms
    suites = ET.fromstring(junit(made))
    bad = [*suites.iterfind(".//failure"), *suites.iterfind(".//error")]
    assert bool(bad) is (expected in {Conformance.DEVIATES, Conformance.UNKNOWN})


@pytest.mark.parametrize(
    ("made", "words", "colour"),
    [
        (report(_GOOD), "conforms, level 3", _GREEN),
        (report(_GOOD, FAILED), "does not conform, level 0 of 4", _RED),
        (Report(()), "nothing was checked", _GREY),
        (replace(report(_GOOD), interrupted=True), "is not known to conform", _GREY),
        (report(_GOOD, only=("FS-150",)), "conforms in what was selected", _GREEN),
        (report(_GOOD, FAILED, only=("a*",)), "does not conform in what was selected", _RED),
        (Report((plugin(_GOOD), plugin(FAILED))), "1 of 2 plugins conform", _RED),
    ],
)
def test_the_badge_says_whether_plugins_conform(made, words, colour):
    text = badge(made).decode()
    svg = ET.fromstring(text)
    _, right = svg.findall(f"{_SVG}rect")

    assert svg.get("aria-label") == svg.find(f"{_SVG}title").text == f"modular-tf: {words}"
    assert [text.text for text in svg.findall(f"{_SVG}text")] == ["modular-tf", words]
    assert right.get("fill") == colour
    assert made.conforms is (colour == _GREEN)
    assert text.count("http") == 1  # the name of the format: it needs no other file
    assert "href" not in text


def _of_level(level):
    return next(check.id for check in all_checks().values() if check.level is level)


def test_a_level_is_reached_with_all_below():
    ids = {level: _of_level(level) for level in (Level.LOADS, Level.REGISTERS, Level.WORKS)}
    good = [outcome(check_id, Verdict.PASSED) for check_id in ids.values()]

    assert plugin(*good).level_reached is Level.WORKS
    assert plugin(*good, level=Level.REGISTERS).level_reached is Level.REGISTERS
    for level, check_id in ids.items():
        failed = plugin(*good, outcome(check_id, Verdict.FAILED))
        assert failed.level_reached == (None if level is Level.LOADS else level - 1)
    # A level of which nothing was checked is not reached.
    skipped = outcome(ids[Level.REGISTERS], Verdict.SKIPPED)
    assert plugin(good[0], skipped).level_reached is Level.LOADS
    assert plugin(skipped).level_reached is None


def test_checks_that_were_selected_reach_no_level():
    check_id = _of_level(Level.HARD)
    made = report(outcome(check_id, Verdict.PASSED), only=(check_id,), level=Level.WORKS)
    (selected,) = made.plugins

    summary = f"libmine.so: conforms in what was selected ({check_id}); 1 check: 1 passed"
    assert str(summary_line(selected)).startswith(summary)
    head = str(list(plugin_lines(selected, verbose=False))[1])
    assert f"only {check_id}, seed" in head
    assert "level" not in head
    (shown,) = as_json(made)["plugins"]
    assert (shown["only"], shown["level_reached"]) == ([check_id], None)
    assert ET.fromstring(junit(made)).find(".//property").get("value") == check_id
    three = plugin(_GOOD, only=("FS-150", "FS-151", "a*"))
    assert " (FS-150, FS-151, a*); " in str(summary_line(three))
    many = plugin(_GOOD, only=("FS-150", "FS-151", "a*", "b*"))
    assert " (FS-150, FS-151, a* and 1 more); " in str(summary_line(many))
