"""The bundled host device through the whole way: a plugin that was written apart from the host."""

from __future__ import annotations

from modular_tf.service.service import PluginService


def test_one_cpu_device_per_process_that_breaks_no_rule():
    with PluginService() as service:
        service.load("host_device")
        [device] = service.devices("CPU")
        assert (device.name, device.priority, device.plugin) == ("CPU:0", 60, "host_device")
        record = next(plugin for plugin in service.plugins() if plugin.name == "host_device")
        assert record.device_types == ("CPU",)
        assert (record.reasons, record.warnings) == ((), ())
