"""What plugins leave to the host: threads that Python does not know of, and open descriptors."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from _thread import allocate_lock, start_new_thread
from pathlib import Path

import pytest

from modular_tf.filesystem.workarounds.azure import close_leaked
from modular_tf.filesystem.workarounds.s3 import wait_until_idle
from tests.fixtures.forked_children import in_a_fork

PATIENCE_S = 30.0


@pytest.fixture
def foreign_thread():
    """Start threads that `threading` does not list, and wait for their end."""
    left = []

    def start(work):
        ended = allocate_lock()
        ended.acquire()
        left.append(ended)
        start_new_thread(lambda: (work(), ended.release()), ())

    yield start
    for ended in left:
        assert ended.acquire(timeout=PATIENCE_S)


def run_until(may_end):
    while not may_end.is_set():
        pass


def test_a_thread_that_works_is_waited_for_with_patience_and_one_that_waits_is_not(foreign_thread):
    may_end = threading.Event()
    foreign_thread(may_end.wait)
    assert wait_until_idle(PATIENCE_S)
    works, may_rest = threading.Event(), threading.Event()
    foreign_thread(lambda: (works.set(), run_until(may_rest), may_end.wait()))
    assert works.wait(PATIENCE_S)
    assert not wait_until_idle(0.05)
    threading.Timer(0.1, may_rest.set).start()
    assert wait_until_idle(PATIENCE_S)
    assert may_rest.is_set()
    may_end.set()


@in_a_fork
def test_threads_of_python_are_left_out_and_so_is_the_first_of_a_forked_child():
    """Python keeps the number that it had in the parent, as in a worker, which zygotes fork."""
    may_end = threading.Event()
    threading.Thread(target=run_until, args=(may_end,)).start()
    assert wait_until_idle(30)
    if not (child := os.fork()):
        os._exit(0 if wait_until_idle(30) else 1)
    may_end.set()
    assert os.waitpid(child, 0)[1] == 0


def test_where_the_system_does_not_tell_nobody_waits(monkeypatch):
    def fails(_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "listdir", fails)
    assert not wait_until_idle(PATIENCE_S)


# ---- Descriptors of a plugin's temporary files, which it deletes and leaves open ----


def temporary(folder, prefix="plugin_", *, deleted=True):
    descriptor, path = tempfile.mkstemp(prefix=prefix, dir=folder)
    if deleted:
        Path(path).unlink()
    return descriptor


def is_open(descriptor):
    return Path(f"/proc/self/fd/{descriptor}").is_symlink()


def test_what_is_forgotten_is_closed_and_all_else_stays_open(tmp_path):
    forgotten = [temporary(tmp_path) for _ in range(3)]
    written = tmp_path / "plugin_written"
    written.touch()
    others = [
        temporary(tmp_path, deleted=False),
        temporary(tmp_path, prefix="other_plugin_"),
        temporary(tmp_path, prefix="plugin_.extended_"),
        os.open(written, os.O_WRONLY),
        *os.pipe(),
    ]
    written.unlink()
    for _ in range(2):
        close_leaked(rf"{tmp_path}/plugin_\w+")

    assert not any(map(is_open, forgotten))
    assert all(map(is_open, others))
    for descriptor in others:
        os.close(descriptor)
