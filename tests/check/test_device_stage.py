"""Devices as checks are given them: by the plugin's own slots, and through the package."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.check.device.workspace import HostBuffer
from modular_tf.check.expectation import Deviation
from modular_tf.native.fresh_host_memory import address_of
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.device.dialects.building import Build

_PASSES = ("raw", "host")
_LAYOUTS = [Build(dialect) for dialect in Dialect if dialect.value.startswith("device-")]
_ALLOCATORS = [
    Build(Dialect.DEVICE_RFC, macros={"ALLOCATOR": kind}) for kind in ("PLAIN", "CUSTOM")
]

_START = """
    import os, sys
    from types import SimpleNamespace
    from modular_tf.check.device.session import DeviceSession
    from modular_tf.check.expectation import Blocked, Unsupported
    from modular_tf.check.outcome import Pass
    from modular_tf.check.target import Target

    def stage_of(ordinal=0):
        where = {"ordinal": ordinal, "scratch": os.getcwd()}
        return DeviceSession(Target(sys.argv[1], "device", Pass(sys.argv[2]), **where))

    check = SimpleNamespace(id="SE-000")
"""


@pytest.mark.parametrize("reached", _PASSES)
@pytest.mark.parametrize("build", [*_LAYOUTS, *_ALLOCATORS], ids=str)
def test_each_layout_is_one_device(build, reached, run_python):
    child = run_python(_START + _ROUND_TRIP, build.compile(), reached)

    assert child.stdout == "DIALECT True\n"


_ROUND_TRIP = """
    stage = stage_of(1)
    with stage.workspace(check) as ground:
        data = ground.bytes(3000)
        memory, stream, called = ground.filled(data), ground.stream(), []
        back = ground.buffer(1000)
        copied = ground.memcpy_dtoh(stream, back, memory.part(500, 1000), 1000)
        queued = ground.host_callback(stream, lambda: called.append(1))
        ground.done(stream)
        same = copied.ok and queued.ok and called == [1] and back.content() == data[500:1500]
        block = ground.host_block(10)
        block.view[:] = b"0123456789"
        same = same and bytes(block.view) == b"0123456789"
        same = same and ground.facts().ordinal == 1
        print(ground.access.tables.device_type, same)
    stage.close()
"""


@pytest.mark.parametrize("reached", _PASSES)
def test_what_a_check_leaves_is_destroyed(reached, run_python):
    child = run_python(_START + _LEAVE, defective_plugin("device"), reached)

    assert child.stdout == "7000 0 0\n"


_LEAVE = """
    stage = stage_of()
    with stage.workspace(check) as ground:
        memories = ground.memory(5000), ground.memory(2000)
        things = ground.stream(), ground.event(), ground.timer(), ground.host_block()
        during = ground.get_allocator_stats().value.bytes_in_use
    after = stage.access.get_allocator_stats().value.bytes_in_use
    try:
        with stage.workspace(check) as ground:
            ground.memory()
            raise KeyError
    except KeyError:
        print(during, after, stage.access.get_allocator_stats().value.bytes_in_use)
    stage.close()
"""


@pytest.mark.parametrize("reached", _PASSES)
def test_a_failing_check_is_not_hidden_by_what_it_leaves(reached, run_python):
    child = run_python(_START + _FAIL, defective_plugin("device"), reached)

    assert child.stdout == "the finding\n"


_FAIL = """
    stage = stage_of()
    try:
        with stage.workspace(check) as ground:
            ground.buffer(1)
            ground._buffers[0]._block[0] = 0
            raise ValueError("the finding")
    except ValueError as error:
        print(error)
    stage.close()
"""


@pytest.mark.parametrize("reached", _PASSES)
@pytest.mark.parametrize(("count", "ordinal"), [("0", 0), ("2", 2)])
def test_a_device_that_is_not_there_is_skipped(reached, count, ordinal, run_python):
    environment = {"MTF_HOST_DEVICE_COUNT": count}
    program = _START + _ENTER.format(ordinal=ordinal)
    child = run_python(program, defective_plugin("device"), reached, env=environment)

    assert child.stdout.startswith("Unsupported the plugin has ")


@pytest.mark.parametrize("reached", _PASSES)
@pytest.mark.parametrize("defect", ["SE-002", "SE-025", "SE-040", "SE-042"])
def test_a_plugin_that_cannot_be_used_blocks(reached, defect, run_python):
    environment = {DEFECT_VARIABLE: defect}
    program = _START + _ENTER.format(ordinal=0)
    child = run_python(program, defective_plugin("device"), reached, env=environment)

    assert child.stdout.startswith("Blocked ")


_ENTER = """
    try:
        stage = stage_of({ordinal})
        with stage.workspace(check):
            print("entered")
    except (Blocked, Unsupported) as error:
        print(type(error).__name__, error)
"""


@pytest.mark.parametrize("reached", _PASSES)
def test_a_gate_holds_a_stream_that_can_be_held(reached, run_python):
    child = run_python(_START + _HOLD, defective_plugin("device"), reached)

    assert child.stdout == "False True 2 3\n"


@pytest.mark.parametrize("reached", _PASSES)
def test_a_gate_lets_a_stream_pass_that_runs_at_once(reached, run_python):
    child = run_python(_START + _HOLD, Build(Dialect.DEVICE_V209).compile(), reached)

    assert child.stdout.startswith("True True ")


_HOLD = """
    stage = stage_of()
    with stage.workspace(check) as ground:
        stream, event = ground.stream(), ground.event()
        gate = ground.gate(stream)
        ground.record_event(stream, event)
        before = ground.get_event_status(event).value
        reached = gate.reached.wait(10)
        gate.open()
        ground.done(stream)
        print(gate.is_inline, reached, before, ground.get_event_status(event).value)
    stage.close()
"""


def test_calls_are_told(run_python):
    child = run_python(_START + _CALLS, defective_plugin("device"), "raw")

    assert child.stdout == "['synchronize_all_activity(device) -> OK']\n"


_CALLS = """
    stage = stage_of()
    stage.calls.clear()
    with stage.workspace(check):
        pass
    print(stage.calls)
    stage.close()
"""


def test_poison_shows_who_sets_a_status(run_python):
    child = run_python(_START + _POISON, defective_plugin("device"), "raw")

    assert child.stdout == "True 0\n"


_POISON = """
    stage = stage_of()
    with stage.workspace(check) as ground, ground.slots.caller.poisoned():
        answer = ground.get_stream_status(ground.stream())
        print(answer.touched, answer.code)
    stage.close()
"""


@pytest.mark.parametrize("size", [0, 1, 100, 1 << 20])
@pytest.mark.parametrize("shift", [0, 1, 63])
def test_a_host_buffer_lies_where_it_is_wanted(size, shift):
    buffer = HostBuffer(size, shift=shift)

    assert len(buffer) == size
    assert buffer.address % 64 == shift
    assert buffer.content() == bytes(size)
    assert not size or address_of(buffer.view) == buffer.address
    buffer.check_guards()


@pytest.mark.parametrize("at", [-1, -64, 100, 163])
def test_a_guard_sees_what_is_written_beside_a_buffer(at):
    buffer = HostBuffer(bytes(range(100)), shift=3)
    buffer._block[buffer._start + at] = 0

    with pytest.raises(Deviation, match="in front of" if at < 0 else "behind"):
        buffer.check_guards()
