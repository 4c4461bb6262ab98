"""Timers, which measure the time between two points of a stream."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from modular_tf.device.device_core import NativeObject, owned, usable
from modular_tf.errors import FailedPreconditionError, InternalError
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.device.device_core import DeviceCore
    from modular_tf.device.streams.event import Event
    from modular_tf.device.streams.stream import Stream


class Timer(Protocol):
    """Measures the work of a stream. One thread at a time; closed by a context manager too."""

    @property
    def emulated(self) -> bool:
        """Whether the host's clock measures, for a plugin without timers."""

    def start(self, stream: Stream) -> None:
        """Begin when the stream gets here; once more begins anew.

        Raises:
            ModularTFError: The plugin's own status.
            ClosedError: The timer or the stream was closed.
        """

    def stop(self, stream: Stream) -> None:
        """End when the stream gets here; errors as in `start`."""

    @property
    def nanoseconds(self) -> int:
        """The time between the two, in ns; waits for the end.

        Raises:
            FailedPreconditionError: It was not stopped since its start, or a callback of the
                device asks.
            ModularTFError: The work in between failed.
            ClosedError: The timer was closed.
        """

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
    """A timer of the plugin's."""

    __slots__ = ("_end",)

    emulated = False

    def __init__(self, core: DeviceCore) -> None:
        new, free = lib.mtf_timer_new, lib.mtf_timer_free
        super().__init__(core, owned(new, free, (core.native,), core, "create_timer"))
        self._end: Event | None = None

    def start(self, stream: Stream) -> None:
        """See `Timer.start`."""
        self._end = None
        self._check(lib.mtf_timer_start(usable(self), usable(stream)), "start_timer")

    def stop(self, stream: Stream) -> None:
        """See `Timer.stop`."""
        self._check(lib.mtf_timer_stop(usable(self), usable(stream)), "stop_timer")
        self._end = stream.record_event()

    @property
    def nanoseconds(self) -> int:
        """See `Timer.nanoseconds`."""
        native = usable(self)
        _stopped(self._end, self._core).wait()
        found = ffi.new("uint64_t *")
        self._check(lib.mtf_timer_nanoseconds(native, found), "nanoseconds")
        return int(found[0])


class HostClockTimer:
    """A timer by the host's clock, for plugins that have none.

    Host callbacks read the clock, so the stream pauses for them, some 50 µs each; it is fit for
    work that takes longer.
    """

    __slots__ = ("_core", "_end", "_is_closed", "_start", "_stop")

    emulated = True

    def __init__(self, core: DeviceCore) -> None:
        self._core = core
        self._is_closed = False
        self._start: list[int] | None = None  # what the clock showed, once the stream got there
        self._stop: list[int] = []
        self._end: Event | None = None

    def start(self, stream: Stream) -> None:
        """See `Timer.start`."""
        self._check_open()
        self._start = self._end = None  # neither is left of before where the stream refuses
        self._start = _read_clock(stream)

    def stop(self, stream: Stream) -> None:
        """See `Timer.stop`."""
        self._check_open()
        self._end = None
        self._stop = _read_clock(stream)
        self._end = stream.record_event()

    @property
    def nanoseconds(self) -> int:
        """See `Timer.nanoseconds`."""
        self._core.refuse_in_callback("nanoseconds")
        self._check_open()
        start: list[int] = _stopped(self._start, self._core)
        stop = self._stop
        _stopped(self._end, self._core).wait()
        if not (start and stop):
            raise InternalError(
                f"{self._core.name}: the stream has passed a timer without calling back"
                f" (plugin {self._core.plugin})",
                plugin=self._core.plugin,
                operation="host_callback",
            )
        return max(0, stop[0] - start[0])

    def close(self) -> None:
        """Drop the measurement."""
        self._is_closed = True
        self._end = None

    def _check_open(self) -> None:
        if self._is_closed:
            raise self._core.closed_error("the timer")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _read_clock(stream: Stream) -> list[int]:
    """Return a list that gets the time when the stream has done its present work."""
    read: list[int] = []
    stream.add_callback(lambda: read.append(time.perf_counter_ns()))
    return read


def _stopped(mark: Any, core: DeviceCore) -> Any:
    if mark is None:
        raise FailedPreconditionError(
            f"{core.name}: a timer was read that has not been started and stopped",
            plugin=core.plugin,
            operation="nanoseconds",
        )
    return mark
