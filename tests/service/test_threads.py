"""Threads of the package's own: what hinders their start, and what only looks like it."""

from __future__ import annotations

import threading

import pytest

from modular_tf.concurrency import threads
from modular_tf.errors import ResourceExhaustedError


class Interrupt(BaseException):
    """What a signal handler raises."""


def test_an_interrupt_while_a_thread_starts_is_not_a_lack_of_threads(monkeypatch):
    ran = threading.Event()
    wait = threads._Started.wait

    def interrupted(started):
        wait(started)
        raise Interrupt

    monkeypatch.setattr(threads._Started, "wait", interrupted)
    with pytest.raises(Interrupt):
        threads.start_thread(threading.Thread(target=ran.set))

    assert ran.wait(60)


@pytest.mark.parametrize("failure", [RuntimeError("can't start new thread"), MemoryError()])
def test_a_lack_of_threads_is_told(monkeypatch, failure):
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(threading, "_start_new_thread", fail, raising=False)  # until 3.13
    monkeypatch.setattr(threading, "_start_joinable_thread", fail, raising=False)

    with pytest.raises(ResourceExhaustedError, match="'worker' could not be started"):
        threads.start_thread(threading.Thread(target=print, name="worker"))
