"""The badge of a report."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from modular_tf.check.outcome import Verdict
from modular_tf.check.report.pages import badge
from modular_tf.check.report.report import Report
from tests.check.report.outcomes import FAILED, outcome, plugin, report

_SVG = "{http://www.w3.org/2000/svg}"
_GOOD = outcome("FS-150", Verdict.PASSED)
_GREEN, _RED, _GREY = "#1a7f37", "#b3261e", "#57606a"


@pytest.mark.parametrize(
    ("told", "words", "colour"),
    [
        (report(_GOOD), "conforms, level 3", _GREEN),
        (report(_GOOD, FAILED), "does not conform, level 0 of 4", _RED),
        (report(_GOOD, unanswered=2), "is not known to conform", _GREY),
        (report(), "nothing was checked", _GREY),
        (replace(report(_GOOD), interrupted=True), "is not known to conform", _GREY),
        (Report((plugin(_GOOD), plugin(FAILED))), "1 of 2 plugins conform", _RED),
        (Report((plugin(_GOOD), plugin(_GOOD))), "2 of 2 plugins conform", _GREEN),
    ],
)
def test_the_badge_says_whether_plugins_conform(told, words, colour):
    svg = ET.fromstring(badge(told))

    assert svg.get("aria-label") == svg.find(f"{_SVG}title").text == f"modular-tf: {words}"
    assert [text.text for text in svg.findall(f"{_SVG}text")] == ["modular-tf", words]
    assert svg.findall(f"{_SVG}rect")[1].get("fill") == colour


def test_the_fields_of_a_badge_lie_side_by_side():
    svg = ET.fromstring(badge(report(_GOOD)))
    left, right = svg.findall(f"{_SVG}rect")

    assert float(left.get("width")) == float(right.get("x"))
    assert float(svg.get("width")) == float(right.get("x")) + float(right.get("width"))


def test_a_badge_needs_no_other_file():
    text = badge(report(FAILED)).decode()

    assert text.count("http") == 1  # the name of the format
    assert "href" not in text
