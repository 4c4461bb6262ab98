"""The plugins whose sources lie beside this file."""

from __future__ import annotations

from pathlib import Path

from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library


def built(name: str, *macros: str) -> Path:
    """Return the library of the plugin `name`, of which the macros make different ones."""
    (source,) = Path(__file__).parent.glob(f"{name}_plugin.c*")
    objects = [compile_object(source, macros)]
    return link_library(f"lib{name}.so", objects, ["-lpthread"], cxx=source.suffix == ".cc")


def service_of(library: Path, **settings: object) -> PluginService:
    """Return a service with one plugin, which is loaded; the caller closes it."""
    service = PluginService(plugin_paths=[library], bundled=False, **settings)  # type: ignore[arg-type]
    service.load()
    return service
