"""Waiting for many events at once, on a thread of its own."""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING

from modular_tf.device.host_callback import running_as
from modular_tf.errors import ModularTFError
from modular_tf.fork_lock import ForkLock
from modular_tf.native.ffi import lib
from modular_tf.threads import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.event import Event
    from modular_tf.device.executor import Executor

    Waiting = tuple[Event, Callable[[ModularTFError | None], None]]

_ROUND_NS = 200_000
"""How long a round waits for its first event, in the native core, which looks every 10 µs."""

_IDLE_S = 1.0
"""How long the thread stays without an event."""


class EventManager:
    """Calls functions when events are done. [any thread]

    A plugin is polled, never blocked on, and the interpreter goes on meanwhile. An event that the
    plugin calls ERROR or UNKNOWN is an error of whoever waits for it, where TensorFlow aborts.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._changed = threading.Condition(ForkLock())
        self._waiting: deque[Waiting] = deque()
        self._worker = Worker()

    def when_done(self, event: Event, function: Callable[[ModularTFError | None], None]) -> None:
        """Call a function when an event is done.

        Args:
            event: A recorded event; it is kept until then.
            function: Gets None, or why the work failed; it must be short, and is called on the
                manager's thread. What it raises goes to `threading.excepthook`; the rest goes on.

        Raises:
            ResourceExhaustedError: There is no thread to wait for it; the function is not called.
        """
        with self._changed:
            self._worker.ensure(self._work, f"events of {self._executor.name}")
            self._waiting.append((event, function))
            self._changed.notify()

    def __len__(self) -> int:
        return len(self._waiting)

    def drain(self, timeout: float) -> bool:
        """Wait until nothing is waited for, at most `timeout` seconds; tell whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout)

    def _work(self) -> None:
        with running_as(self._executor):
            while self._await_work():
                self._look()

    def _await_work(self) -> bool:
        with self._changed:
            if not self._worker.is_current:
                return False
            if self._changed.wait_for(lambda: self._waiting, _IDLE_S):
                return True
            self._worker.leave()
            return False

    def _look(self) -> None:
        """Poll every event once; wait a little for the first, which mostly is done first."""
        waiting = list(self._waiting)
        native = waiting[0][0].native
        if native is not None:
            lib.mtf_event_poll(native, _ROUND_NS)
        done = [entry for entry in waiting if _call_if_done(entry)]
        with self._changed:
            for entry in done:
                self._waiting.remove(entry)
            self._changed.notify_all()


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
