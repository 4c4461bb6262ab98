"""Threads of this package, with fallbacks for when the system starts no more of them."""

from __future__ import annotations

import os
import threading
from collections import deque
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from modular_tf.concurrency.fork_lock import holds_lock
from modular_tf.concurrency.live_objects import LiveObjects
from modular_tf.errors import ResourceExhaustedError
from modular_tf.events.event_log import collected, collecting, deliver_collected, is_collecting

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import ParamSpec

    _Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class _Started:
    """What `Thread.start` waits for; an interrupt of that wait leaves nothing locked.

    The event that Python has for it takes its lock in Python code: an interrupt there leaves it
    locked, and the thread waits for it for ever before its first step.
    """

    def __init__(self) -> None:
        self._is_set = False
        self._locked = threading.Lock()
        self._locked.acquire()

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._locked.release()

    def wait(self) -> None:
        with self._locked:
            pass

    def _at_fork_reinit(self) -> None:  # `threading` calls it in a forked child
        self._locked = threading.Lock()
        if not self._is_set:
            self._locked.acquire()


def start_thread(thread: threading.Thread) -> None:
    """Start a thread; `ResourceExhaustedError` if the system starts no more or Python ends.

    An interrupt may come when it runs already. So a thread asks whether it is wanted, under a lock
    that its starter holds.
    """
    thread._started = _Started()  # type: ignore[attr-defined]  # noqa: SLF001
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        raise ResourceExhaustedError(
            f"the thread {thread.name!r} could not be started ({error}); try again when others have"
            " ended, or raise the limit of processes (ulimit -u, pids.max of the container)"
        ) from error


class Work(Generic[_Result]):
    """A call that a thread of its own makes, so that it ends as a whole. [any thread]

    Python runs signal handlers in the main thread alone. So none comes in the middle of the call:
    what one raises ends the wait of the main thread, and the call goes on. What the call reports to
    users' code (`deliver`) is called by the thread that waits, when the call has ended, or by its
    own where nobody waits any more. In a forked child, which has no such thread, the one that waits
    makes the call anew.

    The thread makes the call in a copy of the caller's context. `name` is the thread's; with
    `daemon` the end of the process stops the call instead of waiting for it. Raises
    `ResourceExhaustedError` if there can be no thread.
    """

    def __init__(self, call: Callable[[], _Result], name: str, *, daemon: bool) -> None:
        self.is_over = False  # the call has ended
        self._call = call
        self._is_left = self._is_lost = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._reports: deque[Callable[[], object]] = deque()
        self._waiting: list[threading.Lock] = []
        self._when_left: list[Callable[[], object]] = []
        run = partial(copy_context().run, self._run)
        _works.add(self)
        try:
            start_thread(threading.Thread(target=run, name=name, daemon=daemon))
        except BaseException:  # an interrupt may come when it runs
            self._is_left = True
            raise

    def _run(self) -> None:
        _of_thread.work = self
        self._reports = collected()
        try:
            self._result = collecting(self._call)
        except BaseException as error:  # noqa: BLE001  (raised again in the waiting thread)
            self._error = error
        self._end()
        del self._call  # which may refer to what refers to this
        if self._is_left:
            deliver_collected()

    def _end(self) -> None:
        self.is_over = True
        for waiting in self._waiting:
            if waiting.locked():
                waiting.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the call, so many seconds at most; return whether it has ended."""
        mine = threading.Lock()  # `Thread.join` that is interrupted takes the thread for ended
        mine.acquire()
        self._waiting.append(mine)
        try:
            return self.is_over or mine.acquire(timeout=-1 if timeout is None else timeout)
        finally:
            if not self.is_over:
                self._is_left = True
                for call in self._when_left:
                    call()
            if self.is_over:  # perhaps only now
                deliver_collected(self._reports)

    def when_left(self, call: Callable[[], object]) -> None:
        """Have the waiting thread call a function if it stops waiting before the call has ended."""
        self._when_left.append(call)
        if self._is_left:
            call()

    def outcome(self) -> _Result:
        """Wait, and return what the call returned; what it raised is raised once, for the first."""
        self.wait()
        if self._is_lost:
            return self._call()
        if self._error is not None:
            try:
                raise self._error
            finally:
                self._error = None  # else it and the frames in it would keep each other
        result: _Result = self._result
        return result

    def __del__(self) -> None:
        # An interrupt came between the start and the wait: nobody waited, and nobody left.
        if reports := getattr(self, "_reports", None):  # none if it came into the constructor
            deliver_collected(reports)

    def after_fork_in_child(self) -> None:
        """Wake the thread that waits: the one that makes the call stayed in the parent."""
        if not self.is_over:
            self._is_lost = True
            self._reports = deque()
        self._end()  # else that thread may be about to do it


class _OfThread(threading.local):
    """The work that a thread does."""

    work: Work[Any] | None = None


_of_thread = _OfThread()
_works: LiveObjects[Work[Any]] = LiveObjects()


def awaited_work() -> Work[Any] | None:
    """Return the work that this thread does while another one waits; None for no such thread."""
    work = _of_thread.work
    return None if work is None or work._is_left else work  # noqa: SLF001  (of this module)


def _lose_works() -> None:
    for work in _works.all():
        work.after_fork_in_child()


os.register_at_fork(after_in_child=_lose_works)


def is_main_thread() -> bool:
    """Return whether this is the thread in which Python runs signal handlers."""
    return threading.get_ident() == threading.main_thread().ident


def call_without_signal_handlers(call: Callable[[], _Result]) -> _Result:
    """Return or raise what a function returns or raises where no signal handler runs.

    So no exception of one can come between a system call and the line that keeps what it returned,
    as in Python's own `subprocess` and `socket`. Where the wait is interrupted, the result is
    dropped, which must release what it owns. Where no thread can be had, this one makes the call.
    """
    if not is_main_thread():
        return call()
    try:
        work = Work(call, "modular_tf-start", daemon=False)
    except ResourceExhaustedError:
        return call()
    return work.outcome()


def uninterrupted(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Make a function that takes the package's locks run to its end; users' code runs afterwards.

    In the main thread another thread runs it (`Work`), so that an interrupt ends only the wait.
    Inside another such function, and where the calling thread has a lock of the package, it runs as
    it is.
    """
    name = f"modular_tf-{function.__name__}"

    @wraps(function)
    def run(*arguments: _Given.args, **named: _Given.kwargs) -> _Result:
        if is_collecting():
            return function(*arguments, **named)
        call = partial(function, *arguments, **named)
        if is_main_thread() and not holds_lock():
            try:
                work = Work(call, name, daemon=True)
            except ResourceExhaustedError:
                pass
            else:
                return work.outcome()
        try:
            return collecting(call)
        finally:
            deliver_collected()

    return run


class LastingWork:
    """Work on a thread that always finishes; where its caller is interrupted, the next one waits.

    The end of the process waits for it. [any thread]
    """

    def __init__(self) -> None:
        self._work: Work[object] | None = None

    def run(self, call: Callable[[], object], name: str) -> None:
        """Have the call made, or wait for one that an interrupted caller has left, and end as it.

        Where there is no thread for it, nothing is done.
        """
        work = self._work
        if work is None:
            starting, is_wanted = threading.Lock(), False

            def wanted() -> object:
                with starting:  # an interrupt that comes now leaves a thread that nobody knows
                    pass
                return call() if is_wanted else None

            try:
                with starting:
                    # Not a daemon, which the end of the process would stop wherever it is.
                    work = self._work = Work(wanted, name, daemon=False)
                    is_wanted = True
            except ResourceExhaustedError:
                return
        work.wait()  # what a signal handler raises here leaves the outcome to the next caller
        try:
            work.outcome()
        finally:
            self._work = None


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
