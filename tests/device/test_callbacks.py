"""Host callbacks into Python: order, errors, and every way to lock up that was thought of."""

from __future__ import annotations

import gc
import re
import threading
import weakref

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.device.streams.timer import HostClockTimer
from modular_tf.errors import (
    ClosedError,
    DataLossError,
    DeadlineExceededError,
    FailedPreconditionError,
    InternalError,
    ResourceExhaustedError,
    error_class,
)
from tests.device.recording import Callbacks
from tests.fixtures.interrupts import Interrupt
from tests.fixtures.thread_starts import FAILURES


def test_callbacks_run_in_the_streams_order(host_device):
    stream, memory, seen = host_device.create_stream(), host_device.allocate(4), []
    out = bytearray(4)
    for value in range(20):
        stream.memset(memory, value)
        stream.memcpy_dtoh(out, memory)
        stream.add_callback(lambda: seen.append(out[0]))
    stream.block_until_done()
    assert seen == list(range(20))


@pytest.mark.parametrize("how", [Callbacks.AT_ONCE, Callbacks.ON_THREAD])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ZeroDivisionError("by 0"), Code.INTERNAL),
        (DataLossError("it is gone \udcff"), Code.DATA_LOSS),
        *((kind(), Code.INTERNAL) for kind in (KeyboardInterrupt, SystemExit, GeneratorExit)),
    ],
)
def test_what_a_callback_raises_is_the_streams_error(recording, device, how, error, code):
    def fail():
        raise error

    recording.call_back(how)
    stream, seen = device.create_stream(), []
    stream.add_callback(fail)
    if how is Callbacks.ON_THREAD:
        recording.join()
        assert recording.calls[-1] == f"callback {int(code)}"  # the plugin gets it
    assert stream.status is code
    with pytest.raises(error_class(code), match=f"{type(error).__name__}|it is gone") as caught:
        stream.block_until_done()
    assert caught.value.__cause__ is (None if code is Code.DATA_LOSS else error)
    stream.add_callback(lambda: seen.append(1))
    if how is Callbacks.ON_THREAD:
        recording.join()
    assert seen == [1]
    assert device.create_stream().status is Code.OK


@pytest.mark.parametrize("how", [Callbacks.REFUSED, Callbacks.REFUSED_AND_CALLED])
def test_a_refused_callback_is_an_error_and_never_called(recording, device, how):
    recording.call_back(how)
    stream, seen = device.create_stream(), []
    with pytest.raises(InternalError, match="host_callback returned 0"):
        stream.add_callback(lambda: seen.append(1))
    if how is Callbacks.REFUSED_AND_CALLED:
        recording.call_late()
        assert recording.calls[-1] == "callback 1"
    assert (seen, stream.status) == ([], Code.OK)


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


def test_a_stream_that_is_dropped_in_a_callback_does_not_wait_for_it(
    thread_starts, recording, device
):
    """Without a thread to end it in, it stays until its device ends."""
    recording.call_back(Callbacks.ON_THREAD)
    stream, streams = device.create_stream(), [device.create_stream()]

    def drop():
        thread_starts.fail("no thread left", "end of a stream")
        streams.clear()

    stream.add_callback(drop)
    recording.join()
    stream.block_until_done()

    assert thread_starts.has_failed
    assert recording.count("destroy_stream") == 0


def test_a_plugin_that_calls_twice_is_heard_once(recording, device):
    recording.call_back(Callbacks.TWICE)
    stream, seen = device.create_stream(), []
    stream.add_callback(lambda: seen.append(1))
    assert seen == [1]


def test_a_callback_that_is_never_called_is_released_in_the_end(recording):
    def function():
        raise AssertionError("called")

    recording.call_back(Callbacks.DROPPED)
    watched = weakref.ref(function)
    with recording.devices() as [device, _]:
        stream = device.create_stream()
        stream.add_callback(function)
        del function
        stream.close()
        assert watched() is not None
    gc.collect()
    assert watched() is None


# -- no way to lock up -------------------------------------------------------------------------


class World:
    """A stream that is about to call back, another one that waits for it, and a third."""

    def __init__(self, device):
        self.stream, self.waiting, self.other = (device.create_stream() for _ in range(3))
        self.memory, self.data = device.allocate(8), bytearray(b"former!!")
        device.memcpy_htod(self.memory, self.data)

    def enqueue(self):
        self.data[:] = b"enqueued"
        self.other.memcpy_htod(self.memory, self.data)
        self.stream.wait_event(self.other.record_event())
        self.stream.add_callback(lambda: None)

    def wait_for_a_while(self):
        self.other.record_event().wait(60)
        with pytest.raises(DeadlineExceededError):
            self.stream.record_event().wait(0)

    def drop_what_waits(self):
        self.waiting.memcpy_htod(self.memory, self.data)
        self.waiting = None
        self.data[:] = b"by then!"  # the copy runs after the callback

    def close_the_stream(self):
        self.stream.close()


STEPS = World.enqueue, World.wait_for_a_while, World.drop_what_waits, World.close_the_stream


@pytest.mark.parametrize("step", STEPS)
def test_a_callback_may_use_streams(host_device, step):
    world, go_on, raised = World(host_device), threading.Event(), []

    def call():
        go_on.wait(60)
        try:
            step(world)
        except BaseException as error:
            raised.append(error)
            raise

    world.stream.add_callback(call)
    world.waiting.wait_for(world.stream)
    go_on.set()
    for _ in range(2):  # the first one need not wait for what the callback enqueues meanwhile
        host_device.synchronize()
    out = bytearray(8)
    host_device.memcpy_dtoh(out, world.memory)

    assert raised == []
    assert out == world.data


def test_a_callback_that_is_called_at_once_may_add_another(device):
    stream, seen = device.create_stream(), []
    stream.add_callback(lambda: stream.add_callback(lambda: seen.append(1)))
    assert seen == [1]


def test_callbacks_of_two_streams_may_wait_for_each_other(host_device):
    one, two, met = host_device.create_stream(), host_device.create_stream(), threading.Barrier(2)
    one.add_callback(met.wait)
    two.add_callback(met.wait)
    host_device.synchronize()
    assert (one.status, two.status) == (Code.OK, Code.OK)


def test_waiting_for_what_may_wait_for_the_callback_is_refused(host_device):
    stream, ready, caught = host_device.context.compute, threading.Event(), []
    timers = HostClockTimer(host_device.executor), host_device.create_timer()
    for timer in timers:
        timer.start(stream)

    def call():
        ready.wait()
        for wait in waits:
            with pytest.raises(FailedPreconditionError) as error:
                wait()
            caught.append(error.value)

    stream.add_callback(call)
    event = stream.record_event()
    for timer in timers:
        timer.stop(stream)
    waits = [
        stream.block_until_done, host_device.create_stream().block_until_done, event.wait,
        event.block, lambda: timers[0].nanoseconds, lambda: timers[1].nanoseconds,
        lambda: host_device.put(b"abcd"), host_device.synchronize, host_device.factory.close,
        host_device.executor.close,
    ]  # fmt: skip
    ready.set()
    stream.block_until_done()
    says = " in a host callback of CPU:0 may wait for work that waits for the callback"
    assert [says in error.message for error in caught] == [True] * len(waits)
    assert f"block_until_done{says}; call it when the callback has returned" in caught[1].message
    assert [error.operation for error in caught[-2:]] == ["close", "close"]
    assert not host_device.executor.closed


@pytest.mark.parametrize("end", ["the stream", "its device"])
def test_callbacks_are_called_before_the_end(host_device, end):
    seen, stream, go_on = [], host_device.create_stream(), threading.Event()
    stream.add_callback(go_on.wait)
    for value in range(10):
        stream.add_callback(lambda value=value: seen.append(value))
    last = stream.record_event()
    threading.Timer(0.01, go_on.set).start()
    if end == "its device":
        host_device.factory.close()
    else:
        stream.close()
        del stream
        last.wait()
    assert seen == list(range(10))


def test_using_a_closing_device_in_a_callback_fails_as_closed(host_device):
    stream, entered, done = host_device.create_stream(), threading.Event(), threading.Event()
    caught = []

    def use():
        entered.set()
        while not host_device.executor.closed:
            pass
        with pytest.raises(ClosedError) as error:
            host_device.create_event()
        caught.append(error)
        done.set()

    stream.add_callback(use)
    entered.wait()
    host_device.factory.close()  # gives the callback up, and does not wait for it
    assert done.wait(60)
    assert len(caught) == 1


_SERVICE = """
from modular_tf.service.service import PluginService
service = PluginService()
service.load("host_device")
device = service.device("CPU:0")
"""
_ENDS = {
    "closed": """
streams = [device.create_stream() for _ in range(4)]
for stream in streams * 50: stream.add_callback(lambda: None)
service.close()
""",
    "left open": """
memory, view = device.allocate(8), device.allocate_host(16).view
cycle = [memory, view, device.create_event()]; cycle.append(cycle)
streams = [device.create_stream() for _ in range(4)]
for stream in streams * 50: stream.add_callback(lambda: None)
""",
    "a dropped stream waits for a callback": """
memory, stream, other = device.allocate(4), device.create_stream(), device.create_stream()
held, go_on, dropped = [other], threading.Event(), threading.Event()
def drop():
    go_on.wait()
    held.clear()
    dropped.set()
    threading.Event().wait()
stream.add_callback(drop)
other.wait_for(stream)
other.memcpy_htod(memory, b"abcd")
del other
go_on.set()
dropped.wait()
""",
    "a plugin calls": """
recording.call_back(Callbacks.ON_THREAD)
last.append(recording.join)
loaded = recording.devices()
stream, entered = loaded.__enter__()[0].create_stream(), threading.Event()
def for_ever():
    entered.set()
    threading.Event().wait()
stream.add_callback(for_ever)
entered.wait()
""",
}


@pytest.mark.parametrize("end", _ENDS)
def test_the_interpreter_ends_with_callbacks_outstanding(in_child, end):
    service = "" if end == "a plugin calls" else _SERVICE
    assert in_child(service + _ENDS[end] + "print('end')\n") == ["end"]
