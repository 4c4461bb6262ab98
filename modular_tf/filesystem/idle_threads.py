"""Waiting until the threads that plugins have started have nothing to do."""

from __future__ import annotations

import os
import threading
import time

_TASKS = "/proc/self/task"
_ASLEEP = b"S"
_PAUSE_S = 0.002  # a thread that did not run once in between waits for something

_Looks = dict[int, tuple[bytes, ...]]


def wait_until_idle(patience_s: float) -> bool:
    """Wait until each thread that Python does not know of is gone, or asleep. [any thread]

    Args:
        patience_s: How long to wait at most, since threads of others may be busy all the time.

    Returns:
        Whether they are; False also where the system does not tell.
    """
    end = time.monotonic() + patience_s
    try:
        before = _foreign_threads()
        while before and time.monotonic() < end:
            time.sleep(_PAUSE_S)
            now = _foreign_threads()
            if now.items() <= before.items() and all(look[0] == _ASLEEP for look in now.values()):
                return True
            before = now
    except OSError:
        return False
    return not before


def _foreign_threads() -> _Looks:
    """Return state and number of switches of each thread that Python does not know of."""
    known = {thread.native_id for thread in threading.enumerate()}
    found = {number: _look_at(number) for number in map(int, os.listdir(_TASKS))}
    return {number: look for number, look in found.items() if look and number not in known}


def _look_at(number: int) -> tuple[bytes, ...]:
    """Return state and switches of a thread, nothing where it has ended."""
    try:
        with open(f"{_TASKS}/{number}/status", "rb", buffering=0) as status:
            lines = dict(line.split(b":", 1) for line in status.read().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return ()
    names = (b"State", b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")
    return tuple(lines[name].split()[0] for name in names)
