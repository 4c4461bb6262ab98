"""The way to a watcher: what it is given, and what it tells."""

import socket
import sys
import threading

import pytest

from modular_tf.processes.zygote_process import Lane, Lanes

JOB = {"file": "/plugins/lib\udcff.so"}


@pytest.fixture
def watched():
    """A lane with a job, and the end of its socket that a watcher has."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lane = Lane(ours)
        lane.give(7, JOB)
        yield lane, theirs


def test_a_job_arrives_as_one_line_and_entries_may_come_in_pieces(watched):
    lane, theirs = watched
    assert theirs.recv(1 << 16) == b'{"file": "/plugins/lib\\udcff.so"}\n'
    theirs.sendall(b'{"finis')
    assert lane.receive() == []
    theirs.sendall(b'hed": 1}\n{"more": 2}\n')

    assert lane.receive() == [{"finished": 1}, {"more": 2}]


def test_an_entry_without_a_job_or_without_end_is_refused(watched, monkeypatch):
    monkeypatch.setattr("modular_tf.processes.zygote_process._LONGEST_ENTRY", 20)
    lane, theirs = watched
    lane.work = None
    theirs.sendall(b'{"finished": 1}\n')
    with pytest.raises(ValueError, match="no job"):
        lane.receive()
    lane.give(8, JOB)
    theirs.sendall(b'{"finished"' + b" " * 20)
    with pytest.raises(ValueError, match="without end"):
        lane.receive()


def test_a_watcher_that_is_gone_is_noticed(watched):
    lane, theirs = watched
    theirs.close()

    with pytest.raises(EOFError):
        lane.receive()


@pytest.fixture
def new_watcher():
    """Make watchers that answer nothing; each is appended to `new_watcher.ends`."""
    ends = []

    def make():
        ours, theirs = socket.socketpair()
        ends.append(theirs)
        return ours

    make.ends = ends
    yield make
    for end in ends:
        end.close()


def test_a_busy_lane_is_given_no_second_job(new_watcher):
    lanes = Lanes()
    first = lanes.free(2, new_watcher)
    assert lanes.free(2, new_watcher) is first
    first.give(1, {})
    second = lanes.free(2, new_watcher)
    second.give(2, {})

    assert lanes.free(2, new_watcher) is None
    assert lanes.under_way() == [1, 2]
    new_watcher.ends[1].sendall(b"{}\n")
    assert list(lanes.ready()) == [second]
    lanes.close()


def test_a_lane_that_a_fork_has_closed_is_that_of_a_watcher_that_is_gone(new_watcher):
    lanes = Lanes()
    lane = lanes.free(1, new_watcher)
    lane.give(1, {})
    lane.connection.close()

    assert list(lanes.ready()) == [lane]
    with pytest.raises(EOFError):
        lane.receive()
    lanes.remove(lane)
    assert lanes.free(1, new_watcher) is not lane
    lanes.close()


# From Python 3.12 on the stack of C bounds reading JSON, whatever frames of Python there are.
@pytest.mark.parametrize("depth", [*([900] if sys.version_info < (3, 12) else []), 100_000])
def test_an_entry_of_lists_in_lists_is_refused(watched, depth):
    lane, theirs = watched
    sender = threading.Thread(target=theirs.sendall, args=(b"[" * depth + b"]" * depth + b"\n",))
    sender.start()

    def receive(frames):
        if frames:
            return receive(frames - 1)
        while not (entries := lane.receive()):
            pass
        return entries

    try:
        with pytest.raises(ValueError, match="too deeply"):
            receive(150)
    finally:
        sender.join()
