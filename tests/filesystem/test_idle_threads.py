"""Waiting for threads that Python does not know of."""

from __future__ import annotations

import errno
import os
import threading
import time
from _thread import allocate_lock, start_new_thread

import pytest

from modular_tf.filesystem.workarounds.s3 import wait_until_idle

PATIENCE_S = 30.0


@pytest.fixture
def foreign_thread():
    """Start threads that `threading` does not list, and wait for their end."""
    left = []

    def start(work):
        ended = allocate_lock()
        ended.acquire()
        left.append(ended)

        def run():
            work()
            ended.release()

        start_new_thread(run, ())

    yield start
    for ended in left:
        assert ended.acquire(timeout=PATIENCE_S)


def test_a_thread_that_works_is_waited_for(foreign_thread):
    done = []

    def work():
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass
        done.append(True)

    foreign_thread(work)
    assert wait_until_idle(PATIENCE_S)
    assert done


def test_a_thread_that_waits_is_not(foreign_thread):
    may_end = threading.Event()
    foreign_thread(may_end.wait)
    assert wait_until_idle(PATIENCE_S)
    may_end.set()


def test_patience_ends(foreign_thread):
    may_end = threading.Event()

    def work():
        while not may_end.is_set():
            pass

    foreign_thread(work)
    assert not wait_until_idle(0.05)
    may_end.set()


def test_threads_of_python_are_left_out(run_python):
    run_python(
        """
        import threading
        from modular_tf.filesystem.workarounds.s3 import wait_until_idle

        may_end = threading.Event()

        def work():
            while not may_end.is_set():
                pass

        thread = threading.Thread(target=work)
        thread.start()
        assert wait_until_idle(30)
        may_end.set()
        """
    )


def test_where_the_system_does_not_tell_nobody_waits(monkeypatch):
    def fails(_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "listdir", fails)
    assert not wait_until_idle(PATIENCE_S)


def test_the_first_thread_of_a_forked_child_is_no_plugins(run_python):
    """Python keeps the number that it had in the parent, as in a worker, which zygotes fork."""
    run_python(
        """
        import os
        from modular_tf.filesystem.workarounds.s3 import wait_until_idle

        pid = os.fork()
        if pid == 0:
            os._exit(0 if wait_until_idle(30) else 1)
        assert os.waitpid(pid, 0)[1] == 0
        """
    )
