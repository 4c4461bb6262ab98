"""The plugin of ending_plugin.c: its reads end the process, or hang, as the path says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.filesystem.plugins import built

if TYPE_CHECKING:
    from pathlib import Path


def ending_plugin(*macros: str) -> Path:
    """Build it; return its library, whose bytes the macros tell apart."""
    return built("ending", *macros)
