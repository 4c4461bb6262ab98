"""Timers: the plugin's own, and the host's clock where it has none."""

from __future__ import annotations

import threading
import time

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.errors import (
    ClosedError,
    FailedPreconditionError,
    InternalError,
    ModularTFError,
    UnavailableError,
)
from tests.device.recording import THROWS, Callbacks

SLOTS = ("create_timer", "destroy_timer", "start_timer", "stop_timer")


def test_the_plugins_timer(recording, device):
    stream = device.create_stream()
    recording.clear()
    with device.create_timer() as timer:
        assert not timer.emulated
        timer.start(stream)
        timer.stop(stream)
        assert timer.nanoseconds == 1234
    assert [call for call in recording.calls if "event" not in call] == [
        "create_timer_fns",
        "create_timer",
        "start_timer s1 t1",
        "stop_timer s1 t1",
        "nanoseconds t1",
        "destroy_timer t1",
    ]


def test_the_timer_functions_are_had_once(recording):
    with recording.devices() as [first, second]:
        assert recording.count("create_timer_fns") == 0
        for device in (first, first, second):
            device.create_timer()
    assert recording.count("create_timer_fns") == 1
    assert recording.count("destroy_timer_fns") == 1
    assert recording.count("destroy_timer") == 3


def test_the_host_devices_timer_measures(host_device):
    stream, pause = host_device.create_stream(), 0.01
    with host_device.create_timer() as timer:
        timer.start(stream)
        stream.add_callback(lambda: time.sleep(pause))
        timer.stop(stream)
        assert timer.nanoseconds >= pause * 1e9


def leave_out_slots(recording):
    recording.leave_out(*SLOTS)


def leave_out_one_slot(recording):
    recording.leave_out("stop_timer")


def leave_out_functions(recording):
    recording.without_timer_fns()


@pytest.mark.parametrize("leave_out", [leave_out_slots, leave_out_one_slot, leave_out_functions])
def test_the_hosts_clock_stands_in(recording, leave_out):
    leave_out(recording)
    with recording.devices() as [device, _]:
        stream = device.create_stream()
        with device.create_timer() as timer:
            assert timer.emulated
            timer.start(stream)
            timer.stop(stream)
            assert timer.nanoseconds >= 0
        assert not {"create_timer", "start_timer"} & {call.split()[0] for call in recording.calls}


def test_the_hosts_clock_measures_what_the_stream_does(recording):
    recording.leave_out(*SLOTS)
    recording.call_back(Callbacks.ON_THREAD)
    with recording.devices() as [device, _]:
        stream, timer, pause = device.create_stream(), device.create_timer(), 0.01
        timer.start(stream)
        recording.join()
        stream.add_callback(lambda: time.sleep(pause))
        recording.join()
        timer.stop(stream)
        recording.join()
        assert timer.nanoseconds >= pause * 1e9


def test_the_hosts_clock_waits_for_the_stream(recording):
    recording.leave_out(*SLOTS)
    with recording.devices() as [device, _]:
        stream, timer = device.create_stream(), device.create_timer()
        timer.start(stream)
        recording.say_of_events(2)
        timer.stop(stream)
        found = []
        reader = threading.Thread(target=lambda: found.append(timer.nanoseconds))
        reader.start()
        time.sleep(0.01)
        assert found == []
        recording.say_of_events(3)
        reader.join()
        assert found[0] >= 0


def test_a_stream_that_never_calls_back_has_no_time(recording):
    recording.leave_out(*SLOTS)
    recording.call_back(Callbacks.DROPPED)
    with recording.devices() as [device, _]:
        stream, timer = device.create_stream(), device.create_timer()
        timer.start(stream)
        timer.stop(stream)
        with pytest.raises(InternalError, match="without calling back"):
            _ = timer.nanoseconds


def test_failed_work_has_no_time(recording):
    recording.leave_out(*SLOTS)
    with recording.devices() as [device, _]:
        stream, timer = device.create_stream(), device.create_timer()
        recording.say_of_events(1)
        timer.start(stream)
        timer.stop(stream)
        with pytest.raises(InternalError, match="ERROR"):
            _ = timer.nanoseconds


@pytest.mark.parametrize("emulated", [False, True])
def test_a_timer_is_read_after_its_stop(recording, emulated):
    if emulated:
        recording.leave_out(*SLOTS)
    with recording.devices() as [device, _]:
        stream, timer = device.create_stream(), device.create_timer()
        with pytest.raises(FailedPreconditionError, match="not been started"):
            _ = timer.nanoseconds
        timer.start(stream)
        timer.stop(stream)
        timer.start(stream)
        with pytest.raises(FailedPreconditionError, match="not been started"):
            _ = timer.nanoseconds


@pytest.mark.parametrize("emulated", [False, True])
def test_a_closed_timer_is_refused(recording, emulated):
    if emulated:
        recording.leave_out(*SLOTS)
    with recording.devices() as [device, _]:
        stream, timer = device.create_stream(), device.create_timer()
        timer.start(stream)
        timer.stop(stream)
        timer.close()
        timer.close()
        for use in (timer.start, timer.stop, lambda _: timer.nanoseconds):
            with pytest.raises(ClosedError, match="imer was closed"):
                use(stream)
        with pytest.raises(ClosedError), timer:
            pass


@pytest.mark.parametrize("fails", ["start", "stop"])
def test_a_timer_that_could_not_go_on_has_no_older_time(recording, fails):
    recording.leave_out(*SLOTS)
    with recording.devices() as [device, _]:
        stream, closed, timer = (
            device.create_stream(),
            device.create_stream(),
            device.create_timer(),
        )
        closed.close()
        timer.start(stream)
        timer.stop(stream)
        with pytest.raises(ClosedError):
            getattr(timer, fails)(closed)
        if fails == "start":
            timer.stop(stream)
        with pytest.raises(FailedPreconditionError, match="not been started"):
            _ = timer.nanoseconds


@pytest.mark.parametrize("slot", ["create_timer_fns", "create_timer", "start_timer", "stop_timer"])
def test_failures_are_typed_and_pass(recording, device, slot):
    def measure():
        stream, timer = device.create_stream(), device.create_timer()
        timer.start(stream)
        timer.stop(stream)
        return timer.nanoseconds

    recording.fail(slot, Code.UNAVAILABLE)
    with pytest.raises(UnavailableError, match=slot):
        measure()
    recording.heal()
    assert measure() == 1234


def test_a_throwing_reading_is_typed(recording, device):
    stream, timer = device.create_stream(), device.create_timer()
    timer.start(stream)
    timer.stop(stream)
    recording.fail("nanoseconds", THROWS)
    with pytest.raises(ModularTFError, match="thrown by nanoseconds"):
        _ = timer.nanoseconds
    timer.close()
    timer.close()
    with pytest.raises(ClosedError, match="PluginTimer"):
        timer.start(stream)
