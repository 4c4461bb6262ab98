"""Streams and events: order, waiting, and the end in any order; failures: test_every_slot.py."""

from __future__ import annotations

import gc
import random
from types import SimpleNamespace

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
    UnimplementedError,
)


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


@pytest.mark.parametrize(
    ("left_out", "slot"),
    [([], "block_host_until_done"), (["block_host_until_done"], "block_host_for_event")],
)
def test_waiting_by_the_plugin_or_by_an_event(recording, left_out, slot):
    recording.leave_out(*left_out)
    with recording.devices() as [device, _]:
        stream = device.create_stream()
        recording.clear()
        stream.block_until_done()
        assert recording.count(slot) == 1
        assert recording.calls[-1] == "get_stream_status s1"


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


def test_python_devices_say_that_they_do_no_work():
    factory = SimpleNamespace(
        device_type="SPECTATOR", platform="SPECTATORS", device_count=lambda: 1
    )
    registry = DeviceRegistry()
    registry.register(PythonDeviceFactory(factory, plugin="mine"), plugin="mine")
    [device] = registry.devices("SPECTATOR")
    with pytest.raises(UnimplementedError, match="mine describes devices"):
        device.create_stream()


# -- events ------------------------------------------------------------------------------------


def test_the_status_of_an_event_is_the_plugins(recording, device):
    event = device.create_stream().record_event()
    for status in EventStatus:
        recording.say_of_events(status)
        assert event.status is status
    for number in (77, -1, 4, -(1 << 31)):
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


def test_waiting_for_an_event_has_an_end(recording, device):
    event = device.create_stream().record_event()
    recording.say_of_events(EventStatus.PENDING)
    assert not event.done
    for timeout in (0, 0.02, -1):
        with pytest.raises(DeadlineExceededError, match="not reached"):
            event.wait(timeout)
    recording.say_of_events(EventStatus.COMPLETE)
    event.wait(0)


# -- the end; test_closing.py has it in the middle of work -------------------------------------

DESTROYERS = ("destroy_timer", "destroy_event", "destroy_stream", "deallocate")
ONE_OF_EACH = {
    "destroy_timer": lambda device: device.create_timer(),
    "destroy_event": lambda device: device.create_event(),
    "destroy_stream": lambda device: device.create_stream(),
    "deallocate": lambda device: device.allocate(4),
    "host_memory_deallocate": lambda device: device.allocate_host(4),
    "unified_memory_deallocate": lambda device: device.allocate_unified(4),
}
"""What is made of a device, by what the plugin is called with in its end."""


def destroyed(recording):
    return {slot: recording.count(slot) for slot in ONE_OF_EACH}


def test_the_end_of_the_platform_ends_all_in_order(recording):
    with recording.devices() as [device, _]:
        kept = [ONE_OF_EACH[slot](device) for slot in DESTROYERS]
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


@pytest.mark.parametrize("seed", range(5))
def test_closing_in_any_order_destroys_each_once(recording, seed):
    """And nobody holds anything of a device, so that its platform may go, once all is closed."""
    dice = random.Random(seed)
    expected = dict.fromkeys(ONE_OF_EACH, 0)
    with recording.devices() as [device, _]:
        alive = []
        for _ in range(60):
            slot, step = dice.choice([*ONE_OF_EACH]), dice.randrange(5)
            if step < 2 or not alive:
                alive.append((slot, ONE_OF_EACH[slot](device)))
            else:
                slot, ended = alive.pop(dice.randrange(len(alive)))
                expected[slot] += 1
                for _ in range(step - 2):  # none: it is dropped
                    ended.close()
                del ended
            assert destroyed(recording) == expected
            assert [device.executor.is_idle, device.factory.is_idle] == [not alive] * 2
        for slot in [slot for slot, _ in alive]:
            expected[slot] += 1
        alive.clear()
        assert destroyed(recording) == expected
    assert recording.allocated == 0


def test_what_the_host_holds_for_itself_is_nobodys(recording, platform):
    """The streams that every device has, and what an arena keeps."""
    assert platform.is_idle, "it has made nothing"
    recording.use_bfc_allocator()
    with recording.devices() as [device, other]:
        assert len(device.context.streams) == 4
        with device.allocate(1000):
            assert not device.factory.is_idle
        assert recording.allocated > 0
        assert device.factory.is_idle
        with other.allocate(8):
            assert not device.factory.is_idle


def uses_of(device, stream, event, timer, memory):
    return (
        device.create_stream, device.synchronize, device.memory_usage, device.create_timer,
        lambda: device.allocate(4), lambda: device.memcpy_dtoh(bytearray(4), memory),
        lambda: stream.memcpy_htod(memory, b"abcd"), lambda: stream.memcpy_dtod(memory, memory),
        lambda: stream.mem_zero(memory), lambda: stream.memset(memory, 1), stream.record_event,
        stream.block_until_done, lambda: stream.status, lambda: stream.error,
        lambda: stream.add_callback(print), lambda: stream.wait_for(stream),
        lambda: event.status, event.wait, lambda: event.record(stream),
        lambda: timer.start(stream), lambda: timer.stop(stream),
        lambda: memory.part(0, 1), lambda: memory.address,
    )  # fmt: skip


def test_after_the_end_everything_is_closed(recording):
    with recording.devices() as [device, other]:
        stream, memory = device.create_stream(), device.allocate(4)
        made = stream, stream.record_event(), device.create_timer(), memory
        for one in made:
            one.close()
        recording.clear()
        for use in uses_of(device, *made)[5:]:
            with pytest.raises(ClosedError, match="was closed"):
                use()
        assert {call.split()[0] for call in recording.calls} <= {"destroy_event"}
        with pytest.raises(ClosedError, match="the Stream was closed"):
            other.create_stream().wait_for(stream)
        stream, memory = device.create_stream(), device.allocate(4)
        made = stream, stream.record_event(), device.create_timer(), memory
    recording.clear()
    for use in uses_of(device, *made):
        with pytest.raises(ClosedError):
            use()
    assert recording.calls == []


def test_all_devices_of_a_platform_are_done_before_anything_of_one_ends(recording):
    with recording.devices() as devices:
        kept = [(device.create_stream(), device.allocate(4)) for device in devices]
        recording.clear()
    calls = [call.split()[0] for call in recording.calls]
    first = next(at for at, call in enumerate(calls) if call.startswith(("destroy", "dealloc")))
    assert calls[:first].count("synchronize_all_activity") == len(kept)


def test_a_failure_while_all_ends_is_raised_in_the_end(recording):
    recording.fail("synchronize_all_activity", Code.DATA_LOSS)
    with pytest.raises(DataLossError, match="told to fail"), recording.devices() as [device, _]:
        stream = device.create_stream()
    assert stream.closed
    assert recording.calls[-1] == "destroy_platform_fns"
    assert recording.count("destroy_stream") == 1
    recording.heal()
    with recording.devices() as [device, _]:
        stream = device.create_stream()
        recording.fail("synchronize_all_activity", Code.DATA_LOSS)
        with pytest.raises(DataLossError, match="told to fail"):
            device.executor.close()
        assert stream.closed


@pytest.mark.parametrize("memory", ["cut by the plugin", "cut by the host"])
def test_a_forked_child_destroys_nothing(in_child, memory):
    lines = in_child(
        f"if {memory == 'cut by the host'}: recording.use_bfc_allocator()\n"
        "from modular_tf.errors import ClosedError\n"
        "with recording.devices() as [device, other]:\n"
        "    stream, memory = device.create_stream(), device.allocate(8)\n"
        "    pinned = device.allocate_host(8)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        closed = 0\n"
        "        for use in (stream.record_event, device.create_stream, other.create_stream,\n"
        "                    lambda: device.allocate(8)):\n"
        "            try: use()\n"
        "            except ClosedError: closed += 1\n"
        "        pinned.view[:4] = b'mine'\n"
        "        before = len(recording.calls)\n"
        "        stream.close(); memory.close(); pinned.close()\n"
        "        del stream, memory, pinned; gc.collect(); device.factory.close()\n"
        "        os._exit(0 if closed == 4 and len(recording.calls) == before else 1)\n"
        "    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
        "    stream.memcpy_htod(memory, b'still up'); stream.block_until_done()\n"
        "    pinned.close()\n"
        "print(recording.allocated, recording.count('destroy_stream'))\n"
    )
    assert lines == ["0", "0 1"]
