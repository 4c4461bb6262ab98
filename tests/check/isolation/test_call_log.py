"""The last calls outlive the process that made them, whatever it wrote besides."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import threading
import time

import pytest

from modular_tf.check.call_log import CallLog
from modular_tf.native.crash_report import report_crashes
from modular_tf.processes.ending import ChildEnding


@pytest.fixture
def log():
    made = CallLog()
    yield made
    made.close()


def _in_a_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


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


def test_calls_of_a_child_are_read_after_its_end(log):
    _in_a_child(lambda: [log.add("read(F, 0, 4)"), log.add("cleanup(F)")])

    assert log.calls() == ("read(F, 0, 4)", "cleanup(F)")
    log.clear()
    assert log.calls() == ()
    log.add("stat(G)")
    assert log.calls() == ("stat(G)",)


def test_the_last_calls_are_there_long_ones_cut_off_and_strange_ones_shown(log):
    for number in range(1000):
        log.add(f"call {number}")
    assert log.calls() == tuple(f"call {number}" for number in range(968, 1000))

    log.add("x" * 10_000)
    log.add("stat(\udcff, é)")
    assert log.calls()[-2:] == ("x" * 494, "stat(�, é)")


def test_the_call_of_a_thread_that_was_overtaken_is_there(log, monkeypatch):
    """One thread has its number, and writes when another has written already."""
    number = next(log._numbers)
    _add_in_a_thread(log, "the crash")
    monkeypatch.setattr(log, "_numbers", iter([number]))
    log.add("another")

    assert log.calls() == ("another", "the crash")


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


def test_a_crash_among_threads_names_its_own_call(log):
    reads, writes = os.pipe()

    def crash():
        report_crashes(writes)
        busy = threading.Barrier(5)

        def call_on():
            busy.wait()
            for number in range(100_000):
                log.add(f"another {number}")

        for _ in range(4):
            threading.Thread(target=call_on, daemon=True).start()
        busy.wait()
        log.add("the crash")
        time.sleep(0.05)  # the others go on
        ctypes.string_at(8)

    _in_a_child(crash)
    os.close(writes)
    with os.fdopen(reads) as lines:
        ending = ChildEnding()
        for line in lines:
            ending.take(json.loads(line))

    assert ending.fatal_signal == signal.SIGSEGV
    assert log.calls(ending.thread)[-1] == "the crash"
    assert log.calls()[-1] != "the crash"


def test_memory_that_a_plugin_has_overwritten_does_no_harm(log):
    log.add("stat(F)")
    log._memory[:] = b"\xff" * len(log._memory)

    assert len(log.calls()) <= 32
