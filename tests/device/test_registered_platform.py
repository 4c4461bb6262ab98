"""A platform is found by its name, whether it serves its device type or not."""

from __future__ import annotations

import pytest

from modular_tf.device.registry import FactoryState
from modular_tf.errors import FailedPreconditionError, InternalError, NotFoundError
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService


class Chips:
    device_type = "NPU"

    def __init__(self, platform, priority=220, count=2):
        self.platform = platform
        self.priority = priority
        self.count = count

    def device_count(self):
        return self.count


@pytest.fixture
def service():
    with PluginService(bundled=False, config=Config(visible_devices=("NPU:1",))) as running:
        running.register_device_factory(Chips("MyDevice"))
        running.register_device_factory(Chips("OTHER", priority=300))
        yield running


def test_one_that_serves_and_a_shadowed_one(service):
    serving = service.platform("OTHER")
    assert (serving.name, serving.device_type, serving.priority) == ("OTHER", "NPU", 300)
    assert (serving.state, serving.reason) == (FactoryState.SERVING, None)
    assert [device.ordinal for device in serving.devices()] == [0, 1]
    (device,) = service.devices("NPU")
    localhost = "/job:localhost/replica:0/task:0/device:NPU:0"
    assert (device.ordinal, device.full_name) == (1, localhost)

    for name in ("MyDevice", "MYDEVICE"):
        shadowed = service.platform(name)
        assert (shadowed.name, shadowed.state) == ("MyDevice", FactoryState.SHADOWED)
        assert shadowed.reason.rule == "SE-052"
        assert [device.platform for device in shadowed.devices()] == ["MyDevice"] * 2
    assert {device.platform for device in service.devices()} == {"OTHER"}


def test_an_unknown_one_is_refused_with_those_that_are_there(service):
    with pytest.raises(NotFoundError, match=r"no platform 'CUDA'.*'MyDevice', 'OTHER'"):
        service.platform("CUDA")


def test_a_disabled_one_has_no_devices_and_one_that_cannot_be_listed_says_why(monkeypatch):
    monkeypatch.setenv("TF_ENABLED_DEVICE_TYPES", "GPU")
    with PluginService(bundled=False) as service:
        service.register_device_factory(Chips("OTHER"))
        platform = service.platform("OTHER")
        assert platform.state is FactoryState.DISABLED
        with pytest.raises(FailedPreconditionError, match="TF_ENABLED_DEVICE_TYPES") as caught:
            platform.devices()
        assert caught.value.rule == "SE-053"

    monkeypatch.delenv("TF_ENABLED_DEVICE_TYPES")
    with PluginService(bundled=False) as service:
        service.register_device_factory(Chips("BROKEN", count="many"))
        with pytest.raises(InternalError, match="expected a number"):
            service.platform("BROKEN").devices()


def test_a_shadowed_plugin_is_loaded_for_its_devices(fixture_device_plugin):
    first = fixture_device_plugin("good", device_type="NPU", platform="FIRST")
    second = fixture_device_plugin("good", device_type="NPU", platform="SECOND")
    for _ in range(2):  # the second time the library is loaded at the first use
        with PluginService(plugin_paths=[first, second], bundled=False) as service:
            service.load()
            shadowed = service.platform("SECOND")
            assert shadowed.devices()[0].put(b"12345678").to_bytes() == b"12345678"
            assert shadowed.state is FactoryState.SHADOWED
            assert service.device("NPU:0").platform == "FIRST"


PREFIX = "/job:worker/replica:0/task:3"


@pytest.fixture
def session():
    """Return a service with what a session configures."""
    config = Config(device_count={"NPU": 1}, name_prefix=PREFIX)
    with PluginService(bundled=False, config=config) as running:
        running.register_device_factory(Chips("CHIPS", count=3))
        yield running


def test_full_names_begin_with_the_prefix_of_a_session(session):
    (device,) = session.devices("NPU")  # of three, by its count

    assert device.full_name == f"{PREFIX}/device:NPU:0"
    for name in (device.full_name, "/job:worker/task:3/device:NPU:0", "/device:NPU:0"):
        assert session.device(name) is device
    for other in ("/job:localhost", "/job:worker/task:0", "/job:ps/replica:0"):
        with pytest.raises(NotFoundError, match="another process than /job:worker"):
            session.device(f"{other}/device:NPU:0")
