"""Waits for a device that does not come to an end: they have timeouts, and signals reach them."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager

import pytest

from modular_tf.errors import DeadlineExceededError
from modular_tf.service.service import PluginService


class Interrupted(Exception):  # noqa: N818  (what a signal handler raises)
    """Raised by the handler."""


@pytest.fixture
def device():
    """The device of the bundled plugin."""
    with PluginService() as service:
        service.load()
        yield service.device("CPU:0")


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


def test_a_stream_that_is_not_done_in_time_is_told(held):
    with pytest.raises(
        DeadlineExceededError, match=r"CPU:0: the stream was not done within 0.05 s"
    ):
        held.block_until_done(timeout=0.05)


def test_a_device_that_is_not_done_in_time_is_told(device, held):
    assert not held.closed
    with pytest.raises(
        DeadlineExceededError, match=r"CPU:0: the stream was not done within 0.05 s"
    ):
        device.synchronize(timeout=0.05)


def test_a_wait_in_time_is_as_without_a_timeout(device):
    stream, memory, found = device.create_stream(), device.allocate(8), bytearray(8)
    stream.memcpy_htod(memory, b"12345678")
    stream.memcpy_dtoh(found, memory)
    stream.block_until_done(timeout=60)
    device.synchronize(timeout=60)
    assert found == b"12345678"


def test_signal_handlers_reach_a_wait_for_a_stream(held):
    with pytest.raises(Interrupted), interrupting():
        held.block_until_done()


def test_signal_handlers_reach_a_wait_for_a_device(device, held):
    assert not held.closed
    with pytest.raises(Interrupted), interrupting():
        device.synchronize()


def test_signal_handlers_reach_an_array_that_waits_for_the_device(device, held):
    array = device.put(b"12345678")
    assert not held.closed
    with pytest.raises(Interrupted), interrupting():
        array.to_bytes()


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
