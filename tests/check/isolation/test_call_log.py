"""The last calls outlive the process that made them, whatever it wrote besides."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import threading
import time

from modular_tf.check.call_log import CallLog
from modular_tf.native.crash_report import report_crashes
from modular_tf.processes.ending import ChildEnding


def _in_a_child(work) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def test_calls_of_a_child_are_read_after_its_end():
    log = CallLog()

    def call():
        log.add("read(F, 0, 4)")
        log.add("cleanup(F)")

    _in_a_child(call)

    assert log.calls() == ("read(F, 0, 4)", "cleanup(F)")
    log.close()


def test_the_last_calls_are_kept():
    log = CallLog()
    for number in range(1000):
        log.add(f"call {number}")

    assert log.calls() == tuple(f"call {number}" for number in range(968, 1000))


def test_a_long_call_is_cut_off_and_a_strange_one_shown():
    log = CallLog()
    log.add("x" * 10_000)
    log.add("stat(\udcff, é)")

    assert log.calls() == ("x" * 494, "stat(�, é)")


def _of_a_thread(work) -> int:
    """Do some work in a thread and return the thread's number."""
    numbers = []

    def run():
        numbers.append(threading.get_native_id())
        work()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return numbers[0]


def test_the_call_of_a_thread_that_was_overtaken_is_kept(monkeypatch):
    """One thread has its number, and writes when another has written already."""
    log = CallLog()
    number = next(log._numbers)
    _of_a_thread(lambda: log.add("the crash"))
    monkeypatch.setattr(log, "_numbers", iter([number]))
    log.add("another")

    assert log.calls() == ("another", "the crash")


def test_the_last_call_is_that_of_the_thread_that_was_lost():
    log = CallLog()
    log.add("before")
    lost = _of_a_thread(lambda: (log.add("open(F)"), log.add("the crash")))
    log.add("another")

    assert log.calls() == ("before", "open(F)", "the crash", "another")
    assert log.calls(lost) == ("before", "open(F)", "another", "the crash")
    assert log.calls(lost + 1)[-1] == "another"


def test_a_call_lasts_while_others_go_on_calling():
    log = CallLog()
    lost = _of_a_thread(lambda: log.add("the crash"))
    for number in range(100):
        log.add(f"call {number}")

    assert log.calls(lost)[-2:] == ("call 99", "the crash")


def test_a_crash_among_threads_names_its_own_call():
    log = CallLog()
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


def test_what_is_cleared_is_forgotten():
    log = CallLog()
    log.add("stat(F)")
    log.clear()

    assert log.calls() == ()

    log.add("stat(G)")
    assert log.calls() == ("stat(G)",)


def test_memory_that_a_plugin_has_overwritten_does_no_harm():
    log = CallLog()
    log.add("stat(F)")
    log._memory[:] = b"\xff" * len(log._memory)

    assert len(log.calls()) <= 32
