"""The bundled host device through the whole way: a plugin that was written apart from the host."""

from __future__ import annotations

import pytest

from modular_tf.service.service import PluginService


@pytest.fixture
def service():
    with PluginService() as running:
        running.discover()
        running.load("host_device")
        yield running


def test_one_cpu_device_per_process_that_breaks_no_rule(service):
    [device] = service.devices("CPU")
    assert (device.name, device.priority, device.plugin) == ("CPU:0", 60, "host_device")
    record = next(plugin for plugin in service.plugins() if plugin.name == "host_device")
    assert record.device_types == ("CPU",)
    assert (record.reasons, record.warnings) == ((), ())


def test_a_plugin_of_its_type_takes_over_and_gives_back(service):
    class FasterHost:
        device_type = "CPU"
        platform = "FASTER_HOST"

        def device_count(self):
            return 3

    undo = service.register_device_factory(FasterHost())
    assert [device.platform for device in service.devices("CPU")] == ["FASTER_HOST"] * 3
    states = {record.name: record.state.value for record in service.plugins()}
    assert states["host_device"] == "shadowed"
    undo()
    assert [device.plugin for device in service.devices("CPU")] == ["host_device"]
