"""What a plugin whose callbacks do not work keeps from being tried, and what it does not."""

from __future__ import annotations

from collections import Counter

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.job import Job, Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from tests.check.building import DEFECT_VARIABLE, defective_plugin

_GROUPS = ("fills", "streams", "events", "timers", "callbacks", "errors")
_ORDER_OF_WORK = {"SE-234", "SE-241", "SE-242", "SE-255", "SE-256", "SE-275", "SE-276"}
"""Checks that want a stream to be busy, and have more to say."""


def _jobs(defect, reached):
    target = Target(str(defective_plugin("device")), "device", reached, ordinal=0)
    checks = [c for c in all_checks().values() if c.kind == "device" and c.level <= Level.ROBUST]
    for group in _GROUPS:
        ids = tuple(c.id for c in checks if c.group == group and reached in c.ways)
        yield Job(target, "DEFECT:0", ids, {DEFECT_VARIABLE: defect})


def _tried(defect, reached, *, one_by_one=False):
    """Return what became of the checks of callbacks and of what may hold streams by them.

    The groups are tried side by side: in each the kit may wait for a callback in vain.
    """
    jobs = 1 if one_by_one else len(_GROUPS)
    with CheckProcesses(Limits(jobs=jobs)) as processes:
        results = processes.run(list(_jobs(defect, reached)))
    return {outcome.check_id: outcome for result in results for outcome in result.outcomes}


def _expect_order_is_tried(outcomes):
    tried = {check_id: outcomes[check_id].verdict for check_id in _ORDER_OF_WORK & outcomes.keys()}
    assert set(tried.values()) == {Verdict.PASSED}, tried


@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
def test_callbacks_that_are_not_taken_block_only_what_holds_a_stream(reached):
    outcomes = _tried("callbacks-are-not-taken", reached)

    _expect_order_is_tried(outcomes)
    assert outcomes["SE-278"].verdict is Verdict.FAILED
    blocked = [one for one in outcomes.values() if one.verdict is Verdict.BLOCKED]
    assert {one.message.rpartition(": ")[2] for one in blocked} == {"see SE-278"}
    assert outcomes["SE-243"] in blocked


def test_callbacks_that_are_not_called_are_named_where_a_stream_cannot_be_held():
    outcomes = _tried("callbacks-are-not-called", Pass.RAW)

    _expect_order_is_tried(outcomes)
    assert outcomes["SE-279"].verdict is Verdict.FAILED
    assert outcomes["SE-243"].verdict is Verdict.BLOCKED
    assert outcomes["SE-243"].message.endswith("see SE-279")


@pytest.mark.parametrize("reached", [Pass.RAW, Pass.HOST])
def test_one_crash_in_host_callback_is_told_once(reached):
    outcomes = _tried("callbacks-crash", reached, one_by_one=True)

    verdicts = Counter(outcome.verdict for outcome in outcomes.values())
    assert verdicts[Verdict.CRASHED] == 2  # where it was first called, and of the check about it
    (first,) = (
        check_id
        for check_id, outcome in outcomes.items()
        if outcome.verdict is Verdict.CRASHED and check_id != "SE-278"
    )
    _expect_order_is_tried({key: outcomes[key] for key in outcomes if key != first})
    assert outcomes["SE-243"].message == f"host_callback ended a process: see {first}"
    assert outcomes["SE-279"].message == outcomes["SE-243"].message
