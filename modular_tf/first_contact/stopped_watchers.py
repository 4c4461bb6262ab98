"""Continuing the watcher, the zygote and the application after a plugin has stopped them.

A plugin that sends SIGSTOP to all processes of its user goes on running itself. Where it is not
secluded, only its own process can continue the others.
"""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import suppress

_PATIENCE_S = 0.05
_MOST = 3  # the watcher, the process that forked it, and the application
_STATE = re.compile(rb"^State:\s*(\S)", re.MULTILINE)
_PARENT = re.compile(rb"^PPid:\s*(\d+)", re.MULTILINE)
_PENDING = re.compile(rb"^ShdPnd:\s*([0-9a-f]+)", re.MULTILINE)
_STOPPED = b"T"
_STOP = 1 << (signal.SIGSTOP - 1)


class Watchers:
    """The ancestors of this process up to the application."""

    def __init__(self) -> None:
        self._nearest = os.getppid()

    def wake(self) -> bool:
        """Continue them if the nearest is stopped, or about to be; return whether it was."""
        if not _is_stopped(self._nearest):
            return False
        time.sleep(_PATIENCE_S)
        if not _is_stopped(self._nearest):  # somebody stopped all of us for a while
            return False
        for pid in _line_from(self._nearest):  # nearest first: a parent kills a stopped child
            with suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        return True


def _line_from(pid: int) -> list[int]:
    """Return a process and its ancestors up to the application."""
    found = [pid]
    while len(found) < _MOST and (parent := _PARENT.search(_status(found[-1]))) is not None:
        found.append(int(parent[1]))
    return [pid for pid in found if pid > 0]


def _is_stopped(pid: int) -> bool:
    status = _status(pid)
    state, pending = _STATE.search(status), _PENDING.search(status)
    if state is None or pending is None:
        return False
    return state[1] == _STOPPED or bool(int(pending[1], 16) & _STOP)


def _status(pid: int) -> bytes:
    with suppress(OSError), open(f"/proc/{pid}/status", "rb", buffering=0) as status:
        return status.read()
    return b""
