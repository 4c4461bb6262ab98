"""Calls that are waited for only so long."""

from __future__ import annotations

import signal
import threading

import pytest

from modular_tf.errors import ResourceExhaustedError
from modular_tf.tensorflow import limited_calls
from modular_tf.tensorflow.limited_calls import LimitedCall


class Noted:
    """A call, and what it noted."""

    def __init__(self, work=lambda: None):
        self.notes = []
        self.late = threading.Event()
        self.call = LimitedCall(work, lambda: self.notes.append("left"), self._end)

    def _end(self):
        self.notes.append("late")
        self.late.set()


def test_what_ends_in_time_is_told_nothing():
    noted = Noted()

    assert noted.call.ends_within(60)
    assert noted.notes == []


def test_what_is_raised_in_time_is_raised_again():
    def fail():
        raise LookupError("broken")

    with pytest.raises(LookupError, match="broken"):
        Noted(fail).call.ends_within(60)


def test_what_takes_longer_is_left_behind_and_tells_its_end():
    go_on = threading.Event()
    noted = Noted(go_on.wait)

    assert not noted.call.ends_within(0.01)
    assert noted.notes == ["left"]
    go_on.set()
    assert noted.late.wait(60)
    assert noted.notes == ["left", "late"]


def test_an_interrupt_leaves_the_call_behind():
    go_on = threading.Event()
    noted = Noted(go_on.wait)
    waiting = threading.get_ident()
    threading.Timer(0.2, signal.pthread_kill, (waiting, signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        noted.call.ends_within(60)
    go_on.set()
    assert noted.late.wait(60)
    assert noted.notes == ["left", "late"]


def test_an_interrupt_when_it_has_ended_gives_its_result_up(monkeypatch):
    noted = Noted()

    def interrupted(_limit_s):
        noted.call._thread.join()
        raise KeyboardInterrupt

    monkeypatch.setattr(noted.call._ended, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        noted.call.ends_within(60)
    assert noted.notes == ["left", "late"]


def test_where_no_thread_can_be_had_the_caller_makes_the_call(monkeypatch):
    def no_thread(_thread):
        raise ResourceExhaustedError("no more threads")

    monkeypatch.setattr(limited_calls, "start_thread", no_thread)
    threads = []

    assert Noted(lambda: threads.append(threading.current_thread())).call.ends_within(0.01)
    assert threads == [threading.current_thread()]


def test_so_many_may_be_left_behind_and_no_more(monkeypatch):
    monkeypatch.setattr(limited_calls, "_MOST_LEFT", 2)
    go_on = threading.Event()
    left = [Noted(go_on.wait) for _ in range(2)]
    assert [noted.call.ends_within(0.01) for noted in left] == [False, False]

    with pytest.raises(ResourceExhaustedError, match="2 calls that took too long"):
        Noted().call.ends_within(60)
    go_on.set()
    for noted in left:
        noted.call._thread.join()
    assert Noted().call.ends_within(60)
