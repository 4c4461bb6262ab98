"""The host's device with settings of its own."""

from __future__ import annotations

from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService


def host_device(**config):
    """Return a service with the bundled host device, and that device."""
    service = PluginService(config=Config(**config))
    service.load("host_device")
    return service, service.device("CPU:0")
