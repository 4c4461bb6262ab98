"""What a report comes to: conformance, and the level that a plugin reaches."""

from __future__ import annotations

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report.report import Report
from tests.check.report.outcomes import ALL_KINDS, outcome, plugin, report


def _of_level(level: Level) -> str:
    return next(check.id for check in all_checks().values() if check.level is level)


@pytest.mark.parametrize("verdict", BAD)
def test_one_bad_outcome_is_enough(verdict):
    found = plugin(outcome("FS-150", Verdict.PASSED), outcome("FS-156", verdict))

    assert found.has_checked
    assert not found.conforms


@pytest.mark.parametrize("verdict", [Verdict.WARNED, Verdict.NOTED, Verdict.KNOWN])
def test_warnings_notes_and_known_deviations_conform(verdict):
    assert plugin(outcome("FS-150", Verdict.PASSED), outcome("FS-156", verdict)).conforms


def test_what_was_blocked_is_not_known_to_conform():
    assert not plugin(outcome("FS-150", Verdict.PASSED), outcome("FS-1", Verdict.BLOCKED)).conforms


@pytest.mark.parametrize("verdicts", [[], [Verdict.SKIPPED], [Verdict.SKIPPED, Verdict.BLOCKED]])
def test_nothing_checked_is_no_success(verdicts):
    found = plugin(*(outcome("FS-150", verdict) for verdict in verdicts))

    assert not found.has_checked
    assert not found.conforms
    assert not Report((found,)).conforms
    assert not Report(()).conforms


@pytest.mark.parametrize("cut", [{"unanswered": 3}, {"faults": ("a check failed",)}])
def test_what_came_to_no_outcome_is_not_known_to_conform(cut):
    assert not plugin(outcome("FS-150", Verdict.PASSED), **cut).conforms


def test_an_interrupted_run_is_not_known_to_conform():
    good = plugin(outcome("FS-150", Verdict.PASSED))

    assert not Report((good,), interrupted=True).conforms


def test_one_plugin_of_two_that_does_not_conform_is_enough():
    good, bad = plugin(outcome("FS-150", Verdict.PASSED)), plugin(*ALL_KINDS)

    assert Report((good, good)).conforms
    assert not Report((good, bad)).conforms


def test_a_level_is_reached_with_all_below():
    ids = {level: _of_level(level) for level in (Level.LOADS, Level.REGISTERS, Level.WORKS)}
    good = [outcome(check_id, Verdict.PASSED) for check_id in ids.values()]

    assert plugin(*good).level_reached is Level.WORKS
    assert plugin(*good, level=Level.REGISTERS).level_reached is Level.REGISTERS
    for level, check_id in ids.items():
        failed = plugin(*good, outcome(check_id, Verdict.FAILED))
        assert failed.level_reached == (None if level is Level.LOADS else level - 1)


def test_a_level_of_which_nothing_was_checked_is_not_reached():
    lowest, next_one = _of_level(Level.LOADS), _of_level(Level.REGISTERS)
    found = plugin(outcome(lowest, Verdict.PASSED), outcome(next_one, Verdict.SKIPPED))

    assert found.level_reached is Level.LOADS
    assert plugin(outcome(next_one, Verdict.SKIPPED)).level_reached is None


def test_every_verdict_is_counted():
    assert report(*ALL_KINDS).counts == dict.fromkeys(Verdict, 1)
