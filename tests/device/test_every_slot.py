"""A failing plugin call at every slot in turn: a typed error or none, and the device works on.

The table below has one row per slot. A slot that a layout has and that is in no row fails a test.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace
from typing import Any

import pytest

from modular_tf.abi.layouts import LAYOUTS
from modular_tf.abi.status_codes import Code
from modular_tf.errors import (
    FailedPreconditionError,
    InternalError,
    ModularTFError,
    OutOfMemoryError,
    UnavailableError,
    error_class,
)
from tests.device.recording import LEAVES_OUTPUTS_ALONE, THROWS


class World:
    """What the uses of slots find."""

    def __init__(self, device):
        self.device = device
        self.stream, self.other = device.create_stream(), device.create_stream()
        self.event = self.stream.record_event()
        self.memory = device.allocate(4)


@dataclass(frozen=True)
class Row:
    """What becomes of a slot that fails.

    Attributes:
        use: Has the host call the slot, and returns what may be asserted on.
        has_status: Whether the slot can report a code.
        thrown: The error of a C++ exception in it; None where nobody is told, since all that was
            to be done is done.
        left_alone: The error of a slot that does nothing and says nothing.
        then: What `use` returns then.
    """

    use: Any
    has_status: bool = True
    thrown: Any = InternalError
    left_alone: Any = None
    then: Any = None


def timed(world):
    with world.device.create_timer() as timer:
        timer.start(world.stream)
        timer.stop(world.stream)
        return timer.nanoseconds


GIVES = Row(lambda w: None, has_status=False, left_alone=OutOfMemoryError)
ENDS = Row(lambda w: None, has_status=False, thrown=None)
KNOWS = Row(lambda w: None, has_status=False, left_alone=UnavailableError)


def row(kind, use, **changes):
    return replace(kind, use=use, **changes)


EXECUTOR = {
    "allocate": row(GIVES, lambda w: w.device.allocate(8).close()),
    "deallocate": row(ENDS, lambda w: w.device.allocate(8).close()),
    "host_memory_allocate": row(GIVES, lambda w: w.device.allocate_host(8).close()),
    "host_memory_deallocate": row(ENDS, lambda w: w.device.allocate_host(8).close()),
    "unified_memory_allocate": row(GIVES, lambda w: w.device.allocate_unified(8).close()),
    "unified_memory_deallocate": row(ENDS, lambda w: w.device.allocate_unified(8).close()),
    "get_allocator_stats": row(KNOWS, lambda w: w.device.allocator_stats() and None),
    "device_memory_usage": row(KNOWS, lambda w: w.device.memory_usage() and None),
    "create_stream": Row(lambda w: w.device.create_stream().close()),
    "destroy_stream": row(ENDS, lambda w: w.device.create_stream().close()),
    "create_stream_dependency": Row(lambda w: w.stream.wait_for(w.other)),
    "get_stream_status": Row(lambda w: w.stream.block_until_done()),
    "create_event": Row(lambda w: w.device.create_event().close()),
    "destroy_event": row(ENDS, lambda w: w.device.create_event().close()),
    "get_event_status": row(ENDS, lambda w: w.event.wait(), thrown=InternalError),
    "record_event": Row(lambda w: w.event.record(w.other)),
    "wait_for_event": Row(lambda w: w.other.wait_event(w.event)),
    "create_timer": Row(timed, then=1234),
    "destroy_timer": row(ENDS, timed, then=1234),
    "start_timer": Row(timed, then=1234),
    "stop_timer": Row(timed, then=1234),
    "memcpy_dtoh": Row(lambda w: w.stream.memcpy_dtoh(bytearray(4), w.memory)),
    "memcpy_htod": Row(lambda w: w.stream.memcpy_htod(w.memory, b"abcd")),
    "memcpy_dtod": Row(lambda w: w.stream.memcpy_dtod(w.memory, w.memory)),
    "sync_memcpy_dtoh": Row(lambda w: w.device.memcpy_dtoh(bytearray(4), w.memory)),
    "sync_memcpy_htod": Row(lambda w: w.device.memcpy_htod(w.memory, b"abcd")),
    "sync_memcpy_dtod": Row(lambda w: w.device.memcpy_dtod(w.memory, w.memory)),
    "block_host_for_event": Row(lambda w: w.event.block()),
    "block_host_until_done": Row(lambda w: w.stream.block_until_done()),
    "synchronize_all_activity": Row(lambda w: w.device.synchronize()),
    "mem_zero": Row(lambda w: w.stream.mem_zero(w.memory)),
    "memset": Row(lambda w: w.stream.memset(w.memory, 7)),
    "memset32": Row(lambda w: w.stream.memset32(w.memory, 7)),
    "host_callback": Row(
        lambda w: w.stream.add_callback(int), has_status=False, left_alone=InternalError
    ),
    "nanoseconds": row(ENDS, timed, thrown=InternalError, then=1234),  # it returns a number anyway
}
"""SP_StreamExecutor and SP_TimerFns: the device exists, and works again."""

DETAILS = {
    "get_numa_node": "numa_node",
    "get_memory_bandwidth": "memory_bandwidth",
    "get_gflops": "gflops",
}
"""SP_DeviceFns: what fails is not known, and a warning tells why."""

LOAD = {
    "SE_InitPlugin": Row(lambda w: None, left_alone=FailedPreconditionError),
    "create_device_fns": Row(lambda w: None),  # none of the functions is required
    "create_stream_executor": Row(lambda w: None, left_alone=FailedPreconditionError),
    "create_device": Row(lambda w: None),  # a silent plugin: SP_Device has all that it needs
    "create_timer_fns": Row(lambda w: None),
}
"""What is called when a plugin is loaded, and at the first use of a device or timer."""

TAKE_DOWN = (
    "destroy_device",
    "destroy_device_fns",
    "destroy_stream_executor",
    "destroy_timer_fns",
    "destroy_platform",
    "destroy_platform_fns",
)
"""What is called when a platform is closed: all of them, whichever fails."""

ELSEWHERE = {"SP_AllocatorFns", "SP_CustomAllocatorFns"}
"""The RFC's allocators, which no other layout has, fail in their own tests."""


def test_every_slot_has_a_row():
    slots = {
        slot.name
        for (struct, _), found in LAYOUTS.items()
        if struct.startswith(("SP_", "SE_")) and struct not in ELSEWHERE
        for slot in found.slots
        if not slot.name.endswith("_allocator")
    }
    rows = [*EXECUTOR, *DETAILS, *LOAD, *TAKE_DOWN, "get_device_count"]
    assert sorted(rows) == sorted({*slots, "SE_InitPlugin"})


def works(device):
    """Have the device do one thing of each kind."""
    data, back = bytes(range(16)), bytearray(16)
    with device.create_stream() as stream, device.allocate(16) as memory:
        stream.memcpy_htod(memory, data)
        stream.memcpy_dtoh(back, memory)
        stream.add_callback(lambda: None)
        stream.record_event().wait()
        stream.block_until_done()
        with device.create_timer() as timer:
            timer.start(stream)
            timer.stop(stream)
            return back == data and timer.nanoseconds >= 0


def failing(slot, expected, use, named=""):
    """Use a slot that fails; return what the use returned where it must not raise."""
    if expected is None:
        return use()
    with pytest.raises(ModularTFError, match=named + slot) as caught:
        use()
    assert type(caught.value) is expected
    assert (caught.value.operation, caught.value.plugin) == (slot, "recording")
    return None


def outcomes(kind):
    """Return how a slot may fail, and what is raised then."""
    codes = [Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE, Code.DATA_LOSS]
    told = [(int(code), error_class(code)) for code in codes if kind.has_status]
    return [*told, (THROWS, kind.thrown), (LEAVES_OUTPUTS_ALONE, kind.left_alone)]


def cases(table):
    """Return each slot with each way to fail."""
    return [
        pytest.param(slot, how, expected, id=f"{slot}-{how}")
        for slot, kind in table.items()
        for how, expected in outcomes(kind)
    ]


PAIRS = {
    "destroy_stream": "create_stream",
    "destroy_event": "create_event",
    "destroy_timer": "create_timer",
    "destroy_device": "create_device",
}


def check_nothing_is_left(recording, failed, how):
    """Check that each object was destroyed, and each memory given back unless that failed."""
    gc.collect()
    for destroy, create in PAIRS.items():
        extra = 1 if failed == create and how != LEAVES_OUTPUTS_ALONE else 0
        assert recording.count(destroy) == recording.count(create) - extra
    is_kept = failed == "deallocate" or (failed.endswith("_deallocate") and how == THROWS)
    assert recording.allocated == is_kept


@pytest.mark.parametrize(("slot", "how", "expected"), cases(EXECUTOR))
def test_a_slot_of_the_executor(recording, slot, how, expected):
    kind = EXECUTOR[slot]
    with recording.devices() as [device, other]:
        world = World(device)
        recording.fail(slot, how)
        found = failing(slot, expected, lambda: kind.use(world), named="RECORDING:0: ")
        assert found == (kind.then if expected is None else None)
        recording.heal()
        kind.use(world)
        assert works(device)
        assert works(other)
    check_nothing_is_left(recording, slot, how)


@pytest.mark.parametrize("slot", DETAILS)
def test_a_detail_that_cannot_be_had(recording, slot):
    with recording.devices() as [device, other]:
        recording.fail(slot, THROWS)
        details = device.details
        assert getattr(details, DETAILS[slot]) is None
        assert [warning.rule_id for warning in details.warnings] == ["SE-045"]
        assert f"thrown by {slot}" in details.warnings[0].message
        recording.fail(slot, LEAVES_OUTPUTS_ALONE)
        assert getattr(other.details, DETAILS[slot]) is None
        assert works(device)


@pytest.mark.parametrize(("slot", "how", "expected"), cases(LOAD))
def test_a_slot_of_loading(recording, slot, how, expected):
    def load_and_use():
        with recording.devices() as devices:
            assert [works(device) for device in devices] == [True, True]

    recording.fail(slot, how)
    if expected is None:
        load_and_use()
    else:
        with pytest.raises(ModularTFError) as caught:
            load_and_use()
        assert caught.value.code is expected.default_code
    recording.heal()
    load_and_use()


@pytest.mark.parametrize("slot", TAKE_DOWN)
def test_a_throwing_slot_of_the_end_is_reported_after_all_have_run(recording, slot):
    def use_and_close():
        with recording.devices() as [device, _]:
            assert works(device)
            recording.fail(slot, THROWS)

    with pytest.raises(InternalError, match=f"thrown by {slot}") as caught:
        use_and_close()
    assert caught.value.rule == "SE-032"
    recording.heal()
    ends = [call for call in recording.calls if call in TAKE_DOWN]
    assert ends == list(TAKE_DOWN)
    with recording.devices() as [device, _]:
        assert works(device)
