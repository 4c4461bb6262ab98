"""Arrays of a gibibyte, in child processes: what they take goes back to the machine at once."""

from __future__ import annotations

from tests.fixtures.matrices import BEYOND_THE_SAMPLE

pytestmark = BEYOND_THE_SAMPLE


def test_a_gibibyte_on_the_host_device(run_python):
    run_python(
        """
        import numpy as np
        from modular_tf import PluginService

        N, PART = 1 << 28, 1 << 22

        with PluginService() as service:
            service.load("host_device")
            first, *others = map(service.device, ("CPU:0", "CPU:1", "CPU:1"))
            values = np.arange(N, dtype="u4")  # what is out of place is seen
            there = first.put(values)
            assert there.nbytes == 1 << 30
            values[:] = 0
            for device in others:
                copied = there.copy_to(device)
                there.close()
                there = copied
            assert there.device is device
            there.to_numpy(values)
            there.close()
            for start in range(0, N, PART):
                expected = np.arange(start, start + PART, dtype="u4")
                assert (values[start : start + PART] == expected).all()
        """,
        env={"MTF_HOST_DEVICE_COUNT": "2"},
    )


def test_a_gibibyte_in_memory_of_the_host(run_python):
    run_python(
        """
        import numpy as np
        from modular_tf import PluginService

        with PluginService() as service:
            service.load("host_device")
            device = service.device("CPU:0")
            for memory in ("host", "unified"):
                there = device.put(np.arange(1 << 28, dtype="u4"), memory=memory)
                view = np.from_dlpack(there)
                assert view.ctypes.data == there.address
                for start in range(0, 1 << 28, 1 << 22):
                    expected = np.arange(start, start + (1 << 22), dtype="u4")
                    assert (view[start : start + (1 << 22)] == expected).all()
                del view
                there.close()
        """
    )
