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


def end_worker(service, plugin):
    """Kill the process of a plugin, and wait for its end."""
    pid = record_of(service, plugin).pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists())


@contextmanager
def during_a_call(service, act):
    """Act in another thread as soon as a worker has a call to answer."""

    def wait_and_act():
        wait_until(lambda: any(found.in_flight for found in service.workers()))
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def interrupted(service):
    return during_a_call(service, lambda: os.kill(os.getpid(), signal.SIGINT))
