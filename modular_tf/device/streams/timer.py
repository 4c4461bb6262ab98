"""Timers, which measure the time between two points of a stream."""

from __future__ import annotations

import time
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.device.native_object import NativeObject, usable
from modular_tf.errors import FailedPreconditionError, ModularTFError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.device.executor import Executor
    from modular_tf.device.streams.event import Event
    from modular_tf.device.streams.stream import Stream

_LOOK_EVERY_S = 0.1
"""How often who waits for a passage looks; mostly a note comes before."""


class Timer(Protocol):
    """Measures the work of a stream. One thread at a time; closed by a context manager too."""

    @property
    def emulated(self) -> bool:
        """Whether the host's clock measures, for a plugin without timers."""

    def start(self, stream: Stream) -> None:
        """Begin when the stream gets here; once more begins anew."""

    def stop(self, stream: Stream) -> None:
        """End when the stream gets here."""

    @property
    def nanoseconds(self) -> int:
        """The time between the two; waits for the end."""

    def close(self) -> None:
        """Destroy the timer; safe to call twice."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class PluginTimer(NativeObject):
    """A timer of the plugin's. [one thread at a time]."""

    __slots__ = ("_end",)

    emulated = False

    def __init__(self, executor: Executor, native: Any) -> None:
        """Wrap a native timer."""
        super().__init__(executor, native)
        self._end: Event | None = None

    def start(self, stream: Stream) -> None:
        """Begin when the stream gets here.

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: The timer or the stream was closed.
        """
        self._end = None
        self._check(lib.mtf_timer_start(usable(self), usable(stream)), "start_timer")

    def stop(self, stream: Stream) -> None:
        """End when the stream gets here; errors as in `start`."""
        self._check(lib.mtf_timer_stop(usable(self), usable(stream)), "stop_timer")
        self._end = stream.record_event()

    @property
    def nanoseconds(self) -> int:
        """The time between the two, in ns; waits for the end.

        Raises:
            FailedPreconditionError: It was not stopped since its start, or a callback of the
                device asks.
            ModularTFError: The work in between failed.
            ClosedError: The timer was closed.
        """
        native = usable(self)
        _stopped(self._end, self._executor).wait()
        found = ffi.new("uint64_t *")
        self._check(lib.mtf_timer_nanoseconds(native, found), "nanoseconds")
        return int(found[0])


class HostClockTimer:
    """A timer by the host's clock, for plugins that have none. [one thread at a time].

    The clock is read when the host learns that the stream has passed an event, which is some
    10 µs to 1 ms late; so it is fit for work that takes longer.
    """

    __slots__ = ("_end", "_executor", "_start")

    emulated = True

    def __init__(self, executor: Executor) -> None:
        """Create a timer; the plugin is not called."""
        self._executor = executor
        self._start: _Passage | None = None
        self._end: _Passage | None = None

    def start(self, stream: Stream) -> None:
        """Begin when the stream gets here.

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: The stream was closed.
        """
        self._end = None
        self._start = _Passage(self._executor, stream)

    def stop(self, stream: Stream) -> None:
        """End when the stream gets here; errors as in `start`."""
        self._end = _Passage(self._executor, stream)

    @property
    def nanoseconds(self) -> int:
        """The time between the two, in ns; waits for the end.

        Raises:
            FailedPreconditionError: It was not stopped since its start, or a callback of the
                device asks.
            ModularTFError: The work in between failed.
        """
        self._executor.refuse_in_callback("nanoseconds")
        start = _stopped(self._start, self._executor)
        end = _stopped(self._end, self._executor)
        took: int = end.wait() - start.wait()
        return max(0, took)

    def close(self) -> None:
        """Drop the measurement. Safe to call twice."""
        self._start = self._end = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


class _Passage:
    """The time at which a stream passed an event."""

    def __init__(self, executor: Executor, stream: Stream) -> None:
        self._time = 0
        self._error: ModularTFError | None = None
        self._is_noted = False
        # No `threading.Event`: an interrupt within its methods leaves its lock taken.
        self._notes: SimpleQueue[None] = SimpleQueue()
        executor.events.when_done(stream.record_event(), self._note)

    def _note(self, error: ModularTFError | None) -> None:
        self._time = time.perf_counter_ns()
        self._error = error
        self._is_noted = True
        self._notes.put(None)

    def wait(self) -> int:
        while not self._is_noted:  # another thread may have taken the note
            with suppress(Empty):
                self._notes.get(timeout=_LOOK_EVERY_S)
        if self._error is not None:
            raise self._error
        return self._time


def _stopped(mark: Any, executor: Executor) -> Any:
    if mark is None:
        raise FailedPreconditionError(
            f"{executor.name}: a timer was read that has not been started and stopped",
            plugin=executor.plugin,
            operation="nanoseconds",
        )
    return mark
