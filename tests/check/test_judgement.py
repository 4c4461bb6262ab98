"""What a check reports becomes a verdict, never worse than its rule."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from modular_tf.check.catalogue import all_rules
from modular_tf.check.check import BOTH, Check
from modular_tf.check.child import tried
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.rules import Severity

_BY_SEVERITY = {rule.severity: rule.id for rule in all_rules().values() if rule.id[:2] == "FS"}
_NOTHING = ((), "", False)
"""What is known of what blocked a check that was not blocked."""


class _Stage:
    """A stage that has the slot `stat` alone."""

    def __init__(self):
        self.calls = ["an earlier check's"]

    def lacks(self, needs):
        return next((slot for slot in needs if slot != "stat"), None)

    @contextmanager
    def workspace(self, check):
        yield self

    def close(self):
        pass


def _tried(run, severity=Severity.ERROR, needs=(), reached=Pass.RAW):
    check = Check(_BY_SEVERITY[severity], "filesystem", Level.WORKS, "names", BOTH, run, needs)
    return tried(check, _Stage(), subject="ram://", reached=reached)


def _raise(error):
    def run(_):
        raise error

    return run


def test_a_check_that_returns_has_passed():
    outcome = _tried(lambda ground: ground.calls.append("stat(F)"))

    assert (outcome.verdict, outcome.message) == (Verdict.PASSED, "")
    assert outcome.calls == ("stat(F)",)


@pytest.mark.parametrize(
    ("of_rule", "of_deviation", "verdict"),
    [
        (Severity.ERROR, None, Verdict.FAILED),
        (Severity.ERROR, Severity.WARNING, Verdict.WARNED),
        (Severity.WARNING, Severity.ERROR, Verdict.WARNED),
        (Severity.WARNING, Severity.NOTE, Verdict.NOTED),
        (Severity.NOTE, Severity.ERROR, Verdict.NOTED),
    ],
)
def test_the_milder_of_two_severities_counts(of_rule, of_deviation, verdict):
    deviation = Deviation("it is odd", expected="4", found="5", severity=of_deviation)
    outcome = _tried(_raise(deviation), of_rule)

    assert outcome.verdict is verdict
    assert (outcome.message, outcome.expected, outcome.found) == ("it is odd", "4", "5")


@pytest.mark.parametrize(
    ("error", "needs", "verdict", "message", "known"),
    [
        (Unsupported("stat is NULL"), (), Verdict.SKIPPED, "stat is NULL", _NOTHING),
        (
            Blocked("no file", "FS-170", found="locked", wants_root=True),
            (),
            Verdict.BLOCKED,
            "no file",
            (("FS-170",), "locked", True),
        ),
        (
            ZeroDivisionError(),
            ("stat", "rename_file"),
            Verdict.SKIPPED,
            "the plugin has no rename_file",
            _NOTHING,
        ),
    ],
)
def test_what_could_not_be_tried_is_no_failure(error, needs, verdict, message, known):
    outcome = _tried(_raise(error), needs=needs)

    assert (outcome.verdict, outcome.message) == (verdict, message)
    assert (outcome.see, outcome.found, outcome.wants_root) == known


def test_through_the_host_something_may_stand_in_for_a_slot():
    outcome = _tried(lambda _: None, needs=("rename_file",), reached=Pass.HOST)

    assert outcome.verdict is Verdict.PASSED
