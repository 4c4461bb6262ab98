"""What a plugin whose callbacks do not work keeps from being tried, and what it does not."""

from __future__ import annotations

from collections import Counter

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from tests.check.trying import defect_job, ids_by_group

_GROUPS = ("fills", "streams", "events", "timers", "callbacks", "errors")
_ORDER_OF_WORK = ("SE-234", "SE-241", "SE-242", "SE-255", "SE-256", "SE-275", "SE-276")
"""Checks that want a stream to be busy, and have more to say."""
_HOLDS, _TAKEN, _CALLED = "SE-243", "SE-278", "SE-279"
"""A check that holds a stream by a callback, and the two of callbacks themselves."""


def _expect_order_is_tried(outcomes, but=""):
    tried = {name: outcomes[name].verdict for name in _ORDER_OF_WORK if name != but}
    assert set(tried.values()) == {Verdict.PASSED}, tried


@pytest.mark.parametrize(
    ("defect", "reached", "wrong"),
    [
        ("callbacks-are-not-taken", Pass.HOST, _TAKEN),
        ("callbacks-are-not-called", Pass.RAW, _CALLED),
    ],
)
def test_callbacks_that_do_not_come_block_only_what_holds_a_stream(
    defect, reached, wrong, outcomes_of
):
    """Each check is tried in a process of its own: in each the kit may wait in vain."""
    ids = {*_ORDER_OF_WORK, _HOLDS, _TAKEN, _CALLED}
    jobs = (defect_job("device", defect, [one], reached, kind="device") for one in ids)
    outcomes = outcomes_of(*jobs)

    _expect_order_is_tried(outcomes)
    assert outcomes[wrong].verdict is Verdict.FAILED
    assert outcomes[_HOLDS].verdict is Verdict.BLOCKED
    assert outcomes[_HOLDS].see == (wrong,)


def test_one_crash_in_host_callback_is_reported_once(outcomes_of):
    checks = [
        check
        for check in all_checks().values()
        if check.kind == "device" and check.level <= Level.ROBUST and check.group in _GROUPS
    ]
    groups = ids_by_group(sorted(checks, key=lambda it: _GROUPS.index(it.group)), Pass.RAW)
    ids = [check_id for group in groups for check_id in group]
    outcomes = outcomes_of(defect_job("device", "callbacks-crash", ids, kind="device"))

    verdicts = Counter(outcome.verdict for outcome in outcomes.values())
    assert verdicts[Verdict.CRASHED] == 2  # where it was first called, and of the check about it
    (first,) = (
        check_id
        for check_id, outcome in outcomes.items()
        if outcome.verdict is Verdict.CRASHED and check_id != _TAKEN
    )
    _expect_order_is_tried(outcomes, but=first)
    for blocked in (_HOLDS, _CALLED):
        assert outcomes[blocked].message == "host_callback ended a process"
        assert outcomes[blocked].see == (first,)
