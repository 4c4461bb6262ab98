"""The OpenCL plugin through the whole way, in child processes: a driver stays in its process."""

from __future__ import annotations

import json

from tests.contrib.opencl_plugin import ON_POCL, TWO_DEVICES

LOAD = """
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


def loaded(run_python, library, env):
    return json.loads(run_python(LOAD, library, env=env).stdout)


def test_no_driver_is_no_device(run_python, opencl_library):
    found = loaded(run_python, opencl_library, {"OCL_ICD_VENDORS": "/dev/null/none"})
    assert found == {"state": "loaded", "reasons": [], "warnings": [], "devices": []}


def test_a_missing_loader_is_named(run_python, opencl_library, tmp_path):
    """The same plugin, linked with a library that is nowhere."""
    library = tmp_path / opencl_library.name
    content = opencl_library.read_bytes()
    assert content.count(b"libOpenCL.so.1") == 1
    library.write_bytes(content.replace(b"libOpenCL.so.1", b"libOpenCL.so.0"))
    found = loaded(run_python, library, ON_POCL)
    assert (found["state"], found["devices"]) == ("rejected", [])
    [[rule, message]] = found["reasons"]
    assert rule == "LD-013"
    assert "needs libOpenCL.so.0" in message


def test_devices_are_listed_and_arrays_travel_between_both_plugins(run_python, opencl_library):
    """By small pieces of host memory."""
    code = """
        import random, sys, threading
        from modular_tf import PluginService

        with PluginService() as service:
            service.load("host_device", sys.argv[1])
            listed = [device.to_dict() for device in service.devices("OPENCL")]
            assert [each["name"] for each in listed] == ["OPENCL:0", "OPENCL:1"], listed
            for each in listed:
                assert (each["platform"], each["plugin"]) == ("OPENCL", "opencl_device"), each
                assert each["hardware_name"].startswith("pthread"), each
                assert (each["error"], each["gflops"]) == (None, None), each

            names = ("OPENCL:0", "CPU:0", "OPENCL:1", "OPENCL:0", "CPU:0")
            first, *others = map(service.device, names)
            for size in (0, 1, 4096, (65 << 20) + 3):
                data = random.Random(size).randbytes(size)
                array = first.put(data)
                for device in others:
                    array = array.copy_to(device)
                    assert array.device is device
                assert array.to_bytes() == data
            for memory in ("host", "unified"):
                assert first.put(data, memory=memory).to_bytes() == data

            gate, log = threading.Event(), []
            one, two, timer = first.create_stream(), first.create_stream(), first.create_timer()
            memory, result = first.allocate(1024), bytearray(1024)
            timer.start(one)
            one.add_callback(gate.wait)
            one.memset32(memory, 0x01020304)
            one.add_callback(lambda: log.append("one"))
            two.wait_event(one.record_event())
            two.memcpy_dtoh(result, memory)
            two.add_callback(lambda: log.append("two"))
            timer.stop(two)
            assert (log, bytes(result)) == ([], bytes(1024))
            gate.set()
            first.synchronize()
            assert log == ["one", "two"]
            assert bytes(result) == bytes((4, 3, 2, 1)) * 256
            assert timer.nanoseconds > 0 and not timer.emulated
    """
    run_python(code, opencl_library, env=TWO_DEVICES)
