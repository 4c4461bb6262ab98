"""The listener by itself: what interrupts and missing threads leave of it."""

import importlib
import logging
import threading
from contextlib import suppress

import pytest

from modular_tf.service.log_output import Listener
from tests.fixtures.interrupts import Interrupt, interrupt, points

THREAD = "modular_tf plugin messages"
module = importlib.import_module(Listener.__module__)  # the package has an object of its name


class FakeMessages:
    """The native half, with no messages."""

    MOST_WAITING = 10
    ALL = 0

    def __init__(self):
        self.is_open = False
        self._closed = threading.Event()

    def open_messages(self, _):
        self._closed.clear()
        self.is_open = True

    def close_messages(self):
        self.is_open = False
        self._closed.set()

    interrupt_messages = close_messages

    def next_message(self):
        self._closed.wait()

    def dropped_messages(self):
        return 0


@pytest.fixture
def messages(monkeypatch):
    made = FakeMessages()
    monkeypatch.setattr(module, "_native", lambda: made)
    return made


def hearing():
    return [thread for thread in threading.enumerate() if thread.name == THREAD]


def test_an_interrupted_stop_is_finished_by_the_next(messages):
    for point in points():
        listener = Listener()
        listener.listen(logging.INFO)
        more = interrupt(listener.stop, point=point)
        listener.stop()
        assert not messages.is_open
        assert hearing() == []
        if not more:
            assert point
            break


@pytest.mark.parametrize("how", ["no thread left", "interrupted after"])
def test_where_no_thread_could_be_started_the_next_call_or_fork_tries_again(
    how, thread_starts, messages
):
    def listen_in_vain():
        listener = Listener()
        thread_starts.fail(how, THREAD)
        with suppress(Interrupt):
            listener.listen(logging.INFO)
            assert not messages.is_open  # plugins write to standard error
        return listener

    again = listen_in_vain()
    again.listen(logging.INFO)
    assert messages.is_open
    assert hearing() != []
    again.stop()
    for thread in hearing():
        thread.join()

    forked = listen_in_vain()
    forked.before_fork()
    assert hearing() == []
    forked.after_fork_in_parent()
    assert messages.is_open  # else the thread would ask for messages without a pause
    assert len(hearing()) == 1
    forked.stop()
    assert hearing() == []
    assert not messages.is_open
