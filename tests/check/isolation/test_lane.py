"""What a watcher answers, and that none of its checks is forgotten."""

from __future__ import annotations

import json
import socket

import pytest

from modular_tf.check.isolation.job import Job
from modular_tf.check.isolation.lane import Lane
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
def watched(told):
    """A lane with a job, and the end of its socket that a watcher has."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lane = Lane(ours, told.append)
        lane.give(7, _JOB)
        yield lane, theirs


def _outcome(check_id):
    return Outcome(check_id, "ram://", Pass.RAW, Verdict.PASSED)


def _say(connection, *entries):
    connection.sendall(b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))


def test_a_job_arrives_as_it_was_given(watched):
    _, theirs = watched

    assert Job.from_dict(json.loads(theirs.recv(1 << 16))) == _JOB


def test_outcomes_are_told_as_they_come(watched, told):
    lane, theirs = watched
    _say(theirs, {"enters": "FS-156"}, {"outcome": _outcome("FS-156").as_dict()})

    assert not lane.receive()
    assert told == lane.outcomes == [_outcome("FS-156")]
    assert lane.left().checks == ("FS-157",)


def test_an_answer_may_come_in_pieces(watched):
    lane, theirs = watched
    line = json.dumps({"outcome": _outcome("FS-156").as_dict()}).encode() + b"\n"
    theirs.sendall(line[:10])
    assert not lane.receive()
    theirs.sendall(line[10:])
    lane.receive()

    assert lane.outcomes == [_outcome("FS-156")]


def test_a_check_of_which_nothing_came_is_a_fault(watched):
    lane, theirs = watched
    _say(theirs, {"outcome": _outcome("FS-156").as_dict()}, {"finished": 1})
    assert lane.receive()
    lane.finish()

    assert lane.fault.check_id == "FS-157"


def test_the_loss_of_a_watcher_is_blamed_on_the_check_under_way(watched, told):
    lane, theirs = watched
    _say(theirs, {"outcome": _outcome("FS-156").as_dict()})
    lane.receive()
    theirs.close()

    with pytest.raises(EOFError):
        lane.receive()

    lane.blame()
    assert [(o.check_id, o.verdict) for o in told[1:]] == [("FS-157", Verdict.EXITED)]
    assert lane.left() is None
