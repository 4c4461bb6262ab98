"""Processes that outlive all who watched over them: found by their command line, and ended.

A fork keeps the command line of the zygote, which has a mark that nobody else has. Only a program
that a plugin has started instead has another; where process numbers can be had for it alone
(`seclusion`), not even that outlives its watcher.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

_PATIENCE_S = 5.0
_LOOK_EVERY_S = 0.005


def end_marked(mark: str) -> None:
    """Kill the processes whose command line has a mark, until there is none.

    Args:
        mark: Words that no other process's command line has.
    """
    deadline = time.monotonic() + _PATIENCE_S
    wanted = mark.encode()
    while time.monotonic() < deadline:
        found = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
        found = [pid for pid in found if wanted in _command_line(pid)]
        if not found:
            return
        for pid in found:
            _kill(pid, wanted)
        time.sleep(_LOOK_EVERY_S)


def _kill(pid: int, wanted: bytes) -> None:
    """Kill a process, not one that has taken its number meanwhile."""
    # Gone; or kernel or Python are too old to name it otherwise than by its number.
    with suppress(OSError, AttributeError):
        fd = os.pidfd_open(pid)
        try:
            if wanted in _command_line(pid):
                signal.pidfd_send_signal(fd, signal.SIGKILL)
        finally:
            os.close(fd)


def _command_line(pid: int) -> bytes:
    """Return its words; nothing of one that is gone, or has ended and was not waited for."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as line:
            return line.read()
    except OSError:
        return b""
