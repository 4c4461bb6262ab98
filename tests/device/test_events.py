"""Events: what a plugin says of them, and waiting."""

from __future__ import annotations

import threading

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.device.streams.event import EventStatus
from modular_tf.errors import DeadlineExceededError, InternalError, ModularTFError
from tests.device.recording import THROWS


@pytest.mark.parametrize("status", EventStatus)
def test_the_status_is_the_plugins(recording, device, status):
    event = device.create_stream().record_event()
    recording.say_of_events(status)
    assert event.status is status


@pytest.mark.parametrize("number", [77, -1, 4, -(1 << 31)])
def test_a_number_that_is_none_is_unknown(recording, device, number):
    event = device.create_stream().record_event()
    recording.say_of_events(number)
    assert event.status is EventStatus.UNKNOWN


@pytest.mark.parametrize("status", [EventStatus.ERROR, EventStatus.UNKNOWN])
def test_failed_work_is_an_error_of_that_event(recording, device, status):
    event = device.create_stream().record_event()
    recording.say_of_events(status)
    for wait in (event.wait, lambda: event.done):
        with pytest.raises(InternalError, match=status.name) as caught:
            wait()
        assert caught.value.operation == "get_event_status"
    recording.say_of_events(EventStatus.COMPLETE)
    device.create_stream().record_event().wait()


def test_waiting_has_an_end(recording, device):
    event = device.create_stream().record_event()
    recording.say_of_events(EventStatus.PENDING)
    assert not event.done
    for timeout in (0, 0.02, -1):
        with pytest.raises(DeadlineExceededError, match="not reached"):
            event.wait(timeout)
    recording.say_of_events(EventStatus.COMPLETE)
    event.wait(0)


def test_a_throwing_status_is_typed(recording, device):
    event = device.create_stream().record_event()
    recording.fail("get_event_status", THROWS)
    for look in (lambda: event.status, event.wait):
        with pytest.raises(ModularTFError, match="thrown by get_event_status"):
            look()


def test_waiting_leaves_other_threads_alone(host_device):
    stream, go_on, waited = host_device.create_stream(), threading.Event(), threading.Event()
    stream.add_callback(go_on.wait)
    event = stream.record_event()

    def wait():
        event.wait()
        waited.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert event.status is EventStatus.PENDING
    assert not waited.is_set()
    go_on.set()
    waiter.join()
    assert waited.is_set()
    assert event.done


def test_an_event_may_be_recorded_again(host_device):
    stream, event, go_on = (
        host_device.create_stream(),
        host_device.create_event(),
        threading.Event(),
    )
    event.record(stream)
    event.wait()
    stream.add_callback(go_on.wait)
    event.record(stream)
    assert event.status is EventStatus.PENDING
    go_on.set()
    event.wait()


def test_signals_interrupt_a_wait(run_python, recording_library):
    from tests.device.conftest import ROOT

    result = run_python(
        "import signal, sys; sys.path.append(sys.argv[2])\n"
        "from pathlib import Path\n"
        "from tests.device.recording import RecordingPlugin\n"
        "recording = RecordingPlugin(Path(sys.argv[1]))\n"
        "with recording.devices() as [device, _]:\n"
        "    event = device.create_stream().record_event()\n"
        "    recording.say_of_events(2)\n"
        "    signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
        "    def stop(*_): raise KeyboardInterrupt\n"
        "    signal.signal(signal.SIGALRM, stop)\n"
        "    try: event.wait()\n"
        "    except KeyboardInterrupt: print('interrupted')\n",
        recording_library,
        ROOT,
    )
    assert result.stdout == "interrupted\n"


def test_codes_of_creation(recording, device):
    recording.fail("create_event", Code.UNAVAILABLE)
    with pytest.raises(ModularTFError, match="create_event") as caught:
        device.create_event()
    assert caught.value.code is Code.UNAVAILABLE
