"""Blocking calls that an event loop awaits, made by a bounded number of threads."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import InternalError, ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable


class _Call(NamedTuple):
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    function: Callable[[], Any]


class AwaitedCalls:
    """Threads that make calls for event loops. [any thread]

    Unlike those of `asyncio.to_thread`, they are as many as a store allows, exist only while there
    are calls, and do not hold up the end of a program that was interrupted. A call is not begun
    once its await was cancelled; a call under way ends by itself.

    Fork: the calls and the threads stay in the parent.
    """

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._process = os.getpid()
        self._waiting: deque[_Call] = deque()
        self._threads: set[threading.Thread] = set()

    async def make(self, function: Callable[[], Any], at_once: int) -> Any:
        """Return or raise what a function returns or raises in one of at most `at_once` threads.

        Where no thread can be started, the calling thread makes the call.
        """
        loop = asyncio.get_running_loop()
        call = _Call(loop, loop.create_future(), function)
        with self._lock:
            if self._process != os.getpid():
                self._process, self._waiting, self._threads = os.getpid(), deque(), set()
            self._waiting.append(call)
            is_made = False
            try:
                is_made = len(self._threads) >= at_once or self._has_started_one()
            finally:
                if not is_made:
                    self._waiting.remove(call)
        return await call.future if is_made else function()

    def _has_started_one(self) -> bool:
        """Start a thread; return whether any is there to make calls. Called with the lock."""
        thread = threading.Thread(target=self._work, name="modular_tf-call-awaited", daemon=True)
        self._threads.add(thread)
        try:
            start_thread(thread)
        except ResourceExhaustedError:
            self._threads.discard(thread)
        except BaseException:  # an interrupt, after which it may run all the same
            self._threads.discard(thread)
            raise
        return bool(self._threads)

    def _work(self) -> None:
        """Make calls until none is waiting. [its threads]"""
        try:
            while self._make_next():
                pass
        finally:  # also where there was no memory to hand a result on
            self._threads.discard(threading.current_thread())

    def _make_next(self) -> bool:
        """Make a call, and hand its result on; return whether there was one. [its threads]"""
        with self._lock:
            if not self._waiting:
                self._threads.discard(threading.current_thread())  # under the lock: none is missed
                return False
            call = self._waiting.popleft()
        if call.future.cancelled():
            return True
        try:
            result, error = call.function(), None
        except Exception as raised:  # noqa: BLE001  (raised again by the await)
            result, error = None, raised
        except BaseException as raised:  # noqa: BLE001  (likewise; an event loop would end)
            result, error = None, InternalError(f"a call raised {raised!r}")
            error.__cause__ = raised
        with suppress(RuntimeError):  # the loop is closed
            call.loop.call_soon_threadsafe(_end, call.future, result, error)
        return True


def _end(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
