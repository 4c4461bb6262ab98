"""Closing devices while others work with what is theirs: nothing is used after its end."""

from __future__ import annotations

import threading
import time
import weakref

import pytest

from modular_tf.errors import ClosedError, FailedPreconditionError, ModularTFError
from tests.device.conftest import device_of

SIZE = 4096


def started(function):
    """Call a function in a thread; what it raises is in `errors` of the thread."""
    errors = []

    def run():
        try:
            function()
        except ModularTFError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.errors = errors
    thread.start()
    return thread


def give_time():
    """Let other threads come to where they wait, or to where they must not come."""
    time.sleep(0.05)


class World:
    """The two devices of the plugin; the second one works with what belongs to the first."""

    def __init__(self, first, second):
        self.second = second
        self.theirs, self.ours = first.allocate(SIZE), second.allocate(SIZE)
        self.stream, self.their_stream = second.create_stream(), first.create_stream()
        self.event = self.their_stream.record_event()
        self.timer = first.create_timer()
        self.event.wait()


QUEUED = {
    "memcpy_htod": lambda w: w.stream.memcpy_htod(w.theirs, bytes(SIZE)),
    "memcpy_dtoh": lambda w: w.stream.memcpy_dtoh(bytearray(SIZE), w.theirs),
    "memcpy_dtod": lambda w: w.stream.memcpy_dtod(w.ours, w.theirs),
    "memcpy_dtod to": lambda w: w.stream.memcpy_dtod(w.theirs, w.ours),
    "mem_zero": lambda w: w.stream.mem_zero(w.theirs),
    "memset": lambda w: w.stream.memset(w.theirs, 1),
    "memset32": lambda w: w.stream.memset32(w.theirs, 1),
}
MARKS = {
    "create_stream_dependency": lambda w: w.stream.wait_for(w.their_stream),
    "wait_for_event": lambda w: w.stream.wait_event(w.event),
    "record_event": lambda w: w.event.record(w.stream),
    "start_timer": lambda w: w.timer.start(w.stream),
    "stop_timer": lambda w: w.timer.stop(w.stream),
}
AT_ONCE = {
    "sync_memcpy_htod": lambda w: w.second.memcpy_htod(w.theirs, bytes(SIZE)),
    "sync_memcpy_dtoh": lambda w: w.second.memcpy_dtoh(bytearray(SIZE), w.theirs),
    "sync_memcpy_dtod": lambda w: w.second.memcpy_dtod(w.ours, w.theirs),
    "sync_memcpy_dtod to": lambda w: w.second.memcpy_dtod(w.theirs, w.ours),
}
ALL = QUEUED | MARKS | AT_ONCE


@pytest.mark.parametrize("name", ALL)
def test_what_a_call_is_given_outlasts_it(lifetime, name):
    slot = name.split()[0]
    with lifetime.devices() as [first, second]:
        world = World(first, second)
        lifetime.hold(slot)
        caller = started(lambda: ALL[name](world))
        lifetime.wait_until_held(slot, caller)
        closer = started(first.executor.close)
        give_time()
        assert closer.is_alive()
        lifetime.let_go(slot)
        caller.join()
        closer.join()
        assert [*caller.errors, *closer.errors] == []
        assert first.executor.closed


@pytest.mark.parametrize("name", QUEUED)
def test_what_queued_work_uses_outlasts_it(lifetime, name):
    with lifetime.devices() as [first, second]:
        world = World(first, second)
        lifetime.hold("work")
        QUEUED[name](world)
        closer = started(first.executor.close)
        give_time()
        assert lifetime.alive("device memory") == 2
        lifetime.let_go("work")
        closer.join()
        assert lifetime.alive("device memory") == 1
        world.stream.block_until_done()


class Buffer(bytearray):
    """One that can be watched."""


def test_what_a_stream_writes_that_is_dropped_during_a_close_outlasts_the_work(lifetime):
    with lifetime.devices() as [device, _]:
        stream, buffer = device.create_stream(), Buffer(SIZE)
        watched = weakref.ref(buffer)
        lifetime.hold("work")
        stream.memcpy_dtoh(buffer, device.allocate(SIZE))
        closer = started(device.executor.close)
        while not device.executor.closed:
            give_time()
        del stream, buffer
        assert watched() is not None
        lifetime.let_go("work")
        closer.join()
        assert closer.errors == []
    assert watched() is None


def test_two_devices_that_use_each_others_memory_may_close_at_once(lifetime):
    with lifetime.devices() as [first, second]:
        theirs, ours = first.allocate(SIZE), second.allocate(SIZE)
        streams = first.create_stream(), second.create_stream()
        lifetime.hold("work")
        for stream in streams:
            stream.memcpy_dtod(ours, theirs)
            stream.memcpy_dtod(theirs, ours)
        closers = [started(device.executor.close) for device in (first, second)]
        give_time()
        lifetime.let_go("work")
        for closer in closers:
            closer.join(30)
            assert not closer.is_alive()
            assert closer.errors == []


def test_who_closes_second_waits_for_the_first(lifetime):
    with lifetime.platform() as platform:
        device = device_of(platform)
        stream = device.create_stream()
        lifetime.hold("destroy_stream")
        first = started(device.executor.close)
        lifetime.wait_until_held("destroy_stream")
        second = started(platform.close)
        give_time()
        assert second.is_alive()
        lifetime.let_go("destroy_stream")
        first.join()
        second.join()
        assert [*first.errors, *second.errors] == []
        assert stream.closed


def test_a_device_that_is_being_created_is_closed_too(lifetime):
    made = []
    with lifetime.platform() as platform:
        lifetime.hold("create_device")
        creator = started(lambda: made.append(platform.executor(0)))
        lifetime.wait_until_held("create_device")
        closer = started(platform.close)
        give_time()
        lifetime.let_go("create_device")
        creator.join()
        closer.join()
        assert closer.errors == []
        assert [type(error) for error in creator.errors] == [ClosedError] * (1 - len(made))
        with pytest.raises(ClosedError, match="was closed"):
            device_of(platform).create_stream()
        with pytest.raises(ClosedError, match="platform LIFETIME_PLATFORM was closed"):
            platform.executor(1)


def test_a_callback_does_not_close_what_waits_for_it(lifetime):
    """It runs on a device of another platform, which works with memory of this one."""
    with lifetime.platform() as other, lifetime.devices() as [first, _]:
        stream, refused = device_of(other, 1).create_stream(), []
        stream.memcpy_htod(first.allocate(SIZE), bytes(SIZE))

        def close():
            for close in (first.executor.close, first.factory.close):
                with pytest.raises(FailedPreconditionError, match="callback") as caught:
                    close()
                refused.append(caught.value.operation)

        stream.add_callback(close)
        stream.block_until_done()
        assert refused == ["close", "close"]
        assert not first.executor.closed
