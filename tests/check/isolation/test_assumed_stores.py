"""Checks of a store that nobody has named, and that is not there, are stopped after two hangs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from modular_tf.check.job import Job, Limits
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.run import AssumedStores, CheckProcesses
from modular_tf.check.target import Target
from tests.check.isolation.conftest import GROUP, READS, job_of, without_server

_PATIENCE = 0.05


def _job(**options):
    target = Target(without_server(), "filesystem", Pass.RAW, scheme="misdeed", **options)
    return Job(target, "misdeed://", GROUP)


def _verdicts(result):
    return [outcome.verdict for outcome in result.outcomes]


def test_two_hangs_stop_all_checks_of_the_store_and_of_none_that_is_named():
    other = replace(job_of("NOTHING"), subject="other://")
    other = replace(other, target=replace(other.target, root="misdeed://there"))
    job, named, reported = _job(), _job(root="misdeed://named"), []
    with CheckProcesses(Limits(jobs=1, patience=_PATIENCE)) as processes:
        results = processes.run([job, job, other, named], reported.append)
        (line,) = processes.absent_stores
    first, second, checked, absent = results

    assert _verdicts(first) == [Verdict.HUNG, Verdict.HUNG, Verdict.BLOCKED]
    assert _verdicts(second) == [Verdict.BLOCKED] * 3
    assert _verdicts(checked) == [Verdict.PASSED] * 3
    assert _verdicts(absent) == [Verdict.HUNG] * 3  # the user has named it
    assert line.startswith("4 checks of misdeed:// were not tried: FS-156 and FS-235 hung")
    assert "--root" in line
    assert "--profile" in line
    assert "FS-156 and FS-235 hung on misdeed://" in second.outcomes[0].message
    outcomes = [outcome for result in results for outcome in result.outcomes]
    assert sorted(reported, key=str) == sorted(outcomes, key=str)


def test_a_job_of_the_store_that_is_under_way_is_stopped_too():
    short = replace(_job(), checks=(READS,))
    with CheckProcesses(Limits(jobs=3, patience=_PATIENCE)) as processes:
        results = processes.run([short, short, _job()])
        again = processes.run([job_of("NOTHING")])

    verdicts = [verdict for result in results for verdict in _verdicts(result)]
    assert {Verdict.HUNG, Verdict.BLOCKED} == set(verdicts)
    assert 2 <= verdicts.count(Verdict.HUNG) <= 3
    assert _verdicts(again[0]) == [Verdict.PASSED] * 3


@pytest.mark.parametrize(
    ("verdicts", "stopped"),
    [
        ((Verdict.HUNG, Verdict.HUNG), ["s"]),
        ((Verdict.HUNG, Verdict.FAILED), []),
        ((Verdict.HUNG, Verdict.HUNG, Verdict.PASSED), []),
        ((Verdict.PASSED, Verdict.HUNG, Verdict.HUNG), []),
    ],
)
def test_what_hangs_on_a_store_that_can_be_written_to_is_the_plugins(verdicts, stopped):
    stores = AssumedStores()
    for number, verdict in enumerate(verdicts):
        stores.count("s", Outcome(GROUP[number], "s://", Pass.RAW, verdict))
    assert stores.to_stop() == stopped
