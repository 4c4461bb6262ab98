"""The lock of this package, which survives interrupts and forks."""

from __future__ import annotations

import os
import sys
import weakref
from _thread import RLock


class ForkLock(RLock):  # type: ignore[misc]
    """A re-entrant mutex per process. [any thread]

    Interrupt: taking and releasing it are calls of C, between which and the body of `with` no
    signal handler runs; a handler that raises never leaves it taken. Do not surround it with a
    context manager written in Python, whose own lines a handler may interrupt. Python 3.14
    alone runs handlers there (python/cpython#148874), and takes the lock by a method of its own.

    Signal handlers and finalizers may run in the middle of the body, in the same thread, and take
    the lock again. So what it guards has to be consistent at every call that the body makes.

    Fork: in the child it is free, since the thread that held it in the parent does not exist
    there; the thread that forked keeps what it holds.
    """

    __slots__ = ()

    def __init__(self) -> None:
        _locks.add(self)

    if sys.version_info[:2] == (3, 14):

        def __enter__(self) -> bool:
            """Take the lock; an interrupt gives it back, unless a second one comes in that moment.

            No handler runs between the return of a method in Python and the body of `with`.
            """
            before = self._recursion_count()
            try:
                return self.acquire()
            except BaseException:
                if self._recursion_count() > before:
                    self.release()
                raise

    @property
    def is_held_by_this_thread(self) -> bool:
        """Whether this thread has taken it, as under a signal handler that interrupted the body."""
        held: bool = self._is_owned()  # type: ignore[attr-defined]
        return held


_locks: weakref.WeakSet[ForkLock] = weakref.WeakSet()


def holds_lock() -> bool:
    """Return whether the calling thread has any of these locks."""
    references = list(_locks.data)  # type: ignore[attr-defined]  # copied in one step
    found = (reference() for reference in references)
    return any(lock is not None and lock.is_held_by_this_thread for lock in found)


def _free_in_child() -> None:
    for lock in list(_locks):
        # As the standard library does with its own locks.
        if not lock.is_held_by_this_thread:
            lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001


os.register_at_fork(after_in_child=_free_in_child)
