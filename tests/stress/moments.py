"""Signal handlers at chosen moments of the main thread: by a timer, or at the n-th step of it.

CPython runs signal handlers after calls and at the start of functions. There a profile function is
called too, so what it raises comes as from a handler, and by its number at the same step again.
"""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class InterruptError(BaseException):
    """What a handler raises, as Ctrl-C does."""


class MomentOfTime:
    """A handler that a timer's signal brings, if a `with` takes so many seconds."""

    def __init__(self, handler: Callable[[], object], seconds: float) -> None:
        self._handler = handler
        self._seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, lambda *_: self._handler())
        signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


class MomentOfStep:
    """A handler that comes at the n-th step of a `with`, if it has so many."""

    def __init__(self, handler: Callable[[], object], step: int) -> None:
        self._handler = handler
        self._step = step
        self.steps = 0

    def __enter__(self) -> None:
        sys.setprofile(self._count)

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count(self, _frame: object, event: str, _argument: object) -> None:
        if event in {"call", "c_return"}:
            self.steps += 1
            if self.steps == self._step:
                sys.setprofile(None)
                self._handler()


class Cost(NamedTuple):
    """What some work takes: how many steps, and how many seconds."""

    steps: int
    seconds: float


def cost_of(work: Callable[[], object]) -> Cost:
    """Return what some work takes; counting makes it a little slower."""
    counting = MomentOfStep(lambda: None, -1)
    started = time.monotonic()
    with counting:
        work()
    return Cost(max(2, counting.steps), time.monotonic() - started)
