"""What a report says of checks that were blocked, by what the other checks have found."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.report.blocks import with_known_causes
from modular_tf.check.report.junit import junit
from modular_tf.check.target import NAME_A_ROOT
from tests.check.report.outcomes import outcome, report

_LOCKED = "UNAVAILABLE (14): database is locked"


def _message_of(message, *others):
    blocked = outcome("FS-236", Verdict.BLOCKED, message=message, found=_LOCKED)
    return with_known_causes([*others, blocked])[-1].message


@pytest.mark.parametrize(
    ("other", "is_kept"),
    [
        (None, False),
        *((outcome("FS-170", each), False) for each in (Verdict.PASSED, Verdict.SKIPPED)),
        (outcome("FS-171", Verdict.FAILED), False),
        *((outcome("FS-170", each), True) for each in (Verdict.FAILED, Verdict.KNOWN)),
        (outcome("FS-170", Verdict.CRASHED, reached=Pass.HOST), True),
    ],
)
def test_a_check_is_referred_to_only_where_it_found_something(other, is_kept):
    others = [] if other is None else [other]
    seen = _message_of("new_writable_file failed: see FS-170", *others)

    assert seen == f"new_writable_file failed{': see FS-170' if is_kept else ''}"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("the functions are NULL: see FS-001 and FS-002", "the functions are NULL"),
        ("it cannot be read: see LD-001 to LD-009", "it cannot be read"),
        ("it was refused: see LD-130", "it was refused: see LD-130"),  # a rule, and no check
        ("not done: see FS-019: init failed", "not done: see FS-019: init failed"),
    ],
)
def test_only_a_reference_to_checks_goes(message, shown):
    assert _message_of(message) == shown


@pytest.mark.parametrize(
    ("other", "asks"),
    [
        (None, True),
        (outcome("FS-001", Verdict.PASSED, reached=Pass.LIBRARY, subject=""), True),
        (outcome("FS-150", Verdict.PASSED, subject="other://"), True),
        (outcome("FS-150", Verdict.SKIPPED), True),
        (outcome("FS-150", Verdict.CRASHED), True),
        (outcome("FS-150", Verdict.PASSED), False),
        (outcome("FS-150", Verdict.FAILED), False),
    ],
)
def test_a_root_is_asked_for_only_where_none_has_worked(other, asks):
    others = [] if other is None else [other]
    seen = _message_of(f"nothing can be made below mine://{NAME_A_ROOT}", *others)

    assert seen == f"nothing can be made below mine://{NAME_A_ROOT if asks else ''}"


def test_junit_has_what_the_plugin_said():
    blocked = outcome("FS-236", Verdict.BLOCKED, message="close failed", found=_LOCKED)
    (case,) = ET.fromstring(junit(report(blocked))).iter("skipped")

    assert case.get("message") == f"close failed ({_LOCKED})"
