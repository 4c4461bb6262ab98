"""A lock that a forked child never inherits locked."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType


class ForkLock:
    """A mutex per process. [any thread].

    After `fork` the child starts with a free lock of its own: the thread that held the parent's
    does not exist there and could never release it.
    """

    __slots__ = ("_locks",)

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def _lock(self) -> threading.Lock:
        return self._locks.setdefault(os.getpid(), threading.Lock())

    def __enter__(self) -> None:
        self._lock().acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock().release()
