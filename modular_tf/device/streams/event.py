"""Events: marks in streams."""

from __future__ import annotations

import time
from enum import IntEnum
from typing import TYPE_CHECKING

from modular_tf.device.device_core import NativeObject, usable
from modular_tf.errors import DeadlineExceededError, InternalError, ModularTFError, unexpected
from modular_tf.native.ffi import ffi, lib

if TYPE_CHECKING:
    from modular_tf.device.device_core import DeviceCore

SLICE_NS = 50_000_000
"""How long one wait in the native core lasts: then Python looks for signals."""


class EventStatus(IntEnum):
    """The status of an event (SE_EventStatus)."""

    UNKNOWN = 0
    ERROR = 1
    PENDING = 2
    COMPLETE = 3


_STATUSES = tuple(EventStatus)  # a look-up costs a tenth of what making the member costs


class Event(NativeObject):
    """A mark that a stream passes. [any thread]

    It may be recorded again; waiting means the last recording. Methods raise ClosedError where it,
    or its device, was closed, and the plugin's own status as a ModularTFError.
    """

    __slots__ = ()

    @classmethod
    def create(cls, core: DeviceCore) -> Event:
        """Return a new event; see `Device.create_event`."""
        native = lib.mtf_event_new(core.native)
        if not native:
            raise core.failure(lib.mtf_take_error(), "create_event")
        return cls(core, ffi.gc(native, lib.mtf_event_free))

    def record(self, stream: NativeObject) -> None:
        """Mark the end of what the stream holds now."""
        try:
            error = lib.mtf_event_record(self.native, stream.native)
        except (TypeError, AttributeError):
            usable(self)
            usable(stream)
            raise
        if error:
            raise self._core.failure(error, "record_event")

    @property
    def status(self) -> EventStatus:
        """The status now, from the plugin; an invalid number counts as UNKNOWN.

        Raises:
            ModularTFError: The plugin threw.
        """
        native = self.native
        if native is None:
            usable(self)
        return self._status(lib.mtf_event_status(native))

    @property
    def done(self) -> bool:
        """Whether the stream has passed the mark.

        Raises:
            ModularTFError: The work failed: ERROR or UNKNOWN, where TensorFlow aborts.
        """
        return self._is_done(self.status)

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the stream has passed the mark; other Python threads run meanwhile.

        Args:
            timeout: In seconds; None waits as long as it takes.

        Raises:
            DeadlineExceededError: It did not in time.
            ModularTFError: The work failed: ERROR or UNKNOWN, where TensorFlow aborts.
            FailedPreconditionError: Called without a timeout by a callback of this device.
        """
        if timeout is None:
            self._core.refuse_in_callback("wait")
        end = end_of(timeout)
        native = usable(self)
        while not self._is_done(self._status(lib.mtf_event_poll(native, slice_ns(end)))):
            if end is not None and time.monotonic_ns() >= end:
                raise DeadlineExceededError(
                    f"{self._core.name}: the event was not reached within {timeout} s",
                    plugin=self._core.plugin,
                    operation="get_event_status",
                )

    def block(self) -> None:
        """Wait by the plugin's block_host_for_event, which no signal interrupts.

        Raises:
            FailedPreconditionError: Called by a callback of this device.
        """
        self._core.refuse_in_callback("block_host_for_event")
        self._check(lib.mtf_event_block(usable(self)), "block_host_for_event")

    def _status(self, found: int) -> EventStatus:
        if found < 0:
            raise self._core.failure(lib.mtf_take_error(), "get_event_status")
        return _STATUSES[found]

    def _is_done(self, status: EventStatus) -> bool:
        if status is EventStatus.COMPLETE:
            return True
        if status is EventStatus.PENDING:
            return False
        raise self._failure(status)

    def _failure(self, status: EventStatus) -> ModularTFError:
        return InternalError(
            f"{self._core.name}: get_event_status said {status.name}: the work before the"
            f" event failed (plugin {self._core.plugin})",
            plugin=self._core.plugin,
            operation="get_event_status",
        )


def end_of(timeout: float | None) -> int | None:
    """Return when a wait of so many seconds ends, as `time.monotonic_ns` counts; None for never.

    Raises InvalidArgumentError if it is no number of seconds.
    """
    if timeout is None:
        return None
    try:
        return time.monotonic_ns() + int(timeout * 1e9)
    except (TypeError, ValueError, OverflowError):
        raise unexpected(timeout, "timeout", "a number of seconds, or None") from None


def slice_ns(end: int | None) -> int:
    """Return how long one wait in the native core may last; 0 when the time is over."""
    return SLICE_NS if end is None else max(0, min(SLICE_NS, end - time.monotonic_ns()))
