"""Registers the shared fixtures; each module under `tests.fixtures` says what it offers."""

from __future__ import annotations

import signal
from ctypes import CDLL, byref, c_int

import pytest
from hypothesis import settings

# A shell has what it starts in the background ignore interrupts, and `nohup` the end of a terminal:
# tests send these signals to processes that they start, which inherit what is ignored here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# On top of Hypothesis' own profile, which repeats the same examples where CI is set.
settings.register_profile("untimed", settings.default, deadline=None)
settings.load_profile("untimed")

pytest_plugins = [
    "tests.fixtures.core_run",
    "tests.fixtures.machine",
    "tests.fixtures.children",
    "tests.fixtures.forked_children",
    "tests.fixtures.traces",
    "tests.fixtures.garbage",
    "tests.fixtures.native_errors",
    "tests.fixtures.package_log",
    "tests.fixtures.emulators",
    "tests.fixtures.wild",
    "tests.fixtures.clients",
    "tests.fixtures.compiled",
    "tests.fixtures.thread_starts",
]

_PR_GET_CHILD_SUBREAPER = 37
_prctl = CDLL(None).prctl


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    """Refuse a test that makes this process a watcher of plugins.

    A watcher ends all children of its process (`modular_tf.processes.descendants`), and these are
    the servers of other tests: such a test needs `run_python`.
    """
    adopts = c_int()
    _prctl(_PR_GET_CHILD_SUBREAPER, byref(adopts), 0, 0, 0)
    if adopts.value:
        pytest.exit("a test made the process of the tests the reaper of orphans: use run_python")
