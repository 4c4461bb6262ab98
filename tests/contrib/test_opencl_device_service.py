"""The OpenCL plugin through the whole way, in child processes: a driver stays in its process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.contrib.opencl_plugin import ON_POCL, TWO_DEVICES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.fixtures.children import PythonRunner

_CHECKOUT = Path(__file__).parents[2]

_LOAD = """
    import json, sys
    from modular_tf import PluginService

    with PluginService() as service:
        service.load(sys.argv[1])
        [plugin] = [made for made in service.plugins() if made.path == sys.argv[1]]
        print(json.dumps({
            "state": plugin.state.value,
            "reasons": [[reason.rule, reason.message] for reason in plugin.reasons],
            "warnings": [[warning.rule, warning.message] for warning in plugin.warnings],
            "devices": [device.to_dict() for device in service.devices("OPENCL")],
        }))
"""


def _loaded(run_python: PythonRunner, library: Path, env: Mapping[str, str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run_python(_LOAD, library, env=env).stdout)
    return answer


def test_devices_are_listed(run_python: PythonRunner, opencl_library: Path) -> None:
    told = _loaded(run_python, opencl_library, TWO_DEVICES)
    assert (told["state"], told["reasons"], told["warnings"]) == ("loaded", [], [])
    for ordinal, device in enumerate(told["devices"]):
        assert device["name"] == f"OPENCL:{ordinal}"
        assert (device["platform"], device["plugin"]) == ("OPENCL", "opencl_device")
        assert device["hardware_name"].startswith("pthread")
        assert (device["error"], device["gflops"]) == (None, None)
    assert len(told["devices"]) == 2


def test_no_driver_is_no_device(run_python: PythonRunner, opencl_library: Path) -> None:
    told = _loaded(run_python, opencl_library, {"OCL_ICD_VENDORS": "/dev/null/none"})
    assert told == {"state": "loaded", "reasons": [], "warnings": [], "devices": []}


def test_missing_loader_is_named(
    run_python: PythonRunner, opencl_library: Path, tmp_path: Path
) -> None:
    """The same plugin, linked with a library that is nowhere."""
    library = tmp_path / opencl_library.name
    content = opencl_library.read_bytes()
    assert content.count(b"libOpenCL.so.1") == 1
    library.write_bytes(content.replace(b"libOpenCL.so.1", b"libOpenCL.so.0"))
    told = _loaded(run_python, library, ON_POCL)
    assert (told["state"], told["devices"]) == ("rejected", [])
    [[rule, message]] = told["reasons"]
    assert rule == "LD-013"
    assert "needs libOpenCL.so.0" in message


def test_arrays_travel_between_devices_of_both_plugins(
    run_python: PythonRunner, opencl_library: Path
) -> None:
    run_python(
        """
        import random, sys
        from modular_tf import PluginService

        with PluginService() as service:
            service.load("host_device", sys.argv[1])
            names = ("OPENCL:0", "CPU:0", "OPENCL:1", "OPENCL:0", "CPU:0")
            first, *others = map(service.device, names)
            for size in (0, 1, 4096, 64 << 20):
                data = random.Random(size).randbytes(size)
                array = first.put(data)
                for device in others:
                    array = array.copy_to(device)
                    assert array.device is device
                assert array.to_bytes() == data
            for memory in ("host", "unified"):
                assert first.put(data, memory=memory).to_bytes() == data
        """,
        opencl_library,
        env=TWO_DEVICES,
    )


def test_a_gibibyte_travels_between_both_plugins(
    run_python: PythonRunner, opencl_library: Path
) -> None:
    """The way between two plugins is through small pieces of host memory."""
    run_python(
        """
        import sys
        from modular_tf import PluginService

        BLOCK = bytes(range(251)) * 4179  # 1 MiB and a bit: no power of two, a shift is seen
        SIZE = 1 << 30

        with PluginService() as service:
            service.load("host_device", sys.argv[1])
            device = service.device("OPENCL:0")
            data = bytearray(BLOCK * (SIZE // len(BLOCK) + 1))
            del data[SIZE:]
            array = device.put(data)
            del data
            for name in ("CPU:0", "OPENCL:0", "CPU:0"):
                there = array.copy_to(service.device(name))
                array.close()
                array = there
            back = array.to_memoryview()
            array.close()
            assert len(back) == SIZE
            for start in range(0, SIZE, len(BLOCK)):
                part = back[start : start + len(BLOCK)]
                assert part == BLOCK[: len(part)]
        """,
        opencl_library,
        env=ON_POCL,
    )


def test_work_on_streams(run_python: PythonRunner, opencl_library: Path) -> None:
    run_python(
        """
        import sys, threading
        from modular_tf import PluginService

        with PluginService() as service:
            service.load(sys.argv[1])
            device, gate, log = service.device("OPENCL:0"), threading.Event(), []
            one, two, timer = device.create_stream(), device.create_stream(), device.create_timer()
            memory, result = device.allocate(1024), bytearray(1024)
            timer.start(one)
            one.add_callback(gate.wait)
            one.memset32(memory, 0x01020304)
            one.add_callback(lambda: log.append("one"))
            event = one.record_event()
            two.wait_event(event)
            two.memcpy_dtoh(result, memory)
            two.add_callback(lambda: log.append("two"))
            timer.stop(two)
            assert (log, bytes(result)) == ([], bytes(1024))
            gate.set()
            device.synchronize()
            assert log == ["one", "two"]
            assert bytes(result) == bytes((4, 3, 2, 1)) * 256
            assert timer.nanoseconds > 0 and not timer.emulated
        """,
        opencl_library,
        env=ON_POCL,
    )


@pytest.mark.parametrize("repetition", range(3))
def test_the_process_ends_in_order_with_a_callback_thread_alive(
    run_python: PythonRunner, opencl_library: Path, repetition: int
) -> None:
    """Nobody destroyed the stream."""
    run_python(
        """
        import sys
        sys.path.append(sys.argv[2])
        from modular_tf.native.runtime_library import runtime_path
        from tests.contrib.raw_device import RawDevice

        device = RawDevice(str(runtime_path()), sys.argv[1])
        stream = device.create("stream").value
        for number in range(50):
            device.note(stream, str(number))
        device.call("block_host_until_done", stream)
        assert len(device.log()) == 50
        """,
        opencl_library,
        _CHECKOUT,
        env=ON_POCL,
    )
