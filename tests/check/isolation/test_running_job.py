"""What a watcher answers, and that none of its checks is forgotten."""

from __future__ import annotations

import json
import socket

import pytest

from modular_tf.check.isolation.job import Job
from modular_tf.check.isolation.running_job import RunningJob
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.target import Target
from modular_tf.processes.lanes import Lane

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


@pytest.fixture
def watched(running):
    """A lane with a job, and the end of its socket that a watcher has."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lane = Lane(ours)
        lane.give(running, _JOB.as_dict())
        yield lane, theirs


def _outcome(check_id):
    return Outcome(check_id, "ram://", Pass.RAW, Verdict.PASSED)


def _say(connection, *entries):
    connection.sendall(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))


def test_a_job_arrives_as_it_was_given(watched):
    _, theirs = watched

    assert Job.from_dict(json.loads(theirs.recv(1 << 16))) == _JOB


def test_an_answer_may_come_in_pieces(watched):
    lane, theirs = watched
    theirs.sendall(b'{"finis')
    assert lane.receive() == []
    theirs.sendall(b'hed": 1}\n')

    assert lane.receive() == [{"finished": 1}]


def test_what_comes_when_there_is_no_job_is_refused(watched):
    lane, theirs = watched
    lane.work = None
    _say(theirs, {"finished": 1})

    with pytest.raises(ValueError, match="no job"):
        lane.receive()


def test_a_watcher_that_is_gone_is_noticed(watched):
    lane, theirs = watched
    theirs.close()

    with pytest.raises(EOFError):
        lane.receive()


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
