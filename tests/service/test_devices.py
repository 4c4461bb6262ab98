"""Devices: by dropping a library into a folder, by the configured priority, and for a time."""

from __future__ import annotations

import pytest

from modular_tf.errors import AlreadyExistsError, NotFoundError
from modular_tf.service.configuration import Config
from modular_tf.service.report import State


def test_a_library_dropped_into_tensorflow_plugins_appears_everywhere(
    site, device_file, plugin_file, make_service
):
    assert make_service().load().plugins == ()
    device_file("venv/site-packages/tensorflow-plugins/libmy_device.so", device_type="MY_DEVICE")
    plugin_file("venv/site-packages/tensorflow-plugins/libmy_store.so")
    service = make_service()
    report = service.load()

    assert report["my_device"].state is State.LOADED
    assert report["my_device"].source == "tensorflow-plugins"
    assert report["my_device"].device_types == ("MY_DEVICE",)
    assert service.schemes() == {"fixture": "my_store"}
    names = [device.name for device in service.devices("MY_DEVICE")]
    assert names
    assert service.device(names[0]).plugin == "my_device"
    assert [device.name for device in service.devices()] == names


def test_the_higher_priority_serves_and_the_other_is_listed(device_file, make_service, tmp_path):
    device_file("liblow.so", device_type="NPU", platform="LOW")
    device_file("lib2high.so", device_type="NPU", platform="HIGH")
    service = make_service(
        tmp_path / "liblow.so",
        tmp_path / "lib2high.so",
        config=Config(priorities={"NPU:HIGH": 300}),
    )
    service.load()
    low, high = service.report()["low"], service.report()["2high"]

    assert {device.plugin for device in service.devices("NPU")} == {"2high"}
    assert {device.priority for device in service.devices("NPU")} == {300}
    assert (high.state, high.device_types) == (State.LOADED, ("NPU",))
    assert (low.state, low.device_types) == (State.SHADOWED, ())
    assert low.reason.rule == "SE-052"


class Factory:
    """Devices in Python."""

    device_type = "NPU"
    platform = "PYTHON"
    priority = 221

    def device_count(self):
        return 2


def test_python_factories_obey_the_same_rules(device_file, make_service):
    service = make_service(device_file("libc.so", device_type="NPU"))
    service.load()
    undo = service.register_device_factory(Factory())
    assert [device.plugin for device in service.devices("NPU")] == ["Factory"] * 2
    assert service.report()["c"].state is State.SHADOWED
    record = service.report()["Factory"]
    assert (record.path, record.source, record.kinds) == (None, "python", ("device",))
    assert (record.state, record.device_types) == (State.LOADED, ("NPU",))
    with pytest.raises(AlreadyExistsError, match="PYTHON"):
        service.register_device_factory(Factory())

    undo()
    undo()
    assert {device.plugin for device in service.devices("NPU")} == {"c"}
    assert [record.name for record in service.plugins()] == ["c"]
    with pytest.raises(KeyError):
        service.report()["Factory"]


def test_device_plugins_that_are_kept_out_are_named(fixture_device_plugin, make_service):
    crashing = fixture_device_plugin("init-plugin-crashes")
    good = fixture_device_plugin("good", device_type="OTHER", platform="OTHER_CHIP")
    service = make_service(crashing, good, config=Config(first_contact="always"))
    names = {record.path: record.name for record in service.load().plugins}

    with pytest.raises(NotFoundError) as failure:
        service.device("FIXTURE:0")

    assert f"not loaded: {names[str(crashing)]} (quarantined, LD-060)" in failure.value.message
    assert names[str(good)] not in failure.value.message.split("not loaded:")[1]
    assert service.device("OTHER:0").name == "OTHER:0"


def test_only_types_that_the_environment_enables_serve(make_service, monkeypatch):
    monkeypatch.setenv("TF_ENABLED_DEVICE_TYPES", "GPU")
    service = make_service()
    service.register_device_factory(Factory())

    assert service.devices() == []
    (record,) = service.plugins()
    assert (record.state, record.reason.rule) == (State.DISABLED, "SE-053")
