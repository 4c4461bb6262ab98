"""Callbacks and timers where the thread that serves them cannot be started, or is interrupted."""

from __future__ import annotations

import re
import time
from contextlib import suppress

import pytest

from modular_tf.errors import InternalError, ResourceExhaustedError
from tests.device.recording import Callbacks
from tests.fixtures.interrupts import Interrupt, interrupt, points
from tests.fixtures.thread_starts import FAILURES

PATIENCE_S = 60.0  # what nobody needs


@pytest.mark.parametrize("how", FAILURES)
def test_a_callback_that_was_refused_is_not_called_and_the_next_one_is(
    how, thread_starts, host_device
):
    stream, called = host_device.create_stream(), []
    thread_starts.fail(how, "callbacks of")
    with pytest.raises((ResourceExhaustedError, Interrupt)) as caught:
        stream.add_callback(lambda: called.append("refused"))
    if caught.type is ResourceExhaustedError:
        assert re.search(r"callbacks of CPU:0.*ulimit -u", str(caught.value))
    stream.block_until_done()  # which waits for no callback that was refused
    stream.add_callback(lambda: called.append("taken"))
    host_device.synchronize()

    assert thread_starts.has_failed
    assert called == ["taken"]


@pytest.mark.parametrize("how", [how for how in FAILURES if "interrupted" not in how])
def test_a_stream_that_is_dropped_in_a_callback_does_not_wait_for_it(
    how, thread_starts, recording, device
):
    """Without a thread to end it in, it stays until its device ends."""
    recording.call_back(Callbacks.ON_THREAD)
    stream = device.create_stream()
    streams = [device.create_stream()]

    def drop():
        thread_starts.fail(how, "end of a stream")
        streams.clear()

    stream.add_callback(drop)
    recording.join()
    stream.block_until_done()

    assert thread_starts.has_failed


@pytest.mark.parametrize("plugin", ["host_device", "recording"])
def test_an_interrupted_callback_is_called_or_forgotten(request, plugin):
    if plugin == "recording":
        request.getfixturevalue(plugin).call_back(Callbacks.AT_ONCE)
    device = request.getfixturevalue({"recording": "device"}.get(plugin, plugin))
    for point in points():
        stream, called = device.create_stream(), []
        more = interrupt(lambda: stream.add_callback(lambda: called.append(1)), point=point)  # noqa: B023
        with suppress(InternalError):  # the interrupt, where it came in the callback
            stream.block_until_done()
        end = time.monotonic() + PATIENCE_S
        while stream._callbacks is not None and stream._callbacks._functions:
            assert time.monotonic() < end, point
        if not more:
            assert called
            break
    assert point
