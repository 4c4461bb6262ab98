"""Calls of users' code (log handlers, hooks), never while a lock of this package is held.

A handler may wait for a lock of the application's, whose owner may wait for one of ours. So a call
of the package that takes locks collects what it reports (`collecting`), and the thread that waits
for it delivers that afterwards, in order.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


class _OfThread(threading.local):
    """The calls that one thread has collected; what an interrupt left of them comes first."""

    def __init__(self) -> None:
        self.is_collecting = False
        self.is_delivering = False
        self.calls: deque[Callable[[], object]] = deque()


_mine = _OfThread()


def deliver(call: Callable[[], object]) -> None:
    """Call users' code now, or when this thread has ended what collects it.

    What it raises ends the delivery; the rest comes with the next one.
    """
    _mine.calls.append(call)
    deliver_collected()


def is_collecting() -> bool:
    """Return whether this thread collects calls."""
    return _mine.is_collecting


def collecting(call: Callable[[], _Result]) -> _Result:
    """Make a call that takes locks; users' code waits for `deliver_collected`."""
    try:
        _mine.is_collecting = True
        return call()
    finally:
        _mine.is_collecting = False


def collected() -> deque[Callable[[], object]]:
    """Return what this thread has collected, for another thread that delivers it."""
    return _mine.calls


def deliver_collected(others: deque[Callable[[], object]] | None = None) -> None:
    """Deliver what was collected, and what is added meanwhile, one after the other.

    `others` is what another thread has collected.
    """
    if others is not None:
        with suppress(IndexError):  # two threads may empty it
            while True:
                _mine.calls.append(others.popleft())
    if _mine.is_collecting or _mine.is_delivering:
        return
    try:
        _mine.is_delivering = True
        while _mine.calls:
            _mine.calls.popleft()()
    finally:
        _mine.is_delivering = False
