"""What a plugin whose callbacks do not work keeps from being tried, and what it does not."""

from __future__ import annotations

from collections import Counter

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from tests.check.trying import defect_job, ids_by_group, outcomes_of

_GROUPS = ("fills", "streams", "events", "timers", "callbacks", "errors")
_ORDER_OF_WORK = {"SE-234", "SE-241", "SE-242", "SE-255", "SE-256", "SE-275", "SE-276"}
"""Checks that want a stream to be busy, and have more to say."""


def _tried(defect, reached, jobs=6):
    """Return what became of the checks of callbacks and of what may hold streams by them.

    By default the groups are tried side by side: in each the kit may wait for a callback in vain.
    """
    checks = [
        check
        for check in all_checks().values()
        if check.kind == "device" and check.level <= Level.ROBUST and check.group in _GROUPS
    ]
    groups = ids_by_group(sorted(checks, key=lambda it: _GROUPS.index(it.group)), reached)
    tried = (defect_job("device", defect, ids, reached, kind="device") for ids in groups)
    return outcomes_of(*tried, jobs=jobs)


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
def test_one_crash_in_host_callback_is_reported_once(reached):
    outcomes = _tried("callbacks-crash", reached, jobs=1)

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
