"""Waits for a device that does not come to an end: they have timeouts, and signals reach them."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager

import pytest

from modular_tf.errors import DeadlineExceededError


class Interrupted(Exception):  # noqa: N818  (what a signal handler raises)
    """Raised by the handler."""


@pytest.fixture
def device(host_device):
    return host_device


@pytest.fixture
def held(device):
    """A stream with a copy that waits for a callback."""
    go_on = threading.Event()
    with device.create_stream() as stream, device.allocate(8) as memory:
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
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_is_not_done_in_time_is_an_error(device, held):
    for wait in (held.block_until_done, device.synchronize):
        with pytest.raises(DeadlineExceededError, match=r"CPU:0: the stream was not .* 0.05 s"):
            wait(timeout=0.05)


def test_a_wait_in_time_is_as_without_a_timeout(device):
    stream, memory, found = device.create_stream(), device.allocate(8), bytearray(8)
    stream.memcpy_htod(memory, b"12345678")
    stream.memcpy_dtoh(found, memory)
    stream.block_until_done(timeout=60)
    device.synchronize(timeout=60)
    assert found == b"12345678"


@pytest.mark.parametrize("what", ["stream", "device", "event", "array"])
def test_signal_handlers_reach_a_wait(device, held, what):
    array, event = device.put(b"12345678"), held.record_event()
    waits = {
        "stream": held.block_until_done,
        "device": device.synchronize,
        "event": event.wait,
        "array": array.to_bytes,
    }
    with pytest.raises(Interrupted), interrupting():
        waits[what]()


def test_streams_may_be_made_in_the_middle_of_a_wait_for_the_device(device):
    streams = [device.create_stream() for _ in range(3)]

    def make(_frame, event, _argument):  # as another thread would, or a signal handler
        if event == "call" and len(streams) < 100:
            streams.append(device.create_stream())

    sys.setprofile(make)
    try:
        device.synchronize(60)
    finally:
        sys.setprofile(None)
    assert len(streams) > 3
