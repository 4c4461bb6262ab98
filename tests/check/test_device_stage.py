"""Devices as checks are given them: by the plugin's own slots, and through the package."""

from __future__ import annotations

import json

import pytest

from modular_tf.abi.layouts import Dialect
from modular_tf.check.device.workspace import HostBuffer
from modular_tf.check.expectation import Deviation
from modular_tf.native.fresh_host_memory import address_of
from tests.check.building import DEFECT_VARIABLE, defective_plugin
from tests.device.dialects.building import Build

_BOTH_WAYS = pytest.mark.parametrize("reached", ["raw", "host"])
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

    reached, *libraries = sys.argv[1:]
    check = SimpleNamespace(id="SE-000")

    def stage_of(library=libraries[0], ordinal=0):
        where = {"ordinal": ordinal, "scratch": os.getcwd()}
        return DeviceSession(Target(library, "device", Pass(reached), **where))

    def hold(library):
        stage = stage_of(library)
        with stage.workspace(check) as ground:
            stream, event = ground.stream(), ground.event()
            gate = ground.gate(stream)
            ground.record_event(stream, event)
            before = int(ground.get_event_status(event).value)
            reached = gate.reached.wait(10)
            gate.open()
            ground.done(stream)
            after = int(ground.get_event_status(event).value)
        stage.close()
        return gate.is_inline, reached, before, after
"""

_LAYOUTS_ARE_DEVICES = """
    for library in libraries:
        stage = stage_of(library, 1)
        with stage.workspace(check) as ground:
            data = ground.bytes(3000)
            memory, stream, called = ground.filled(data), ground.stream(), []
            back = ground.buffer(1000)
            copied = ground.memcpy_dtoh(stream, back, memory.part(500, 1000), 1000)
            queued = ground.host_callback(stream, lambda: called.append(1))
            ground.done(stream)
            assert copied.ok and queued.ok and called == [1]
            assert back.content() == data[500:1500]
            block = ground.host_block(10)
            block.view[:] = b"0123456789"
            assert bytes(block.view) == b"0123456789"
            assert ground.facts().ordinal == 1
            print(ground.access.tables.device_type)
        stage.close()
    print(*hold(libraries[-1])[:2])
"""

_OF_THE_HOST_DEVICE = """
    print(hold(libraries[0]))
    stage = stage_of()
    with stage.workspace(check) as ground:
        memories = ground.memory(5000), ground.memory(2000)
        things = ground.stream(), ground.event(), ground.timer(), ground.host_block()
        print(ground.get_allocator_stats().value.bytes_in_use)
    print(stage.access.get_allocator_stats().value.bytes_in_use)
    try:
        with stage.workspace(check) as ground:
            ground.memory()
            ground.buffer(1)
            ground._buffers[0]._block[0] = 0  # what is left does not hide the finding
            raise ValueError("the finding")
    except ValueError as error:
        print(error, stage.access.get_allocator_stats().value.bytes_in_use)
    stage.calls.clear()
    with stage.workspace(check):
        pass
    print(stage.calls)
    if reached == "raw":
        with stage.workspace(check) as ground, ground.slots.caller.poisoned():
            answer = ground.get_stream_status(ground.stream())
            print(answer.touched, answer.code)
    stage.close()
"""

# A plugin reads its environment once: each time in another process.
_ENTERED = """
    import json
    for ordinal, environment in json.loads(os.environ["CASES"]):
        child = os.fork()
        if child == 0:
            os.environ.update(environment)
            try:
                stage = stage_of(ordinal=ordinal)
                with stage.workspace(check):
                    print("entered")
            except (Blocked, Unsupported) as error:
                print(type(error).__name__, error, flush=True)
            os._exit(0)
        os.waitpid(child, 0)
"""


@_BOTH_WAYS
def test_each_layout_is_one_device_and_a_gate_passes_work_that_runs_at_once(reached, run_python):
    builds = [*_LAYOUTS, *_ALLOCATORS, Build(Dialect.DEVICE_V209)]
    libraries = [build.compile() for build in builds]
    child = run_python(_START + _LAYOUTS_ARE_DEVICES, reached, *libraries)

    assert child.stdout.splitlines() == [*["DIALECT"] * len(builds), "True True"]


@_BOTH_WAYS
def test_a_check_s_device_holds_a_stream_and_forgets_what_a_check_leaves(reached, run_python):
    child = run_python(_START + _OF_THE_HOST_DEVICE, reached, defective_plugin("device"))
    held, during, after, failed, calls, *poisoned = child.stdout.splitlines()

    assert held == "(False, True, 2, 3)"
    assert (during, after, failed) == ("7000", "0", "the finding 0")
    if reached == "raw":
        assert calls == "['synchronize_all_activity(device) -> OK']"
        assert poisoned == ["True 0"]


@_BOTH_WAYS
def test_a_device_that_is_not_there_is_skipped_and_a_plugin_that_cannot_be_used_blocks(
    reached, run_python
):
    absent = [(0, {"MTF_HOST_DEVICE_COUNT": "0"}), (2, {"MTF_HOST_DEVICE_COUNT": "2"})]
    unfit = [(0, {DEFECT_VARIABLE: name}) for name in ("SE-002", "SE-025", "SE-040", "SE-042")]
    cases = {"CASES": json.dumps([*absent, *unfit])}
    child = run_python(_START + _ENTERED, reached, defective_plugin("device"), env=cases)
    lines = child.stdout.splitlines()

    assert len(lines) == len(absent) + len(unfit)
    assert all(line.startswith("Unsupported the plugin has ") for line in lines[: len(absent)])
    assert all(line.startswith("Blocked ") for line in lines[len(absent) :])


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
