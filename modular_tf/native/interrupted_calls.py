"""What signal handlers raise while a call waits for a worker.

The call waits in C, where no exception can pass: it ends with an error, and who turns that into an
exception takes what is kept here instead.
"""

from __future__ import annotations

import threading

_kept = threading.local()


def keep_interrupt(error: BaseException) -> None:
    """Keep what a signal handler raised, until the call on this thread has ended."""
    _kept.error = error


def is_interrupted() -> bool:
    """Return whether something is kept on this thread."""
    return getattr(_kept, "error", None) is not None


def take_interrupt() -> BaseException | None:
    """Return what was kept on this thread, once; None for nothing."""
    error: BaseException | None = getattr(_kept, "error", None)
    _kept.error = None
    return error
