"""Calls that may take only so long: a thread makes each, and who waits may leave it behind."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_LEFT = 64  # threads that wait for a store that never answers

_left: set[threading.Thread] = set()


class LimitedCall:
    """A call on a thread of its own, which waits for nobody. [any thread]

    Args:
        work: The call.
        on_left: Called when the call is left behind, before `on_late`.
        on_late: Called by the thread when a call ends that was left behind, whatever came of it.
    """

    def __init__(
        self,
        work: Callable[[], object],
        on_left: Callable[[], object],
        on_late: Callable[[], object],
    ) -> None:
        self._work = work
        self._on_left = on_left
        self._on_late = on_late
        self._lock = ForkLock()
        self._ended = threading.Event()
        self._is_left = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="modular_tf-limited", daemon=True)

    def ends_within(self, limit_s: float) -> bool:
        """Make the call; return whether it ended in time, or raise what it raised.

        An interrupt leaves it behind too. Where no thread can be had, the caller's makes the call,
        for as long as it takes.

        Args:
            limit_s: How long it is waited for.

        Raises:
            ResourceExhaustedError: Too many calls were left behind and have not ended; this one is
                not made.
        """
        _check_left()
        try:
            try:
                start_thread(self._thread)
            except ResourceExhaustedError:  # also at the end of the process: no byte may be lost
                self._run()
            self._ended.wait(limit_s)
        except BaseException:
            if not self._leave():
                self._on_left()
                self._on_late()
            raise
        if self._leave():
            return False
        if self._error is not None:
            raise self._error
        return True

    def _leave(self) -> bool:
        """Leave the call behind unless it has ended; return whether it is left."""
        with self._lock:
            if not self._ended.is_set():
                self._on_left()
                _left.add(self._thread)
                self._is_left = True
        return self._is_left

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  (raised again where it is waited for)
            self._error = error
        with self._lock:
            self._ended.set()
            is_late = self._is_left
        if is_late:
            self._on_late()
            _left.discard(self._thread)


def _check_left() -> None:
    """Refuse one more call where many do not end; a fork leaves them to the parent."""
    for thread in list(_left):
        if not thread.is_alive():
            _left.discard(thread)
    if len(_left) >= _MOST_LEFT:
        raise ResourceExhaustedError(
            f"{len(_left)} calls that took too long have not ended; no further one is made"
        )
