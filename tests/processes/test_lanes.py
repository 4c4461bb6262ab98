"""The way to a watcher: what it is given, and what it tells."""

import socket
import sys
import threading

import pytest

from modular_tf.processes.zygote_process import Lane

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
