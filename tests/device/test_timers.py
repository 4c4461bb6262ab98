"""Timers: the plugin's own, and the host's clock where it has none."""

from __future__ import annotations

import time

import pytest

from modular_tf.device.streams.event import EventStatus
from modular_tf.device.streams.timer import HostClockTimer, PluginTimer
from modular_tf.errors import ClosedError, FailedPreconditionError, InternalError
from tests.device.recording import Callbacks

SLOTS = ("create_timer", "destroy_timer", "start_timer", "stop_timer")


@pytest.fixture
def clocked(recording):
    """Return a device of a plugin without timers."""
    recording.leave_out(*SLOTS)
    with recording.devices() as [first, _]:
        yield first


@pytest.fixture(params=["device", "clocked"])
def any_device(request):
    """Return a device with timers of its own, and one without."""
    return request.getfixturevalue(request.param)


def test_the_plugins_timer(recording):
    with recording.devices() as [device, second]:
        stream = device.create_stream()
        recording.clear()
        with device.create_timer() as timer:
            assert not timer.emulated
            timer.start(stream)
            timer.stop(stream)
            assert timer.nanoseconds == 1234
        second.create_timer().close()
    shown = ("create_timer", "start", "stop", "get_event_status", "nano", "destroy_timer")
    assert [call for call in recording.calls if call.startswith(shown)] == [
        "create_timer_fns",
        "create_timer",
        "start_timer s1 t1",
        "stop_timer s1 t1",
        "get_event_status e1",
        "nanoseconds t1",
        "destroy_timer t1",
        "create_timer",
        "destroy_timer t2",
        "destroy_timer_fns",
    ]


@pytest.mark.parametrize("kind", [PluginTimer, HostClockTimer])
def test_a_timer_measures_and_waits_for_its_stop(host_device, kind):
    stream, pause = host_device.create_stream(), 0.01
    assert host_device.executor.has_timers()
    with kind(host_device.executor) as timer:
        timer.start(stream)
        stream.add_callback(lambda: time.sleep(pause))
        timer.stop(stream)
        assert timer.nanoseconds >= pause * 1e9


@pytest.mark.parametrize("left_out", [SLOTS, ["stop_timer"], None])
def test_the_hosts_clock_stands_in(recording, left_out):
    if left_out is None:
        recording.without_timer_fns()
    else:
        recording.leave_out(*left_out)
    with recording.devices() as [device, _]:
        stream = device.create_stream()
        with device.create_timer() as timer:
            assert timer.emulated
            timer.start(stream)
            timer.stop(stream)
            assert timer.nanoseconds >= 0
        assert not {"create_timer", "start_timer"} & {call.split()[0] for call in recording.calls}


@pytest.mark.parametrize("failure", ["without calling back", "ERROR"])
def test_a_stream_that_never_calls_back_and_failed_work_have_no_time(recording, clocked, failure):
    if failure == "ERROR":
        recording.say_of_events(EventStatus.ERROR)
    else:
        recording.call_back(Callbacks.DROPPED)
    stream, timer = clocked.create_stream(), clocked.create_timer()
    timer.start(stream)
    timer.stop(stream)
    with pytest.raises(InternalError, match=failure):
        _ = timer.nanoseconds


@pytest.mark.parametrize("fails", ["start", "stop"])
def test_a_timer_that_could_not_go_on_has_no_older_time(clocked, fails):
    stream, closed, timer = clocked.create_stream(), clocked.create_stream(), clocked.create_timer()
    closed.close()
    timer.start(stream)
    timer.stop(stream)
    with pytest.raises(ClosedError):
        getattr(timer, fails)(closed)
    with pytest.raises(FailedPreconditionError, match="not been started"):
        _ = timer.nanoseconds


def test_a_timer_is_read_after_its_stop_and_before_its_close(any_device):
    stream, timer = any_device.create_stream(), any_device.create_timer()
    for _ in range(2):
        with pytest.raises(FailedPreconditionError, match="not been started"):
            _ = timer.nanoseconds
        timer.start(stream)
        timer.stop(stream)
        assert timer.nanoseconds >= 0
        timer.start(stream)
    timer.stop(stream)
    timer.close()
    timer.close()
    for use in (timer.start, timer.stop, lambda _: timer.nanoseconds):
        with pytest.raises(ClosedError, match="imer was closed"):
            use(stream)
    with pytest.raises(ClosedError), timer:
        pass
