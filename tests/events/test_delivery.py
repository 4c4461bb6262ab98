"""Users' code is called when a thread has let go of what it holds, in order."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress

import pytest

from modular_tf.concurrency.threads import uninterrupted
from modular_tf.events import EventLog
from modular_tf.events.event_log import deliver


def test_it_waits_for_the_outermost_function_and_keeps_the_order_also_where_functions_raise():
    told = []

    @uninterrupted
    def inner():
        deliver(lambda: told.append("inner"))
        raise LookupError

    @uninterrupted
    def outer():
        deliver(lambda: told.append("first"))
        with suppress(LookupError):
            inner()
        deliver(lambda: told.append("last"))
        assert told == []
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        outer()

    assert told == ["first", "inner", "last"]


def test_what_it_brings_about_itself_comes_after_it():
    told = []

    @uninterrupted
    def work():
        deliver(lambda: told.append("work"))

    def handle():
        work()
        told.append("handled")

    deliver(handle)

    assert told == ["handled", "work"]


def test_an_interrupt_leaves_the_rest_to_the_next():
    told = []

    def interrupt():
        raise KeyboardInterrupt

    @uninterrupted
    def work():
        deliver(interrupt)
        deliver(lambda: told.append("rest"))

    with pytest.raises(KeyboardInterrupt):
        work()
    assert told == []
    deliver(lambda: told.append("next"))

    assert told == ["rest", "next"]


def test_an_event_asks_for_no_lock_of_logging():
    """Who configures `logging` holds it while it makes handlers, which may be users' code."""
    with logging._lock:
        asking = threading.Thread(target=EventLog("test").is_enabled_for, args=(logging.DEBUG,))
        asking.start()
        asking.join(60)
        assert not asking.is_alive()
