"""The last calls outlive the process that made them, whatever it wrote besides."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import threading

import pytest

from modular_tf.check.call_log import CallLog
from modular_tf.native.crash_report import report_crashes
from modular_tf.processes.ending import ChildEnding


@pytest.fixture
def log():
    made = CallLog()
    yield made
    made.close()


def _add_in_a_thread(log, *calls):
    """Add calls in a thread and return the thread's number."""
    numbers = []

    def run():
        numbers.append(threading.get_native_id())
        for call in calls:
            log.add(call)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return numbers[0]


def test_the_last_calls_are_there_long_ones_cut_off_and_strange_ones_shown(log):
    for number in range(1000):
        log.add(f"call {number}")
    assert log.calls() == tuple(f"call {number}" for number in range(968, 1000))

    log.add("x" * 10_000)
    log.add("stat(\udcff, é)")
    assert log.calls()[-2:] == ("x" * 494, "stat(�, é)")
    log.clear()
    assert log.calls() == ()


def test_the_last_call_is_that_of_the_thread_that_was_lost(log):
    log.add("before")
    lost = _add_in_a_thread(log, "open(F)", "the crash")
    log.add("another")

    assert log.calls() == ("before", "open(F)", "the crash", "another")
    assert log.calls(lost) == ("before", "open(F)", "another", "the crash")
    assert log.calls(lost + 1)[-1] == "another"
    for number in range(100):  # while others go on calling
        log.add(f"call {number}")
    assert log.calls(lost)[-2:] == ("call 99", "the crash")


def test_a_crash_names_the_call_of_its_own_thread(log):
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        try:
            report_crashes(writes)
            log.add("the crash")
            _add_in_a_thread(log, "another")
            ctypes.string_at(8)
        finally:
            os._exit(1)
    os.waitpid(child, 0)
    os.close(writes)
    ending = ChildEnding()
    with os.fdopen(reads) as lines:
        for line in lines:
            ending.take(json.loads(line))

    assert ending.fatal_signal == signal.SIGSEGV
    assert log.calls(ending.thread)[-1] == "the crash"
    assert log.calls()[-1] == "another"


def test_memory_that_a_plugin_has_overwritten_does_no_harm(log):
    log.add("stat(F)")
    log._memory[:] = b"\xff" * len(log._memory)

    assert len(log.calls()) <= 32
