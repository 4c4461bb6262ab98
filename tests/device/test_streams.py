"""Streams and events: order, waiting, and the end in any order; failures: test_every_slot.py."""

from __future__ import annotations

import gc
import random
import threading

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.device.factory import PythonDeviceFactory
from modular_tf.device.registry import DeviceRegistry
from modular_tf.device.streams.event import EventStatus
from modular_tf.errors import (
    ClosedError,
    DataLossError,
    DeadlineExceededError,
    InternalError,
    ModularTFError,
    ResourceExhaustedError,
    UnimplementedError,
)
from tests.device.recording import LEAVES_OUTPUTS_ALONE, THROWS


def test_dependencies_and_events_reach_the_plugin(recording, device):
    one, two = device.create_stream(), device.create_stream()
    recording.clear()
    two.wait_for(one)
    event = one.record_event()
    two.wait_event(event)
    event.record(two)
    assert recording.calls == [
        "create_stream_dependency s2 s1",
        "create_event",
        "record_event s1 e1",
        "wait_for_event s2 e1",
        "record_event s2 e1",
    ]


WAIT = ["create_event", "record_event s1 e1", "get_event_status e1"]


@pytest.mark.parametrize(
    ("left_out", "calls"),
    [
        ([], [*WAIT, "block_host_until_done s1", "get_stream_status s1"]),
        (
            ["block_host_until_done"],
            [
                *WAIT,
                "create_event",
                "record_event s1 e2",
                "block_host_for_event e2",
                "destroy_event e2",
                "get_stream_status s1",
            ],
        ),
    ],
    ids=["by the plugin", "by an event"],
)
def test_waiting_by_the_plugin_or_by_an_event(recording, left_out, calls):
    recording.leave_out(*left_out)
    with recording.devices() as [device, _]:
        stream = device.create_stream()
        recording.clear()
        stream.block_until_done()
        assert recording.calls == calls


def test_the_status_of_a_stream(recording, device):
    stream = device.create_stream()
    assert (stream.status, stream.error) == (Code.OK, None)
    recording.fail("get_stream_status", Code.DATA_LOSS)
    assert stream.status is Code.DATA_LOSS
    assert isinstance(stream.error, DataLossError)
    with pytest.raises(DataLossError, match="told to fail"):
        stream.block_until_done()


def test_outputs_that_are_left_alone_are_null_handles(recording, device):
    recording.fail("create_stream", LEAVES_OUTPUTS_ALONE)
    recording.fail("create_event", LEAVES_OUTPUTS_ALONE)
    stream = device.create_stream()
    stream.record_event().wait()
    assert "record_event s0 e0" in recording.calls


def test_null_handles_are_handles(recording):
    recording.give_null_handles()
    with recording.devices() as [device, _]:
        stream, other, memory = device.create_stream(), device.create_stream(), device.allocate(4)
        stream.wait_for(other)
        stream.memcpy_htod(memory, b"abcd")
        stream.record_event().wait()
        stream.block_until_done()
        with device.create_timer() as timer:
            timer.start(stream)
            timer.stop(stream)
            assert timer.nanoseconds == 1234
        stream.close()
    assert recording.count("destroy_stream") == 2
    assert recording.count("destroy_event") == recording.count("create_event")


def test_a_stream_that_cannot_be_made_leaves_nothing(recording):
    with recording.devices() as [device, _]:
        recording.fail("create_stream", Code.RESOURCE_EXHAUSTED)
        with pytest.raises(ResourceExhaustedError):
            _ = device.context.compute
        recording.heal()
        assert len(device.context.streams) == 4
    assert recording.count("destroy_stream") == 4


def test_waiting_leaves_other_threads_alone(host_device):
    stream, go_on, waited = host_device.create_stream(), threading.Event(), threading.Event()
    stream.add_callback(go_on.wait)
    event = stream.record_event()

    def wait():
        event.wait()
        stream.block_until_done()
        waited.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    assert event.status is EventStatus.PENDING
    assert not waited.is_set()
    go_on.set()
    waiter.join()
    assert waited.is_set()
    assert event.done
    assert stream.status is Code.OK


def test_an_internal_error_of_the_core_names_the_plugin(recording, device):
    recording.fail("create_stream", THROWS)
    with pytest.raises(InternalError, match=r"thrown by create_stream \(plugin recording\)"):
        device.create_stream()


def test_python_devices_say_that_they_do_no_work():
    class Factory:
        device_type = "SPECTATOR"
        platform = "SPECTATORS"

        def device_count(self):
            return 1

    registry = DeviceRegistry()
    registry.register(PythonDeviceFactory(Factory(), plugin="mine"), plugin="mine")
    [device] = registry.devices("SPECTATOR")
    with pytest.raises(UnimplementedError, match="mine describes devices"):
        device.create_stream()


# -- events ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reported", "status"),
    [
        *((status, status) for status in EventStatus),
        *((number, EventStatus.UNKNOWN) for number in (77, -1, 4, -(1 << 31))),
    ],
)
def test_the_status_of_an_event_is_the_plugins(recording, device, reported, status):
    event = device.create_stream().record_event()
    recording.say_of_events(reported)
    assert event.status is status


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


def test_waiting_for_an_event_has_an_end(recording, device):
    event = device.create_stream().record_event()
    recording.say_of_events(EventStatus.PENDING)
    assert not event.done
    for timeout in (0, 0.02, -1):
        with pytest.raises(DeadlineExceededError, match="not reached"):
            event.wait(timeout)
    recording.say_of_events(EventStatus.COMPLETE)
    event.wait(0)


def test_an_event_may_be_recorded_again(host_device):
    stream, event = host_device.create_stream(), host_device.create_event()
    go_on = threading.Event()
    event.record(stream)
    event.wait()
    stream.add_callback(go_on.wait)
    event.record(stream)
    assert event.status is EventStatus.PENDING
    go_on.set()
    event.wait()


# -- the end -----------------------------------------------------------------------------------

DESTROYERS = ("destroy_timer", "destroy_event", "destroy_stream", "deallocate")


def test_the_end_of_the_platform_ends_all_in_order(recording):
    with recording.devices() as [device, _]:
        kept = [
            device.allocate(4),
            device.create_stream(),
            device.create_event(),
            device.create_timer(),
        ]
        recording.clear()
    assert [call.split()[0] for call in recording.calls] == [
        "synchronize_all_activity",
        *DESTROYERS,
        "destroy_device",
        "destroy_device_fns",
        "destroy_stream_executor",
        "destroy_timer_fns",
        "destroy_platform",
        "destroy_platform_fns",
    ]
    assert all(one.closed for one in kept)
    for one in kept:
        one.close()
    kept.clear()
    gc.collect()
    assert [recording.count(slot) for slot in DESTROYERS] == [1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(10))
def test_closing_in_any_order_destroys_each_once(recording, seed):
    order = random.Random(seed)
    with recording.devices() as [device, _]:
        made = [device.allocate(4) for _ in range(3)]
        made += [device.create_stream() for _ in range(3)]
        made += [device.create_event() for _ in range(3)]
        made += [device.create_timer() for _ in range(3)]
        order.shuffle(made)
        for one in made[: order.randrange(13)]:
            one.close()
            if order.random() < 0.5:
                one.close()
        del one
    made.clear()
    gc.collect()
    assert [recording.count(slot) for slot in DESTROYERS] == [3, 3, 3, 3]
    assert recording.allocated == 0


def test_dropping_is_closing(recording, device):
    device.create_stream().record_event()
    device.allocate(4)
    gc.collect()
    assert [recording.count(slot) for slot in DESTROYERS] == [0, 1, 1, 1]


def test_after_the_end_everything_is_closed(recording):
    with recording.devices() as [device, _]:
        stream, event, memory = device.create_stream(), device.create_event(), device.allocate(4)
        timer = device.create_timer()
    recording.clear()
    for use in (
        device.create_stream,
        lambda: device.allocate(4),
        lambda: stream.memcpy_htod(memory, b"abcd"),
        stream.record_event,
        stream.block_until_done,
        lambda: stream.add_callback(print),
        lambda: event.status,
        event.wait,
        lambda: timer.start(stream),
        lambda: stream.error,
        device.synchronize,
        device.memory_usage,
    ):
        with pytest.raises(ClosedError):
            use()
    assert recording.calls == []


def test_a_failure_while_all_ends_is_raised_in_the_end(recording):
    recording.fail("synchronize_all_activity", Code.DATA_LOSS)
    with pytest.raises(DataLossError, match="told to fail"), recording.devices() as [device, _]:
        stream = device.create_stream()
    assert stream.closed
    assert recording.calls[-1] == "destroy_platform_fns"
    assert recording.count("destroy_stream") == 1


def test_two_platforms_of_one_plugin_end_apart(recording):
    with recording.devices() as [first, _]:
        kept = first.create_stream()
        with recording.devices() as [again, _]:
            ended = again.create_stream()
        assert ended.closed
        kept.record_event().wait()
        assert recording.count("destroy_device") == 0
    assert recording.count("destroy_device") == 1


def test_work_in_flight_is_done_before_the_end(host_device):
    out = bytearray(8 << 20)
    memory, stream = host_device.allocate(len(out)), host_device.create_stream()
    for value in range(30):
        stream.memset(memory, value)
    stream.memcpy_dtoh(out, memory)
    host_device.factory.close()
    assert out == bytes([29]) * len(out)
    assert stream.closed


def test_calls_of_other_threads_end_before_the_platform(recording):
    with recording.devices() as [device, _]:
        started, errors = threading.Barrier(5), []

        def work():
            stream, memory = device.create_stream(), device.allocate(64)
            started.wait()
            try:
                while True:
                    stream.memcpy_htod(memory, b"x" * 64)
                    stream.record_event().wait()
            except ModularTFError as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        started.wait()
    for thread in threads:
        thread.join()
    assert [type(error) for error in errors] == [ClosedError] * 4
    assert recording.allocated == 0
    assert recording.count("destroy_event") == recording.count("create_event")


def test_a_forked_child_destroys_nothing(in_child):
    lines = in_child(
        "from modular_tf.errors import ClosedError\n"
        "with recording.devices() as [device, other]:\n"
        "    stream, memory = device.create_stream(), device.allocate(8)\n"
        "    pinned = device.allocate_host(8)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        closed = 0\n"
        "        for use in (stream.record_event, device.create_stream, other.create_stream):\n"
        "            try: use()\n"
        "            except ClosedError: closed += 1\n"
        "        pinned.view[:4] = b'mine'\n"
        "        before = len(recording.calls)\n"
        "        stream.close(); memory.close(); pinned.close()\n"
        "        del stream, memory, pinned; gc.collect(); device.factory.close()\n"
        "        os._exit(0 if closed == 3 and len(recording.calls) == before else 1)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "    stream.memcpy_htod(memory, b'still up'); stream.block_until_done()\n"
        "    pinned.close()\n"
        "print(recording.allocated, recording.count('destroy_stream'))\n"
    )
    assert lines == ["0", "0 1"]


def test_the_end_of_the_interpreter_is_quiet(in_child):
    lines = in_child(
        "loaded = recording.devices()\n"
        "device = loaded.__enter__()[0]\n"
        "stream, memory = device.create_stream(), device.allocate(8)\n"
        "event = device.create_event()\n"
        "stream.memcpy_htod(memory, b'inflight')\n"
        "stream.add_callback(lambda: None)\n"
        "view = device.allocate_host(16).view\n"
        "cycle = [stream, memory, event, view]; cycle.append(cycle)\n"
        "print('end')\n"
    )
    assert lines == ["end"]
