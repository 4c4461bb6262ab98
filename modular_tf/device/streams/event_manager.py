"""Waiting for many events at once, on a thread of its own."""

from __future__ import annotations

import threading
import time
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import Worker
from modular_tf.device.streams.host_callback import running_as
from modular_tf.errors import ModularTFError
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.executor import Executor
    from modular_tf.device.streams.event import Event

    Waiting = tuple[Event, Callable[[ModularTFError | None], None]]

_ROUND_NS = 200_000
"""How long a round waits for its first event, in the native core, which looks every 10 µs."""

_IDLE_S = 1.0
"""How long the thread stays without an event."""

_LOOK_EVERY_S = 0.0005
"""How often who waits for all of them looks."""


class EventManager:
    """Calls functions when events are done. [any thread]

    A plugin is polled, never blocked on, and the interpreter goes on meanwhile. An event that the
    plugin calls ERROR or UNKNOWN raises an error in the waiting call, where TensorFlow aborts.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._lock = ForkLock()
        # No `threading.Condition`: an interrupt within its methods leaves its lock taken.
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._waiting: deque[Waiting] = deque()
        self._worker = Worker()

    def when_done(self, event: Event, function: Callable[[ModularTFError | None], None]) -> None:
        """Call a function when an event, which was recorded, is done; the event is kept until then.

        The function gets None, or why the work failed; it must be short, and is called on the
        manager's thread. What it raises goes to `threading.excepthook`; the rest goes on. Raises
        ResourceExhaustedError if there is no thread to wait for it; then the function is not
        called.
        """
        with self._lock:
            self._worker.ensure(self._work, f"events of {self._executor.name}")
            self._waiting.append((event, function))
        if self._calls.empty():  # else the thread will look after all of them
            self._calls.put(None)

    def __len__(self) -> int:
        return len(self._waiting)

    def drain(self, timeout: float) -> bool:
        """Wait until no event is pending, for `timeout` seconds at most; return whether none is."""
        latest = time.monotonic() + timeout
        while self._waiting and time.monotonic() < latest:
            time.sleep(_LOOK_EVERY_S)
        return not self._waiting

    def _work(self) -> None:
        with running_as(self._executor):
            while self._await_work():
                self._poll()

    def _await_work(self) -> bool:
        is_idle = False
        while True:
            with self._lock:
                if not self._worker.is_current:
                    return False
                if self._waiting:
                    return True
                if is_idle:
                    self._worker.leave()
                    return False
            is_idle = self._is_idle()

    def _is_idle(self) -> bool:
        """Wait for a call; return whether none came."""
        try:
            self._calls.get(timeout=_IDLE_S)
        except Empty:
            return True
        return False

    def _poll(self) -> None:
        """Poll every event once; wait briefly for the first one, which is usually done first."""
        waiting = list(self._waiting)
        native = waiting[0][0].native
        if native is not None:
            lib.mtf_event_poll(native, _ROUND_NS)
        done = [entry for entry in waiting if _call_if_done(entry)]
        with self._lock:
            for entry in done:
                self._waiting.remove(entry)


def _call_if_done(entry: Waiting) -> bool:
    event, function = entry
    failure = None
    try:
        if not event.done:
            return False
    except ModularTFError as error:
        failure = error
    try:
        function(failure)
    except BaseException as raised:  # noqa: BLE001  (others wait for this thread)
        thread = threading.current_thread()
        details = type(raised), raised, raised.__traceback__, thread
        threading.excepthook(threading.ExceptHookArgs(details))
    return True
