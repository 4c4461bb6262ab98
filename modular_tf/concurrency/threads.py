"""Threads of this package, with fallbacks for when the system starts no more of them."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

from modular_tf.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


def start_thread(thread: threading.Thread) -> None:
    """Start a thread, or raise if there can be no more.

    An interrupt may come when it runs already. So a thread asks whether it is wanted, under a lock
    that its starter holds.

    Raises:
        ResourceExhaustedError: The system starts no more threads, or the interpreter ends.
    """
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and "new thread" not in str(error):
            # It runs, and an interrupt came while Python waited for its first step: then the
            # condition's own clean-up fails ("release unlocked lock") and hides the interrupt.
            raise error.__context__ or error from None
        raise ResourceExhaustedError(
            f"the thread {thread.name!r} could not be started ({error}); try again when others have"
            " ended, or raise the limit of processes (ulimit -u, pids.max of the container)"
        ) from error


def call_without_signal_handlers(work: Callable[[], _Result]) -> _Result:
    """Return or raise what a function returns or raises on another thread.

    Python runs signal handlers in the main thread alone. So no exception of one can come between a
    system call and the line that keeps what it returned, as in Python's own `subprocess` and
    `socket`. Where the wait is interrupted, the thread does its work and drops the result, which is
    to end what it stands for. Where no thread can be had, this one does it.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    ended: list[Callable[[], _Result]] = []
    thread = threading.Thread(
        target=lambda: ended.append(_outcome_of(work)), name="modular_tf-start"
    )
    try:
        start_thread(thread)
    except ResourceExhaustedError:
        return work()
    thread.join()
    return ended.pop()()


def _outcome_of(work: Callable[[], _Result]) -> Callable[[], _Result]:
    """Call a function, and return one that returns or raises its outcome."""
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  (raised again in the waiting thread)
        return partial(_raise, error)
    return lambda: result


def _raise(error: BaseException) -> NoReturn:
    try:
        raise error
    finally:
        del error  # else it and this frame would keep each other


class TimedWork:
    """Work on a thread that always finishes, while the caller waits for a limited time.

    The end of the process waits for it. [any thread]
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], object], name: str, timeout: float | None) -> bool:
        """Start the work, or wait for the thread that does it; return whether it ended in time.

        Where there is no thread for it, nothing is done. Without a timeout it waits for the end.
        """
        thread = self._thread
        if thread is None or not thread.is_alive():
            # Not a daemon, which the end of the process would stop wherever it is.
            thread = self._thread = threading.Thread(target=work, name=name, daemon=False)
            try:
                start_thread(thread)
            except ResourceExhaustedError:
                self._thread = None
                return True
        thread.join(timeout)
        return not thread.is_alive()


class Worker:
    """A thread that exists while there is work. Used under a lock of its owner.

    The owner calls `ensure` before there is work that only the thread can do. The thread asks
    `is_current` before it begins, and calls `leave` where no work is left.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None

    def ensure(self, work: Callable[[], None], name: str) -> None:
        """Start the thread unless it runs; where that fails, the next call tries again."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = threading.Thread(target=work, name=name, daemon=True)
        try:
            start_thread(self._thread)
        except BaseException:
            self._thread = None
            raise

    @property
    def is_current(self) -> bool:
        """Whether the calling thread is the worker; if not, it was replaced while it started."""
        return self._thread is threading.current_thread()

    def leave(self) -> None:
        """Say that this thread does no more work; the next `ensure` starts another one."""
        self._thread = None
