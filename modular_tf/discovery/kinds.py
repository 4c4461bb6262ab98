"""The kinds of plugins."""

from __future__ import annotations

from enum import Enum

__all__ = ["SERVED_KINDS", "Kind"]


class Kind(Enum):
    """What a plugin registers."""

    FILESYSTEM = "filesystem"
    DEVICE = "device"
    KERNEL = "kernel"
    GRAPH = "graph"
    PROFILER = "profiler"
    NEXT_DEVICE = "next_device"

    def __str__(self) -> str:
        return self.value


SERVED_KINDS = frozenset((Kind.FILESYSTEM, Kind.DEVICE, Kind.KERNEL))
