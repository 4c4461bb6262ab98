"""The plugin of ending_plugin.c: its reads end the process, or hang, as the path says."""

from __future__ import annotations

from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library


def ending_plugin(*macros: str) -> Path:
    """Build it; return its library, whose bytes the macros tell apart."""
    compiled = compile_object(Path(__file__).with_name("ending_plugin.c"), macros)
    return link_library("libending.so", [compiled], ["-lpthread"])
