"""Every layout that the loader knows, by struct and dialect.

The C headers in `modular_tf/include` declare the newest common form of each; a test compiles them
against these numbers, so that neither side can drift.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from modular_tf.abi.device_layouts import DEVICE_LAYOUTS
from modular_tf.abi.filesystem_layouts import (
    FILESYSTEM_LAYOUTS,
    FILESYSTEM_OPS,
    FILESYSTEM_OPS_V222,
    FILESYSTEM_SLOTS,
    FILESYSTEM_SLOTS_V222,
    PLUGIN_INFO,
    PLUGIN_OPS,
    RANDOM_ACCESS_FILE_OPS,
    RANDOM_ACCESS_FILE_SLOTS,
    READ_ONLY_MEMORY_REGION_OPS,
    READ_ONLY_MEMORY_REGION_SLOTS,
    V222_TO_V221_SLOT,
    WRITABLE_FILE_OPS,
    WRITABLE_FILE_SLOTS,
    filesystem_ops_layout,
)
from modular_tf.abi.kernel_layouts import KERNEL_LAYOUTS
from modular_tf.abi.layout import Dialect, Field, Kind, Layout

if TYPE_CHECKING:
    from collections.abc import Mapping

LAYOUTS: Mapping[tuple[str, Dialect | None], Layout] = MappingProxyType(
    {
        (layout.name, layout.dialect): layout
        for layout in (*FILESYSTEM_LAYOUTS, *DEVICE_LAYOUTS, *KERNEL_LAYOUTS)
    }
)
"""All layouts, by C name and dialect; `None` for a struct that all dialects share."""


def layout(name: str, dialect: Dialect | None = None) -> Layout:
    """Return a struct's layout in a dialect, or the one that all dialects share.

    Raises:
        KeyError: No such struct, or it does not exist in that dialect.
    """
    found = LAYOUTS.get((name, dialect)) or LAYOUTS.get((name, None))
    if found is None:
        known = sorted(d.value for struct, d in LAYOUTS if struct == name and d is not None)
        raise KeyError(f"no layout of {name!r} for {dialect}; known dialects: {known}")
    return found


__all__ = [
    "DEVICE_LAYOUTS",
    "FILESYSTEM_LAYOUTS",
    "FILESYSTEM_OPS",
    "FILESYSTEM_OPS_V222",
    "FILESYSTEM_SLOTS",
    "FILESYSTEM_SLOTS_V222",
    "LAYOUTS",
    "PLUGIN_INFO",
    "PLUGIN_OPS",
    "RANDOM_ACCESS_FILE_OPS",
    "RANDOM_ACCESS_FILE_SLOTS",
    "READ_ONLY_MEMORY_REGION_OPS",
    "READ_ONLY_MEMORY_REGION_SLOTS",
    "V222_TO_V221_SLOT",
    "WRITABLE_FILE_OPS",
    "WRITABLE_FILE_SLOTS",
    "Dialect",
    "Field",
    "Kind",
    "Layout",
    "filesystem_ops_layout",
    "layout",
]
