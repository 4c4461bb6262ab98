"""The turn: of several processes, services and threads, one finds something out."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from contextlib import contextmanager

import pytest

from modular_tf.service.storage.private_directory import PrivateDirectory, Turn


def fail_on_wait():
    raise AssertionError("waited")


@pytest.fixture
def turn(tmp_path):
    return Turn(PrivateDirectory(str(tmp_path / "own")))


def find_out(turn, work, *, timeout_s=0.0, check=fail_on_wait, known=()):
    """Find something out by `work`, which is called with what is unknown and a reporter."""
    turn.find_out(
        ["a"],
        unknown=lambda items: [item for item in items if item not in known],
        find_out=work,
        timeout_s=timeout_s,
        check=check,
    )


def found_out(turn, **settings):
    """Find something out; return what."""
    found = []
    find_out(turn, lambda items, _: found.extend(items), **settings)
    return found


@contextmanager
def taken(turn):
    """Let another thread have the turn for the time of a block; yields what reports progress."""
    begun, ends, reporters = threading.Event(), threading.Event(), []

    def work(_, report_progress):
        reporters.append(report_progress)
        begun.set()
        assert ends.wait(60)

    thread = threading.Thread(target=find_out, args=(turn, work))
    thread.start()
    assert begun.wait(60)
    try:
        yield reporters[0]
    finally:
        ends.set()
        thread.join()


def is_free(turn):
    """Return whether another thread need not wait."""
    found = []

    def try_it():
        try:
            found.append(bool(found_out(turn)))
        except AssertionError:
            found.append(False)

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("step", ["unknown", "find_out"])
def test_a_thread_never_waits_for_its_own_turn(turn, step):
    """As a signal handler that loads plugins in the middle of somebody's first start."""
    inner = []

    def load_in_the_middle(items, *_):
        inner.extend([found_out(turn), is_free(turn)])
        return items

    steps = {"unknown": list, "find_out": lambda *_: None, step: load_in_the_middle}
    turn.find_out(["a"], **steps, timeout_s=0.0, check=fail_on_wait)
    assert inner == [["a"], False]


def test_without_locks_nobody_waits(turn, monkeypatch):
    def flock(_fd, _operation):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with taken(turn):
        assert is_free(turn)


def test_a_forked_child_neither_ends_nor_keeps_the_turn_of_its_parent(turn):
    reads, writes = os.pipe()
    children = []

    def work(_, report_progress):
        if (child := os.fork()) == 0:
            os.close(writes)
            report_progress()
            try:
                os.read(reads, 1)  # lives longer than the turn
            finally:
                os._exit(0)
        children.append(child)
        assert not is_free(turn)

    find_out(turn, work)
    assert is_free(turn)
    os.close(writes)
    os.close(reads)
    os.waitpid(children[0], 0)


def test_a_forked_child_that_leaves_the_work_leaves_the_parent_its_turn(turn):
    parent = os.getpid()

    def work(*_):
        if child := os.fork():
            os.waitpid(child, 0)
            assert not is_free(turn)

    find_out(turn, work)
    if os.getpid() != parent:
        os._exit(0)


def test_the_turn_of_a_killed_process_is_free(turn):
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:

        def work(*_):
            os.write(writes, b"x")
            signal.pause()

        find_out(turn, work)
    os.read(reads, 1)
    assert not is_free(turn)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert is_free(turn)
    os.close(reads)
    os.close(writes)


def test_a_wait_goes_on_as_long_as_an_owner_makes_progress(turn):
    """The owner reports it whenever the timeout would be over."""
    checks = []
    with taken(turn) as report_progress:

        def check():
            checks.append(None)
            report_progress()

        settings = {"timeout_s": 0.5, "check": check}
        waits = threading.Thread(target=found_out, args=(turn,), kwargs=settings)
        waits.start()
        while len(checks) < 50:  # as many polls take longer than the timeout
            waits.join(0.01)
            assert waits.is_alive()
    waits.join()


def test_no_wait_is_longer_than_twenty_timeouts(turn):
    with taken(turn) as report_progress:
        assert found_out(turn, timeout_s=0.02, check=report_progress) == ["a"]


def test_a_new_owner_is_progress(turn, tmp_path):
    """Who waits counts the timeout from then on."""
    assert is_free(turn)
    os.utime(tmp_path / "own" / "turn", (1, 1))
    assert is_free(turn)
    assert (tmp_path / "own" / "turn").stat().st_mtime > 1


def test_who_waits_for_an_owner_without_progress_works_alone(turn):
    with taken(turn):
        assert found_out(turn, timeout_s=0.05, check=lambda: None) == ["a"]


def test_what_checks_the_wait_can_end_it(turn):
    with taken(turn), pytest.raises(AssertionError, match="waited"):
        found_out(turn, timeout_s=600)
