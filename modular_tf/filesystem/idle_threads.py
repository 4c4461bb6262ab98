"""Waiting until the threads that plugins have started are idle."""

from __future__ import annotations

import os
import threading
import time

_TASKS = "/proc/self/task"
_ASLEEP = b"S"
_PAUSE_S = 0.002  # a thread that did not run at all during the pause is waiting

_States = dict[int, tuple[bytes, ...]]


def wait_until_idle(patience_s: float) -> bool:
    """Wait until each thread that Python has not started has ended or sleeps. [any thread]

    Args:
        patience_s: How long to wait at most, since other threads may be busy all the time.

    Returns:
        Whether all are idle; False also where the system does not say.
    """
    end = time.monotonic() + patience_s
    try:
        before = _native_threads()
        while before and time.monotonic() < end:
            time.sleep(_PAUSE_S)
            now = _native_threads()
            if now.items() <= before.items() and all(state[0] == _ASLEEP for state in now.values()):
                return True
            before = now
    except OSError:
        return False
    return not before


def _native_threads() -> _States:
    """Return state and context switches of each thread that Python has not started."""
    # In a forked child, Python's main thread is the first one, and has the number of its parent's.
    known = {os.getpid(), *(thread.native_id for thread in threading.enumerate())}
    found = {number: _thread_state(number) for number in map(int, os.listdir(_TASKS))}
    return {number: state for number, state in found.items() if state and number not in known}


def _thread_state(number: int) -> tuple[bytes, ...]:
    """Return state and context switches of a thread, nothing if it has ended."""
    try:
        with open(f"{_TASKS}/{number}/status", "rb", buffering=0) as status:
            lines = dict(line.split(b":", 1) for line in status.read().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return ()
    names = (b"State", b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")
    return tuple(lines[name].split()[0] for name in names)
