"""Devices of a replaced plugin: the new ones serve, the old ones go on until nobody holds them."""

from __future__ import annotations

import gc

import pytest

from modular_tf.errors import ModularTFError
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService


@pytest.fixture
def put(fixture_device_plugin, folder):
    """Place a generation of the fixture plugin in the folder; its number tells its bytes apart."""

    def place(generation, *, file="libdevice.so", device_type="FIXTURE", platform="FIXTURE_CHIP"):
        built = fixture_device_plugin(device_type=device_type, platform=platform)
        temporary = folder / ".new"
        temporary.write_bytes(built.read_bytes() + bytes(generation))
        temporary.replace(folder / file)

    return place


@pytest.fixture
def service(folder, put):
    """A service with the first generation loaded."""
    put(1)
    config = Config(first_contact="never")
    with PluginService(plugin_dirs=[folder], bundled=False, config=config) as made:
        made.load("device")
        yield made


def renew(service, put, generation=2, **options):
    put(generation, **options)
    (change,) = service.refresh()
    return change


def settle(service):
    gc.collect()
    service.refresh()


def test_the_new_generation_serves(service, put):
    old = service.device("FIXTURE:0")
    array = old.put(b"12345678")

    change = renew(service, put)

    new = service.device("FIXTURE:0")
    assert change.record.device_types == ("FIXTURE",)
    assert new is not old
    assert new.factory is not old.factory
    assert new.hardware_name == old.hardware_name
    with new.allocate(64), old.allocate(64):
        assert bytes(array.to_host()) == b"12345678"


@pytest.mark.parametrize(
    "hold",
    [
        lambda device: device,
        lambda device: device.allocate(64),
        lambda device: device.create_stream(),
        lambda device: device.create_event(),
        lambda device: device.put(b"12345678"),
    ],
    ids=["device", "memory", "stream", "event", "array"],
)
def test_the_old_one_is_closed_with_the_last_that_is_held(service, put, hold):
    held = hold(service.device("FIXTURE:0"))
    factory = service.device("FIXTURE:0").factory
    renew(service, put)
    settle(service)
    assert service.draining == 1
    assert not factory.closed

    del held
    settle(service)

    assert service.draining == 0
    assert factory.closed


def test_another_type_and_platform_take_the_place(service, put):
    change = renew(service, put, device_type="OTHER", platform="OTHER_CHIP")

    assert change.record.device_types == ("OTHER",)
    assert [device.name for device in service.devices()] == ["OTHER:0", "OTHER:1"]


def test_a_removed_plugin_offers_no_devices(service, folder):
    memory = service.device("FIXTURE:0").allocate(64)
    (folder / "libdevice.so").unlink()

    service.refresh()

    assert service.devices() == []
    with pytest.raises(ModularTFError):
        service.device("FIXTURE:0")
    assert service.draining == 1
    memory.close()
    del memory
    settle(service)
    assert service.draining == 0


def test_a_platform_that_is_taken_leaves_the_old_one_serving(service, put, folder):
    class Taker:
        device_type = "TAKEN"
        platform = "TAKEN_CHIP"

        def device_count(self):
            return 1

    service.register_device_factory(Taker())
    old = service.device("FIXTURE:0")

    change = renew(service, put, device_type="TAKEN", platform="TAKEN_CHIP")

    assert change.refusal is not None
    assert "TAKEN_CHIP" in change.refusal.message
    assert [device.name for device in service.devices("TAKEN")] == ["TAKEN:0"]
    assert service.device("FIXTURE:0") is old


def test_of_two_new_generations_with_one_platform_the_first_has_it(service, put):
    put(2, file="libother.so", device_type="OTHER", platform="OTHER_CHIP")
    service.refresh()
    old = service.device("OTHER:0")
    put(3, device_type="SAME", platform="SAME_CHIP")
    put(4, file="libother.so", device_type="SAME", platform="SAME_CHIP")

    first, second = service.refresh()

    assert (first.plugin, first.refusal) == ("device", None)
    assert second.plugin == "other"
    assert "SAME_CHIP" in second.refusal.message
    assert service.device("SAME:0").plugin == "device"
    assert service.device("OTHER:0") is old
