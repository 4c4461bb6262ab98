"""Holding a stream back, and watching calls while it is."""

from __future__ import annotations

import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Blocked, Deviation, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.ground import DeviceGround, Gate
    from modular_tf.check.device.subject import Answer, DeviceSubject, Stream

_LOOK_SECONDS = 0.01
_ASLEEP_SECONDS = 0.03
"""So long a call sleeps that surely waits."""
_STUCK_SECONDS = 2.0
"""So long no call sleeps that does not wait for the stream, but for a lock or a thread."""
_POLLING_SECONDS = 0.3
"""So long a call is watched that may wait by polling: it neither returns nor sleeps."""
_CALLED_SECONDS = 5.0
"""So long the kit waits for a callback that has nothing to wait for."""
_SILENT_SECONDS = 0.2
"""Likewise, when it had to wait in vain before."""
_BUSY_SECONDS = 10.0
"""So long a call works at most that does not wait."""

_CALLS_CALLBACKS = "SE-279"
"""The check that callbacks are called."""

_silent: weakref.WeakSet[DeviceSubject] = weakref.WeakSet()
"""Devices that did not call a callback."""


def held(ground: DeviceGround, stream: Stream) -> Gate:
    """Hold a stream without work until the gate is opened; it is held when this returns.

    Raises:
        Unsupported: Streams of this device run at once, and cannot be held.
        Blocked: Its callbacks do not work, which other checks are about.
    """
    gate = ground.gate(stream)
    gate.require_callback()
    if gate.is_inline:
        raise Unsupported("streams of this device run work at once: none can be blocked")
    patience = _SILENT_SECONDS if ground.subject in _silent else _CALLED_SECONDS
    if not gate.reached.wait(patience):
        _silent.add(ground.subject)
        raise Blocked(f"host_callback took a callback and did not call it: see {_CALLS_CALLBACKS}")
    return gate


class WatchedCall:
    """A call in a thread of its own, which may be one that waits.

    Whether it waits is seen by its thread, which sleeps and is not woken: no clock decides, and a
    busy machine changes nothing.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._value: Any = None
        self._failure: BaseException | None = None
        self._returned = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watched call", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as failure:  # noqa: BLE001  (for whoever asks for the result)
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

    def result(self) -> Any:
        """Wait for it, and return or raise what it did."""
        self._returned.wait()
        if self._failure is not None:
            raise self._failure
        return self._value


def _sleep(thread_id: int | None) -> str | None:
    """Return what tells one sleep of a thread from the next; None where it sleeps no more."""
    file = Path(f"/proc/self/task/{thread_id}/status")
    try:
        status = file.read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, ProcessLookupError):  # the thread has just ended
        return None
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    return facts["voluntary_ctxt_switches"] if facts["State"].startswith("S") else None


def expect_waits(gate: Gate, call: Callable[[], Answer], what: str) -> Answer:
    """Demand that a call returns only when the gate was opened, which is done here.

    Returns:
        What the call returned.

    Raises:
        Deviation: It returned while the gate was shut.
    """
    watched = WatchedCall(call)
    returned = watched.returns(_ASLEEP_SECONDS, _POLLING_SECONDS)
    gate.open()
    answer: Answer = watched.result()
    if returned:
        raise Deviation(
            f"{what} returned before the work that it waits for was done",
            expected="it returns when the work is done",
            found="it returned before",
        )
    return answer


def expect_prompt(gate: Gate, call: Callable[[], Answer], what: str) -> Answer:
    """Demand that a call returns while the gate is shut, which stays so.

    Returns:
        What the call returned.

    Raises:
        Deviation: It waits; then the gate is opened.
    """
    watched = WatchedCall(call)
    if not watched.returns(_STUCK_SECONDS, _BUSY_SECONDS):
        gate.open()
        watched.result()
        raise Deviation(
            f"{what} waits for work that is blocked",
            expected="it returns at once",
            found="its thread sleeps until the work is done",
        )
    answer: Answer = watched.result()
    return answer
