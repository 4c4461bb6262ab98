"""Threads of the package's own: what hinders their start, and what only looks like it."""

from __future__ import annotations

import threading

import pytest

from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import ResourceExhaustedError


class Interrupt(BaseException):
    """What a signal handler raises."""


class InterruptedStart(threading.Thread):
    """Its `start` is interrupted while it waits for the first step, as Python's own may be."""

    def start(self) -> None:
        super().start()
        started = threading.Condition()
        with started:
            started.release()
            raise Interrupt


def test_an_interrupt_while_a_thread_starts_is_not_a_lack_of_threads():
    ran = threading.Event()

    with pytest.raises(Interrupt):
        start_thread(InterruptedStart(target=ran.set))

    assert ran.wait(60)


@pytest.mark.parametrize("failure", [RuntimeError("can't start new thread"), MemoryError()])
def test_a_lack_of_threads_is_told(monkeypatch, failure):
    def fail(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(threading, "_start_new_thread", fail, raising=False)  # until 3.13
    monkeypatch.setattr(threading, "_start_joinable_thread", fail, raising=False)

    with pytest.raises(ResourceExhaustedError, match="'worker' could not be started"):
        start_thread(threading.Thread(target=print, name="worker"))
