"""The hooks by which an installed package takes part in a service, and the mark of hooks."""

from __future__ import annotations

from modular_tf.service.hookspecs import (
    ENTRY_POINT_GROUP,
    PROJECT,
    hookimpl,
    modular_tf_change,
    modular_tf_device_factories,
    modular_tf_filesystems,
    modular_tf_outcome,
    modular_tf_plugin_paths,
    modular_tf_veto,
)

__all__ = [
    "ENTRY_POINT_GROUP",
    "PROJECT",
    "hookimpl",
    "modular_tf_change",
    "modular_tf_device_factories",
    "modular_tf_filesystems",
    "modular_tf_outcome",
    "modular_tf_plugin_paths",
    "modular_tf_veto",
]
