"""Work in a forked child that is watched: what it prints, how it ends, where it hangs."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_SHOWN = 8000
_GRACE_S = 20.0  # for a child that shows its stacks


def watch_child(work: Callable[[], None], patience_s: float) -> str | None:
    """Do some work in a child; return None where it was done, else what became of it.

    The work may call `still_alive`, or has to end in time. Call it where no threads run.
    """
    said = os.memfd_create("what a child says")
    pid = os.fork()
    if pid == 0:
        _live(work, patience_s, said)
    return ending_of(pid, said)


def begin_child(said: int, patience_s: float) -> None:
    """Have a forked child write to a file, and show its stacks if it does not end in time."""
    os.dup2(said, 1)
    os.dup2(said, 2)
    faulthandler.enable()
    still_alive(patience_s)


def still_alive(patience_s: float) -> None:
    """Begin a step of the work, which may take so long."""
    faulthandler.dump_traceback_later(patience_s, exit=True)


def ending_of(pid: int, said: int, patience_s: float | None = None) -> str | None:
    """Wait for a child; return None where it ended well, else what became of it."""
    found, status = os.waitpid(pid, 0 if patience_s is None else os.WNOHANG)
    deadline = time.monotonic() + (patience_s or 0) + _GRACE_S
    while not found and time.monotonic() < deadline:
        time.sleep(0.005)
        found, status = os.waitpid(pid, os.WNOHANG)
    if not found:
        os.kill(pid, signal.SIGABRT)  # its stacks, if it can still show them
        _, status = os.waitpid(pid, 0)
    text = os.pread(said, 1 << 20, 0).decode("utf-8", "replace")
    os.close(said)
    if status == 0 and "Traceback" not in text:
        return None
    code = os.waitstatus_to_exitcode(status)
    ending = f"ended by signal {-code}" if code < 0 else f"ended with status {code}"
    return f"{ending}; it said:\n{text[-_MOST_SHOWN:]}"


def _live(work: Callable[[], None], patience_s: float, said: int) -> NoReturn:
    status = 1
    try:
        begin_child(said, patience_s)
        work()
        status = 0
    except BaseException:  # noqa: BLE001  (it is told, and the parent goes on)
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
