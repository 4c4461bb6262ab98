"""Whether anybody holds anything of a device: only then may its platform go."""

from __future__ import annotations

import pytest


def make_array(device):
    return device.put(b"12345678")


@pytest.mark.parametrize(
    "make",
    [
        lambda device: device.create_stream(),
        lambda device: device.create_event(),
        lambda device: device.create_timer(),
        lambda device: device.allocate(64),
        lambda device: device.allocate_host(64),
        make_array,
    ],
    ids=["stream", "event", "timer", "memory", "host memory", "array"],
)
def test_a_device_is_idle_when_nothing_of_it_is_held(device, make):
    executor = device.executor
    assert executor.is_idle

    made = make(device)
    assert not executor.is_idle

    made.close()
    del made
    device.synchronize()
    assert executor.is_idle


def test_what_the_host_holds_for_itself_is_nobodys(recording, platform):
    """The streams that every device has, and what an arena keeps."""
    assert platform.is_idle, "it has made nothing"
    recording.use_bfc_allocator()
    with recording.devices() as [device, _]:
        assert len(device.context.streams) == 4
        assert device.factory.is_idle
        memory = device.allocate(1000)
        assert not device.factory.is_idle

        memory.close()
        assert recording.allocated > 0
        assert device.factory.is_idle


@pytest.mark.parametrize("holder", [0, 1])
def test_a_platform_is_idle_when_all_of_its_devices_are(recording, holder):
    with recording.devices() as devices:
        for device in devices:
            device.allocate(8).close()
        memory = devices[holder].allocate(8)
        assert not devices[holder].factory.is_idle

        memory.close()
        assert devices[holder].factory.is_idle
