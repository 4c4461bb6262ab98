"""Holding a stream back, and watching calls while it is."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Deviation

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.answers import Answer
    from modular_tf.check.expectation import Blocked, Unsupported

_GATE_SECONDS = 20.0
"""How long a gate stays shut at most: longer than any step of a check, shorter than a check."""
_LOOK_SECONDS = 0.01
_ASLEEP_SECONDS = 0.03
"""So long a call sleeps that surely waits."""
_STUCK_SECONDS = 2.0
"""So long no call sleeps that does not wait for the stream, but for a lock or a thread."""
_POLLING_SECONDS = 0.3
"""So long a call is watched that may wait by polling: it neither returns nor sleeps."""
_BUSY_SECONDS = 10.0
"""So long a call works at most that does not wait."""


class Gate:
    """A host callback that lets its stream go on only when it is opened. [any thread].

    A plugin whose streams run at once calls it while it is enqueued, in the same thread: then it
    stays open, and `is_inline` says so: such a stream cannot be held.

    Nor can streams of a plugin whose callbacks do not work: a check that tests more than what a
    busy stream shows goes on with the gate, which holds nothing.

    Attributes:
        is_inline: The callback ran while it was enqueued.
        reached: Set when the stream got there.
        why_not: Why the plugin did not take the callback, None where it did.
    """

    def __init__(self) -> None:
        self.is_inline = False
        self.reached = threading.Event()
        self.why_not: Blocked | Unsupported | None = None
        self._opened = threading.Event()
        self._maker: int | None = threading.get_ident()

    def work(self) -> None:
        """Wait until it is opened; what the stream calls."""
        self.is_inline = self._maker == threading.get_ident()
        self.reached.set()
        if not self.is_inline:
            self._opened.wait(_GATE_SECONDS)

    def enqueued(self) -> None:
        """From now on its maker's thread may be the stream's as well."""
        self._maker = None

    def require_callback(self) -> None:
        """Go on where the plugin took the callback.

        Raises:
            Blocked: It did not.
            Unsupported: It takes none.
        """
        if self.why_not is not None:
            raise self.why_not

    def open(self) -> None:
        """Let the stream go on. Safe to call twice."""
        self._opened.set()

    def must_block(self, call: Callable[[], Answer]) -> None:
        """Demand that a call works, and returns only when the gate was opened, which is done here.

        Raises `Deviation` where it returned while the gate was shut, or failed.
        """
        watched = WatchedCall(call)
        returned = watched.returns(_ASLEEP_SECONDS, _POLLING_SECONDS)
        self.open()
        answer = watched.result()
        if returned:
            raise Deviation(
                f"{answer.call} returned before the work that it waits for was done",
                expected="it returns when the work is done",
                found="it returned before",
            )
        answer.must_be_ok()

    def must_not_block(self, call: Callable[[], Answer]) -> None:
        """Demand that a call works, and returns while the gate is shut, which stays so.

        Raises `Deviation` where it waits, then the gate is opened; or it failed.
        """
        watched = WatchedCall(call)
        if not watched.returns(_STUCK_SECONDS, _BUSY_SECONDS):
            self.open()
            raise Deviation(
                f"{watched.result().call} waits for work that is blocked",
                expected="it returns at once",
                found="its thread sleeps until the work is done",
            )
        watched.result().must_be_ok()


class WatchedCall:
    """A call in a thread of its own, which may be one that waits.

    Whether it waits is seen by its thread, which sleeps and is not woken: no clock decides, and a
    busy machine changes nothing.
    """

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._value: Any = None
        self._failure: BaseException | None = None
        self._returned = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watched call", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as failure:  # noqa: BLE001  (raised where the result is read)
            self._failure = failure
        self._returned.set()

    def returns(self, asleep_for: float, at_most: float) -> bool:
        """Return whether it returns; not so where it sleeps for so many seconds on end."""
        looks, last = 0, None
        end = time.monotonic() + at_most
        while not self._returned.wait(_LOOK_SECONDS) and time.monotonic() < end:
            look = _sleep(self._thread.native_id)
            looks = looks + 1 if look is not None and look == last else 0
            last = look
            if looks * _LOOK_SECONDS >= asleep_for:
                break
        return self._returned.is_set()

    def result(self) -> Answer:
        """Wait for it, and return or raise what it did."""
        self._returned.wait()
        if self._failure is not None:
            raise self._failure
        answer: Answer = self._value
        return answer


def _sleep(thread_id: int | None) -> str | None:
    """Return what tells one sleep of a thread from the next; None where it sleeps no more."""
    file = Path(f"/proc/self/task/{thread_id}/status")
    try:
        status = file.read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # the thread has just ended
        return None
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return facts["voluntary_ctxt_switches"] if facts["State"].startswith("S") else None
