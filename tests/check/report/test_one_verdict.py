"""Every form of a report says the same of a plugin."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from modular_tf.check.outcome import Verdict
from modular_tf.check.report.json_report import as_json
from modular_tf.check.report.junit import junit
from modular_tf.check.report.pages import badge, html_page
from modular_tf.check.report.report import Conformance
from modular_tf.check.report.text import summary_line
from tests.check.report.outcomes import FAILED, outcome, report

_GOOD = outcome("FS-150", Verdict.PASSED)
_BLOCKED = outcome("FS-152", Verdict.BLOCKED, message="create_dir failed")
_SKIPPED = outcome("FS-193", Verdict.SKIPPED, message="it is NULL")


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (report(_GOOD), Conformance.CONFORMS),
        (report(_GOOD, _SKIPPED), Conformance.CONFORMS),
        (report(_GOOD, FAILED), Conformance.DEVIATES),
        (report(_GOOD, FAILED, _BLOCKED, unanswered=2), Conformance.DEVIATES),
        (report(_GOOD, _BLOCKED), Conformance.UNKNOWN),
        (report(_GOOD, unanswered=2), Conformance.UNKNOWN),
        (report(_GOOD, faults=("a check failed",)), Conformance.UNKNOWN),
        (report(_SKIPPED), Conformance.UNCHECKED),
        (report(_BLOCKED), Conformance.UNCHECKED),
        (report(), Conformance.UNCHECKED),
    ],
)
def test_text_badge_page_and_the_rest_have_one_verdict(told, said):
    (plugin,) = told.plugins
    page = html_page(told).decode()
    verdicts = re.findall(r'<section>.*?<p><span class="verdict \w+">(.*?)</span>', page, re.DOTALL)

    assert plugin.conformance is told.conformance is said
    assert str(summary_line(plugin)).startswith(f"libmine.so: {said.value}")
    assert ET.fromstring(badge(told)).get("aria-label").startswith(f"modular-tf: {said.value}")
    assert verdicts == [said.value]
    conforms = said is Conformance.CONFORMS
    assert told.conforms is plugin.conforms is as_json(told)["conforms"] is conforms
    suites = ET.fromstring(junit(told))
    bad = [*suites.iterfind(".//failure"), *suites.iterfind(".//error")]
    assert bool(bad) is (said in {Conformance.DEVIATES, Conformance.UNKNOWN})
