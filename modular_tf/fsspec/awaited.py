"""Blocking calls that an event loop awaits, made by a bounded number of threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import InternalError, ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable


class AwaitedCalls:
    """Threads that make calls for event loops. [any thread]

    They are at most as many for a loop as a store allows, exist only while there are calls, and do
    not hold up the end of a program. A call is not begun once its await was cancelled.
    """

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Calls] = WeakKeyDictionary()

    async def make(self, function: Callable[[], Any], at_once: int) -> Any:
        """Return or raise what a function returns or raises in one of at most `at_once` threads.

        Where no thread can be started, the calling thread makes the call.
        """
        loop = asyncio.get_running_loop()
        calls = self._loops.setdefault(loop, _Calls())
        call = function, loop.create_future()
        calls.waiting.append(call)
        try:
            if calls.threads < at_once:
                calls.start(loop)
        except BaseException:  # an interrupt
            with suppress(ValueError):
                calls.waiting.remove(call)
            raise
        return await call[1]


class _Calls:
    """The calls of an event loop, whose thread alone counts and starts other threads."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Callable[[], Any], asyncio.Future[Any]]] = deque()
        self.threads = 0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        def work() -> None:
            self._make_all(loop)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(leave)

        def leave() -> None:
            self.threads -= 1
            if self.waiting:  # a call came when the thread had found no other
                self.start(loop)

        self.threads += 1
        try:
            start_thread(threading.Thread(target=work, name="modular_tf-call-awaited", daemon=True))
        except BaseException as error:
            self.threads -= 1
            if not isinstance(error, ResourceExhaustedError):
                raise
            if not self.threads:
                self._make_all(loop)

    def _make_all(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make calls until none is waiting."""
        while self.waiting:
            with suppress(IndexError):  # another thread was faster
                function, answer = self.waiting.popleft()
                if answer.cancelled():
                    continue
                outcome: tuple[Any, BaseException | None]
                try:
                    outcome = function(), None
                except BaseException as error:  # noqa: BLE001  (raised again by the await)
                    outcome = None, error
                with suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(_end, answer, *outcome)
                del function, answer, outcome  # an error and this frame would keep each other


def _end(answer: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if answer.cancelled():
        return
    if error is None:
        answer.set_result(result)
    elif isinstance(error, Exception):
        answer.set_exception(error)
    else:  # an event loop would end
        failure = InternalError(f"a call raised {error!r}")
        failure.__cause__ = error
        answer.set_exception(failure)
