"""Services whose plugins run in workers, and what tests do to them."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService

_LIMIT_S = 30.0


@contextmanager
def isolated(*libraries, bundled=True, **settings):
    """Run a service with its plugins in workers, which may end as often as they like."""
    config = Config(**{"isolation": "process", "most_worker_faults": 0, **settings})
    with PluginService(plugin_paths=libraries, bundled=bundled, config=config) as service:
        service.load()
        yield service


def wait_until(condition):
    deadline = time.monotonic() + _LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def record_of(service, plugin):
    (record,) = (found for found in service.workers() if found.plugin == plugin)
    return record


def pid_of(service, plugin):
    pid = record_of(service, plugin).pid
    assert pid  # 0, which is none, would name all processes of this group
    return pid


def end_worker(service, plugin):
    """Kill the process of a plugin, and wait for its end."""
    pid = pid_of(service, plugin)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


def when_the_next_process_waits(held, act):
    """Have a signal handler act once the hostile plugin waits until the file `held` is gone."""
    Path(held).touch()

    def handle(*_):
        if os.stat(held).st_size:
            signal.setitimer(signal.ITIMER_REAL, 0)
            act()

    signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)


def stop_worker(service, plugin):
    """Stop the process of a plugin, which its watcher ends then, and return its number."""
    pid = pid_of(service, plugin)
    os.kill(pid, signal.SIGSTOP)  # until it takes effect, threads of the process go on
    wait_until(lambda: not _runs(pid))
    return pid


def _runs(pid):
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "TZX"


@contextmanager
def during_a_call(service, act):
    """Act in another thread as soon as a worker has a call to answer, unless it has answered."""
    is_over = threading.Event()

    def wait_and_act():
        wait_until(lambda: is_over.is_set() or any(found.in_flight for found in service.workers()))
        if not is_over.is_set():
            act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def interrupted(service):
    return during_a_call(service, lambda: os.kill(os.getpid(), signal.SIGINT))
