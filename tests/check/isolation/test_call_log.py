"""The last calls outlive the process that made them, whatever it wrote besides."""

from __future__ import annotations

import os

from modular_tf.check.isolation.call_log import CallLog


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

    assert log.calls() == ("x" * 510, "stat(�, é)")


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
