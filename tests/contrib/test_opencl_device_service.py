"""The OpenCL plugin through the whole way, in child processes: a driver stays in its process."""

from __future__ import annotations

from tests.contrib.opencl_plugin import TWO_DEVICES


def test_devices_are_listed_and_arrays_travel_between_both_plugins(run_python, opencl_library):
    """By small pieces of host memory."""
    code = """
        import random, sys
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
    """
    run_python(code, opencl_library, env=TWO_DEVICES)
