"""What a watcher answers, and that none of its checks is forgotten."""

from __future__ import annotations

import json

import pytest

from modular_tf.check.isolation.job import Job
from modular_tf.check.isolation.running_job import RunningJob
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.target import Target

_TARGET = Target(
    "/plugins/lib\udcff.so", "filesystem", Pass.RAW, scheme="ram", companions=("/a.so",),
    absent=("TF_New",), options={"repeat": 5},
)  # fmt: skip
_JOB = Job(_TARGET, "ram://", ("FS-156", "FS-157"), {"HOME": "/x"})


@pytest.fixture
def told():
    return []


@pytest.fixture
def running(told):
    """A job that a watcher has."""
    return RunningJob(7, _JOB, told.append)


def _outcome(check_id):
    return Outcome(check_id, "ram://", Pass.RAW, Verdict.PASSED)


def test_a_job_comes_back_equal():
    assert Job.from_dict(json.loads(json.dumps(_JOB.as_dict()))) == _JOB


def test_outcomes_are_told_as_they_come(running, told):
    assert not running.take({"enters": "FS-156"})
    assert not running.take({"outcome": _outcome("FS-156").as_dict()})

    assert told == running.outcomes == [_outcome("FS-156")]
    assert running.left().checks == ("FS-157",)


def test_a_check_of_which_nothing_came_is_a_fault(running):
    running.take({"outcome": _outcome("FS-156").as_dict()})
    assert running.take({"finished": 1})
    running.finish()

    assert running.fault.check_id == "FS-157"


def test_the_loss_of_a_watcher_is_blamed_on_the_check_under_way(running, told):
    running.take({"outcome": _outcome("FS-156").as_dict()})
    running.blame()

    assert [(o.check_id, o.verdict) for o in told[1:]] == [("FS-157", Verdict.EXITED)]
    assert running.left() is None
