"""The memory that a stream's work uses, kept alive until the stream has done it; and its end."""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import start_thread
from modular_tf.device.device_core import running_core
from modular_tf.device.streams.event import EventStatus
from modular_tf.errors import ModularTFError, ResourceExhaustedError
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.streams.event import Event

    Used = list[object]
    Batch = list[Used]
    Sealed = list[Any]  # a batch, and its event or None

_BATCH_BYTES = 16 << 20
"""Bytes copied between two events of the stream's own: dropped memories must not pile up."""

COST = _BATCH_BYTES // 64
"""Bytes that any operation counts as, besides: an event costs as much as a short copy."""


class Markable(Protocol):
    """A stream, whose present work an event marks."""

    def record_event(self) -> Event:
        """Return a new event that marks the end of what the stream holds now."""


class InFlight:
    """The buffers and memories of one stream's work. [any thread]

    An operation is in a batch before the plugin has it, so that an interrupt finds everything held
    whenever it comes:

    1. append what it uses, as a list, to `batch`, and enqueue it;
    2. when the plugin has it, or that is not known, call `keep` if `batch` is another one by now;
    3. when the plugin has it, take its bytes and `COST` from `room`; call `end_batch` without any;
    4. when the plugin has refused it, call `release_rejected`.

    A full batch ends with an event; once the plugin says that this is COMPLETE, the batch is
    dropped. Where it says that it failed, or cannot make an event, all is kept until the stream is
    known to be done or is destroyed. No lock is held while the plugin is called, which may wait for
    a callback that uses the stream.
    """

    __slots__ = ("_drops", "_lock", "batch", "room", "sealed")

    def __init__(self) -> None:
        # what the last operations use; another thread may seal it at any time
        self.batch: Batch = []
        # bytes that fit into it; about, where several threads feed the stream
        self.room = _BATCH_BYTES
        # batches that the stream may not have passed, in its order
        self.sealed: deque[Sealed] = deque()
        self._lock = ForkLock()
        self._drops = False

    def keep(self, batch: Batch, used: Used) -> None:
        """Keep what an operation uses, also if its batch was sealed before it was enqueued.

        `batch` is `self.batch` as it was before the operation was enqueued; it has `used`.
        """
        while self.batch is not batch:
            batch = self.batch
            batch.append(used)

    def release_rejected(self, used: Used) -> None:
        """Release what an operation uses that the plugin has rejected."""
        used.clear()
        with suppress(ValueError):  # sealed meanwhile, with its batch
            self.batch.remove(used)  # or another one without content, whose thread removes this

    def end_batch(self, stream: Markable) -> None:
        """Mark the batch for release when the stream has passed it; release those it has passed."""
        self.release_passed()
        self.mark(self.seal(), stream)

    def seal(self) -> Sealed | None:
        """End the batch; return it, or the one before where it is empty, None without any.

        It may be dropped when the stream has passed what it holds now.
        """
        with self._lock:
            batch = self.batch
            if not batch:
                return self.sealed[-1] if self.sealed else None
            sealed: Sealed = [batch, None]
            self.sealed.append(sealed)  # first: an interrupt must find the batch held
            if self.batch is batch:  # not sealed by a signal handler meanwhile
                self.batch, self.room = [], _BATCH_BYTES
            return sealed

    def mark(self, sealed: Sealed | None, stream: Markable) -> None:
        """Mark a sealed batch for release when the stream has passed its present work."""
        if sealed is None:
            return
        with suppress(ModularTFError):
            sealed[1] = stream.record_event()

    def release_passed(self) -> bool:
        """Release the batches that the stream has passed; return whether there were any."""
        dropped = False
        while (first := self._first_sealed()) is not None and _is_passed(first[1]):
            if not self.release_through(first):
                break
            dropped = True
        return dropped

    def _first_sealed(self) -> Sealed | None:
        try:
            return self.sealed[0]
        except IndexError:
            return None

    def release_through(self, sealed: Sealed | None) -> bool:
        """Release a sealed batch and all before it, which the stream has passed.

        Returns whether there was anything; False where this thread is in the middle of it.
        """
        with self._lock:
            held = self.sealed
            if self._drops or not held:
                return False
            passed = [held.popleft()] if held[0] is sealed else self._take_through(sealed)
        _empty(passed)  # without the lock: the plugin gets its memory back
        return bool(passed)

    def _take_through(self, sealed: Sealed | None) -> list[Sealed]:
        if not any(each is sealed for each in self.sealed):
            return []
        self._drops = True  # a signal handler must not take the one that is looked for
        taken: list[Sealed] = []
        try:
            while not taken or taken[-1] is not sealed:
                taken.append(self.sealed.popleft())
        finally:
            self._drops = False
        return taken

    def release_all(self) -> None:
        """Release everything: the stream is done and gets no more work."""
        held, last = self.sealed.copy(), self.batch
        self.batch = []
        self.sealed.clear()
        _empty([*held, [last, None]])

    def is_busy(self) -> bool:
        """Return whether the stream may still use any of it."""
        return bool(self.batch or self.sealed)

    def __len__(self) -> int:
        return len(self.batch) + sum(len(batch) for batch, _ in self.sealed.copy())


def _empty(passed: list[Sealed]) -> None:
    """Release what batches hold, also where frames of a failed wait hold the batches.

    CPython crashes where its collector finds a memoryview together with the one who uses its
    buffer. What an operation uses stays a list, since another thread may be about to keep it again.
    """
    for batch, _ in passed:
        batch.clear()


def _is_passed(event: Event | None) -> bool:
    try:
        return event is not None and event.status is EventStatus.COMPLETE
    except ModularTFError:
        return False


def end_of_stream(in_flight: InFlight, kept: set[InFlight]) -> Callable[[Any], None]:
    """Return a function that destroys a stream: waits for its copies, then releases their buffers.

    Plugins may wait for the stream's work in destroy_stream, so a callback, which some of that work
    may wait for, leaves it to a thread. What the copies use stays in `kept` as long as they may use
    it: also where the end is interrupted, or left to the device, which is being closed.
    """
    core = lib

    def end(native: Any) -> None:
        try:
            done = not len(in_flight) or _is_done(core, native)
        finally:
            core.mtf_stream_free(native)
        if done:
            kept.discard(in_flight)
            in_flight.release_all()

    def end_or_leave(native: Any) -> None:
        if running_core() is None or sys.is_finalizing():
            end(native)
        else:
            _leave(end, native)

    return end_or_leave


def _is_done(core: Any, native: Any) -> bool:
    """Return whether the stream is done; False if closing its device waits for it instead."""
    error = core.mtf_stream_block_until_done(native)
    try:
        return not error or not error.closed
    finally:
        core.mtf_error_free(error)


def _leave(end: Callable[[Any], None], native: Any) -> None:
    """Destroy a stream on a thread; without one it stays until its device is closed."""
    thread = threading.Thread(target=end, args=(native,), name="end of a stream", daemon=True)
    with suppress(ResourceExhaustedError):
        start_thread(thread)
