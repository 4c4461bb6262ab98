"""The plugin of careless_plugin.c, built and loaded."""

from __future__ import annotations

from modular_tf.service.service import PluginService
from tests.filesystem.plugins import built


def careless_service(*macros: str) -> PluginService:
    """Return a service with the plugin, and the bundled ones; the caller closes it."""
    service = PluginService(plugin_paths=[built("careless", *macros)])
    service.load()
    return service
