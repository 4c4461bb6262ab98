"""Calls of users' code (log handlers, hooks), never while a lock of this package is held.

A handler may wait for a lock of the application's, whose owner may wait for one of ours. So what
happens under a lock is kept, in order, and delivered by the same thread when it holds none.
"""

from __future__ import annotations

import threading
from collections import deque
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import ParamSpec

    _Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class _OfThread(threading.local):
    """The calls that one thread has to deliver.

    Attributes:
        waits: Whether it must not be delivered now.
        calls: What it is, in order; what an interrupt left of the last delivery comes first.
    """

    def __init__(self) -> None:
        self.waits = False
        self.calls: deque[Callable[[], object]] = deque()


_mine = _OfThread()


def deliver(call: Callable[[], object]) -> None:
    """Call users' code now, or at the end of this thread's outermost `delivers_at_end`.

    What it raises ends the delivery; the rest comes with the next one.
    """
    _mine.calls.append(call)
    if not _mine.waits:
        _deliver_all()


def _deliver_all() -> None:
    """Deliver, and what is added meanwhile, one after the other."""
    try:
        _mine.waits = True
        while _mine.calls:
            _mine.calls.popleft()()
    finally:
        _mine.waits = False


def delivers_at_end(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Make a function that takes locks deliver its calls after it has released them.

    It is a decorator, and not for `with`, so that a signal handler that raises cannot come between
    the start of the wait and what ends it.
    """

    @wraps(function)
    def run(*arguments: _Given.args, **named: _Given.kwargs) -> _Result:
        if _mine.waits:
            return function(*arguments, **named)
        try:
            _mine.waits = True
            return function(*arguments, **named)
        finally:
            _mine.waits = False
            if _mine.calls:
                _deliver_all()

    return run
