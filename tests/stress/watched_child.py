"""Work in a forked child that is watched: what it prints, how it ends, where it hangs."""

from __future__ import annotations

import faulthandler
import os
import sys
import traceback
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_SHOWN = 6000


def watch_child(work: Callable[[], None], patience_s: float) -> str | None:
    """Do some work in a child; return None where it was done, else what became of it.

    The work may call `still_alive`, or has to end in time. Call it where no threads run.
    """
    said = os.memfd_create("what a child says")
    pid = os.fork()
    if pid == 0:
        _live(work, patience_s, said)
    _, status = os.waitpid(pid, 0)
    text = os.pread(said, 1 << 20, 0).decode("utf-8", "replace")
    os.close(said)
    if status == 0:
        return None
    return f"{_ending(os.waitstatus_to_exitcode(status))}; it said:\n{text[-_MOST_SHOWN:]}"


def still_alive(patience_s: float) -> None:
    """Begin a step of the work, which may take so long."""
    faulthandler.dump_traceback_later(patience_s, exit=True)


def _live(work: Callable[[], None], patience_s: float, said: int) -> NoReturn:
    status = 1
    try:
        os.dup2(said, 1)
        os.dup2(said, 2)
        faulthandler.enable()
        still_alive(patience_s)
        work()
        status = 0
    except BaseException:  # noqa: BLE001  (it is told, and the parent goes on)
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _ending(status: int) -> str:
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
