"""Checks of a store that nobody has named, and that is not there, are stopped after two hangs."""

from __future__ import annotations

from dataclasses import replace

from modular_tf.check.job import Job, Limits
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.run import AssumedStores, CheckProcesses
from modular_tf.check.target import Target
from tests.check.isolation.conftest import GROUP, READS, READS_AGAIN, job_of, without_server

_PATIENCE = 0.05
_OTHER = replace(job_of("NOTHING"), subject="other://")


def _job(**options):
    target = Target(without_server(), "filesystem", Pass.RAW, scheme="misdeed", **options)
    return Job(target, "misdeed://", GROUP)


def _verdicts(result):
    return [outcome.verdict for outcome in result.outcomes]


def test_two_hangs_stop_all_checks_of_the_store():
    job, told = _job(), []
    with CheckProcesses(Limits(jobs=1, patience=_PATIENCE)) as processes:
        first, second = processes.run([job, job], told.append)
        (said,) = processes.absent_stores

    assert _verdicts(first) == [Verdict.HUNG, Verdict.HUNG, Verdict.BLOCKED]
    assert _verdicts(second) == [Verdict.BLOCKED] * 3
    assert said.startswith("4 checks of misdeed:// were not tried: FS-156 and FS-235 hung")
    assert "--root" in said
    assert "--profile" in said
    assert "FS-156 and FS-235 hung on misdeed://" in second.outcomes[0].message
    assert sorted(told, key=str) == sorted([*first.outcomes, *second.outcomes], key=str)


def test_a_job_of_the_store_that_is_under_way_is_stopped_too():
    short = replace(_job(), checks=(READS,))
    with CheckProcesses(Limits(jobs=3, patience=_PATIENCE)) as processes:
        results = processes.run([short, short, _job()])
        again = processes.run([job_of("NOTHING")])

    verdicts = [verdict for result in results for verdict in _verdicts(result)]
    assert {Verdict.HUNG, Verdict.BLOCKED} == set(verdicts)
    assert 2 <= verdicts.count(Verdict.HUNG) <= 3
    assert _verdicts(again[0]) == [Verdict.PASSED] * 3


def test_other_stores_are_checked_all_the_same():
    other = replace(_OTHER, target=replace(_OTHER.target, scheme="misdeed", root="misdeed://there"))
    with CheckProcesses(Limits(jobs=1, patience=_PATIENCE)) as processes:
        stopped, checked = processes.run([_job(), other])

    assert _verdicts(stopped)[-1] is Verdict.BLOCKED
    assert _verdicts(checked) == [Verdict.PASSED] * 3


def test_a_store_that_the_user_names_is_checked_to_the_end():
    with CheckProcesses(Limits(jobs=1, patience=_PATIENCE)) as processes:
        (result,) = processes.run([_job(root="misdeed://named")])
        assert processes.absent_stores == []

    assert _verdicts(result) == [Verdict.HUNG] * 3


def _counted(*verdicts):
    stores = AssumedStores()
    for check_id, verdict in zip((READS, READS_AGAIN, "FS-235"), verdicts, strict=False):
        stores.count("s", Outcome(check_id, "s://", Pass.RAW, verdict))
    return stores.to_stop()


def test_what_hangs_on_a_store_that_can_be_written_to_is_the_plugins():
    assert _counted(Verdict.HUNG, Verdict.HUNG) == ["s"]
    assert _counted(Verdict.HUNG, Verdict.FAILED) == []
    assert _counted(Verdict.HUNG, Verdict.HUNG, Verdict.PASSED) == []
    assert _counted(Verdict.PASSED, Verdict.HUNG, Verdict.HUNG) == []
