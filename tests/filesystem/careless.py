"""The plugin of careless_plugin.c, built and loaded."""

from __future__ import annotations

from pathlib import Path

from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library


def careless_service(*macros: str) -> PluginService:
    """Return a service with the plugin, and the bundled ones; the caller closes it."""
    compiled = compile_object(Path(__file__).with_name("careless_plugin.c"), macros)
    service = PluginService(plugin_paths=[link_library("libcareless.so", [compiled])])
    service.load()
    return service
