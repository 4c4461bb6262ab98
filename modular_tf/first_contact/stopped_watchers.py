"""The processes that a trial hangs from: seen to be stopped by the plugin, and woken.

A plugin that stops all processes of its user goes on alone. Where it is not secluded, nobody but
its own process can wake the application then.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

_PATIENCE_S = 0.05
_STOPPED = b"T"
_MOST = 3  # the watcher, the process that forked it, and the application
_STOP = 1 << (signal.SIGSTOP - 1)


class Watchers:
    """The ancestors of this process up to the application, as they were when this was made."""

    def __init__(self) -> None:
        self._pids = _ancestors()

    def wake(self) -> bool:
        """Let them go on if the nearest is stopped, or about to be; tell whether it was."""
        if not _is_stopped(self._pids[0]):
            return False
        time.sleep(_PATIENCE_S)
        if not _is_stopped(self._pids[0]):  # somebody stopped all of us for a while
            return False
        for pid in self._pids:  # the nearest first: whoever is found stopped, is ended
            with suppress(OSError):
                os.kill(pid, signal.SIGCONT)
        return True


def _ancestors() -> list[int]:
    found = [os.getppid()]
    while len(found) < _MOST and (parent := int(_status(found[-1]).get(b"PPid", b"0"))) > 0:
        found.append(parent)
    return found


def _is_stopped(pid: int) -> bool:
    status = _status(pid)
    pending = int(status.get(b"ShdPnd", b"0"), 16)
    return status.get(b"State", b"")[:1] == _STOPPED or bool(pending & _STOP)


def _status(pid: int) -> dict[bytes, bytes]:
    with suppress(OSError), open(f"/proc/{pid}/status", "rb") as status:
        parts = (line.partition(b":") for line in status)
        return {name: value.strip() for name, _, value in parts}
    return {}
