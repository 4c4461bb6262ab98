"""Destroying a stream after its last reference has gone."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.threads import start_thread
from modular_tf.device.streams.host_callback import running_executor
from modular_tf.errors import ResourceExhaustedError
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.streams.in_flight import InFlight


def stream_end(in_flight: InFlight, kept: set[InFlight]) -> Callable[[Any], None]:
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
        if running_executor() is None or sys.is_finalizing():
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
