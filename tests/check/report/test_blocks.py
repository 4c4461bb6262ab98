"""What a report says of checks that were blocked, by what the other checks have found."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.report.junit import junit
from modular_tf.check.report.wording import NAME_A_ROOT, with_references
from tests.check.report.outcomes import outcome, report

_LOCKED = "UNAVAILABLE (14): database is locked"


def _message_of(*others, **cause):
    blocked = outcome("FS-236", Verdict.BLOCKED, message="it failed", found=_LOCKED, **cause)
    return with_references([*others, blocked])[-1].message


@pytest.mark.parametrize(
    ("other", "is_named"),
    [
        (None, False),
        (outcome("FS-170", Verdict.PASSED), False),
        (outcome("FS-171", Verdict.FAILED), False),
        (outcome("FS-170", Verdict.KNOWN), True),
        (outcome("FS-170", Verdict.CRASHED, reached=Pass.HOST), True),
    ],
)
def test_a_check_is_referred_to_only_where_it_found_something(other, is_named):
    seen = _message_of(*filter(None, (other,)), see=("FS-170", "FS-001"))

    assert seen == f"it failed{': see FS-170' if is_named else ''}"
    of_no_check = _message_of(*filter(None, (other,)), see=("LD-130",))
    assert of_no_check == "it failed: see LD-130"


@pytest.mark.parametrize(
    ("other", "asks"),
    [
        (None, True),
        (outcome("FS-001", Verdict.PASSED, reached=Pass.LIBRARY, subject=""), True),
        (outcome("FS-150", Verdict.PASSED, subject="other://"), True),
        (outcome("FS-150", Verdict.CRASHED), True),
        (outcome("FS-150", Verdict.PASSED), False),
        (outcome("FS-150", Verdict.FAILED), False),
    ],
)
def test_a_root_is_asked_for_only_where_none_has_worked(other, asks):
    seen = _message_of(*filter(None, (other,)), wants_root=True)

    assert seen == f"it failed{NAME_A_ROOT if asks else ''}"


def test_junit_has_what_the_plugin_said():
    blocked = outcome("FS-236", Verdict.BLOCKED, message="close failed", found=_LOCKED)
    (case,) = ET.fromstring(junit(report(blocked))).iter("skipped")

    assert case.get("message") == f"close failed ({_LOCKED})"
