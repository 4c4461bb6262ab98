"""Blocking calls that an event loop awaits, made by a bounded number of threads."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import InternalError, ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable


class AwaitedCalls:
    """Calls for event loops, each by a thread of its own. [any thread]

    Unlike those of `asyncio.to_thread`, they are at most as many for a loop as a store allows, and
    do not hold up the end of a program that was interrupted. A call is not begun once its await was
    cancelled; a call under way ends by itself.
    """

    def __init__(self) -> None:
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._places = WeakKeyDictionary()

    async def make(self, function: Callable[[], Any], at_once: int) -> Any:
        """Return or raise what a function returns or raises in one of at most `at_once` threads.

        Where no thread can be started, the calling thread makes the call.
        """
        loop = asyncio.get_running_loop()
        places = self._places.setdefault(loop, asyncio.Semaphore(at_once))
        answer = loop.create_future()

        def end(result: Any, error: BaseException | None) -> None:
            places.release()
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

        def work() -> None:
            outcome: tuple[Any, BaseException | None]
            try:
                outcome = function(), None
            except BaseException as error:  # noqa: BLE001  (raised again by the await)
                outcome = None, error
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(end, *outcome)
            del outcome  # else an error and this frame would keep each other

        await places.acquire()
        try:
            start_thread(threading.Thread(target=work, name="modular_tf-call-awaited", daemon=True))
        except ResourceExhaustedError:
            work()
        except BaseException:  # an interrupt
            places.release()
            raise
        return await answer
