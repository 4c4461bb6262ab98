"""Waits for a device that does not come to an end: they have timeouts, and signals reach them."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager

import pytest

from modular_tf.errors import DeadlineExceededError


class Interrupted(Exception):  # noqa: N818  (what a signal handler raises)
    """Raised by the handler."""


@pytest.fixture
def held(host_device):
    """A stream with a copy that waits for a callback."""
    go_on = threading.Event()
    with host_device.create_stream() as stream, host_device.allocate(8) as memory:
        stream.add_callback(go_on.wait)
        stream.memcpy_htod(memory, bytes(8))
        try:
            yield stream
        finally:
            go_on.set()
            stream.block_until_done()


@contextmanager
def interrupting():
    """Have a signal handler raise a while after this began."""

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_is_not_done_in_time_is_an_error(host_device, held):
    with host_device.create_stream() as other:
        for wait in (other.block_until_done, other.record_event().wait):
            wait(timeout=60)
    for wait in (held.block_until_done, host_device.synchronize):
        with pytest.raises(DeadlineExceededError, match=r"CPU:0: the stream was not .* 0.05 s"):
            wait(timeout=0.05)


@pytest.mark.parametrize("what", ["stream", "device", "event", "array"])
def test_signal_handlers_reach_a_wait(host_device, held, what):
    array, event = host_device.put(b"12345678"), held.record_event()
    waits = {
        "stream": held.block_until_done,
        "device": host_device.synchronize,
        "event": event.wait,
        "array": array.to_bytes,
    }
    with pytest.raises(Interrupted), interrupting():
        waits[what]()
