"""Arrays on several devices, and after the end of their service; exchange is in tests/dlpack."""

from __future__ import annotations

import numpy as np
import pytest

from modular_tf import dlpack
from modular_tf.abi.dlpack_devices import HOST
from modular_tf.errors import (
    ClosedError,
    InternalError,
)
from modular_tf.service.service import PluginService

VALUES = np.arange(24, dtype="f4").reshape(2, 3, 4)


@pytest.fixture(scope="module")
def service(fixture_device_plugin):
    """The host device, and two platforms with two devices each."""
    with PluginService() as made:
        made.load("host_device")
        for name in ("NPU", "DSP"):
            made.load(str(fixture_device_plugin("good", device_type=name, platform=f"{name}_CHIP")))
        yield made


@pytest.fixture
def faulty(request, fixture_device_plugin):
    """Return the first device of the variant of the fixture plugin that the test names."""
    with PluginService(bundled=False) as service:
        service.load(str(fixture_device_plugin(request.param)))
        yield service.device("FIXTURE:0")


# -- between devices ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("from_", "to"),
    [
        ("NPU:0", "NPU:1"),
        ("NPU:1", "DSP:0"),
        ("DSP:1", "CPU:0"),
    ],
)
def test_copies_between_devices(service, from_, to):
    for n_bytes in (0, 1, 4096):
        data = (bytes(range(251)) * (n_bytes // 251 + 1))[:n_bytes]
        with service.device(from_).put(data) as here:
            there = here.copy_to(service.device(to))
            assert there.device.name == to
            assert here.to_bytes() == there.to_bytes() == data
            here.copy_from(bytes(n_bytes))
            assert there.to_bytes() == data
            assert service.device(to).put(here).to_bytes() == bytes(n_bytes)


def test_copies_from_memory_of_the_host(service):
    for memory in ("host", "unified"):
        here = service.device("CPU:0").put(VALUES, memory=memory)
        there = here.copy_to(service.device("NPU:0"))
        np.testing.assert_array_equal(there.to_numpy(), VALUES)
        back = service.device("CPU:0").put(there, memory=memory)
        np.testing.assert_array_equal(np.from_dlpack(back), VALUES)
        there.copy_from(VALUES + 1)
        back.copy_from(there)
        np.testing.assert_array_equal(np.from_dlpack(back), VALUES + 1)


def test_a_copy_on_the_device_says_that_it_is_one(service):
    there = service.device("NPU:0").put(VALUES)
    taken = dlpack.from_dlpack(there)
    copied = dlpack.from_dlpack(there, copy=True)
    assert (taken.address, taken.is_copied) == (there.address, False)
    assert copied.dlpack_device == there.dlpack_device
    assert (copied.address != there.address, copied.is_copied) == (True, True)


def test_exports_of_device_memory_that_cannot_be_are_refused(service):
    there = service.device("NPU:0").put(VALUES)
    for wish, says in (
        ({"dl_device": HOST, "copy": False}, "by a copy only, and copy=False"),
        ({"dl_device": (2, 0), "max_version": (1, 0)}, r"cannot go to \(2, 0\)"),
        ({"stream": "mine"}, "expected None or a stream"),
    ):
        with pytest.raises(BufferError, match=says):
            there.__dlpack__(**wish)
    with pytest.raises(ValueError, match="stream 3"):
        there.__dlpack__(stream=3)


# -- ends -----------------------------------------------------------------------------------------


def assert_closed(there, device):
    """Check that whatever needs the elements of an array is refused."""
    for use in (
        there.to_numpy, there.to_bytes, there.to_host, there.to_memoryview, there.__enter__,
        there.__dlpack__, lambda: there.memory, lambda: there.copy_to(device),
        lambda: there.copy_from(VALUES), lambda: device.put(there),
        lambda: device.put(there, memory="host"), lambda: np.from_dlpack(there, device="cpu"),
        lambda: np.from_dlpack(there, device="cpu", copy=True),
    ):  # fmt: skip
        with pytest.raises(ClosedError, match="the array was closed"):
            use()


@pytest.mark.parametrize("memory", ["device", "host", "unified"])
def test_a_closed_array_is_refused_everywhere(service, memory):
    device = service.device("CPU:0")
    there = device.put(VALUES, memory=memory)
    there.close()
    there.close()
    assert (there.closed, there.shape, there.dtype) == (True, (2, 3, 4), "float32")
    assert_closed(there, device)


def test_device_memory_ends_with_its_service(service):
    with PluginService() as ended:
        ended.load("host_device")
        there = ended.device("CPU:0").put(VALUES)
        assert not there.closed
    assert there.closed
    assert_closed(there, service.device("NPU:0"))
    there.close()


@pytest.mark.parametrize("memory", ["host", "unified"])
def test_memory_of_the_host_outlives_its_service_and_is_no_target(service, memory):
    with PluginService() as ended:
        ended.load("host_device")
        device = ended.device("CPU:0")
        there = device.put(VALUES, memory=memory)
        assert there.memory  # from now on exports wait for the device, as long as there is one
    assert not there.closed
    there.copy_from(VALUES + 1)
    for read in (
        there.to_numpy(), np.from_dlpack(there), np.from_dlpack(there.to_host()),
        np.from_dlpack(there, device="cpu", copy=True), np.asarray(there.to_memoryview()),
        there.copy_to(service.device("NPU:0")).to_numpy(),
        service.device("DSP:0").put(there, memory=memory).to_numpy(),
    ):  # fmt: skip
        np.testing.assert_array_equal(read, VALUES + 1)
    for use in (
        lambda: there.copy_to(device),
        lambda: device.put(there),
        lambda: device.empty(1, "int8"),
    ):
        with pytest.raises(ClosedError):
            use()
    there.close()
    assert_closed(there, service.device("NPU:0"))


# -- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize("faulty", ["copies-fail"], indirect=True)
def test_a_failing_copy_back_leaves_the_array(faulty):
    there = faulty.put(VALUES)
    for read in (there.to_numpy, there.to_bytes, there.to_host):
        with pytest.raises(InternalError, match="a bus error"):
            read()
    assert not there.closed
    there.copy_from(VALUES)
