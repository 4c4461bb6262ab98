"""The end of a stream that nobody has any more."""

from __future__ import annotations

import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.device.host_callback import running_executor
from modular_tf.errors import ResourceExhaustedError
from modular_tf.native.ffi import lib
from modular_tf.threads import start_thread

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.in_flight import InFlight


def stream_end(in_flight: InFlight) -> Callable[[Any], None]:
    """Return what destroys a stream: first its copies end, then their buffers are let go.

    Plugins may wait for the stream's work in destroy_stream, so a callback, which some of that
    work may wait for, leaves it to a thread.
    """
    core = lib

    def end(native: Any) -> None:
        if len(in_flight):
            core.mtf_error_free(core.mtf_stream_block_until_done(native))
        core.mtf_stream_free(native)
        in_flight.drop_all()

    def end_or_leave(native: Any) -> None:
        if running_executor() is None or sys.is_finalizing():
            end(native)
        else:
            _leave(end, native)

    return end_or_leave


def _leave(end: Callable[[Any], None], native: Any) -> None:
    """Leave an end to a thread; where there can be none, the stream stays until its device ends."""
    thread = threading.Thread(target=end, args=(native,), name="end of a stream", daemon=True)
    with suppress(ResourceExhaustedError):
        start_thread(thread)
