"""Which operations work for a plugin: by its own slots, or by what this host has in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from modular_tf.loading.filesystem_tables import FilesystemTables

_DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "recursively_create_dir": ("path_exists", "is_directory", "create_dir"),
    "delete_recursively": (
        "path_exists",
        "is_directory",
        "get_children",
        "delete_file",
        "delete_dir",
    ),
    "rename_file": ("copy_file", "delete_file"),
    "copy_file": ("new_random_access_file", "read", "new_writable_file", "append", "is_directory"),
    "paths_exist": ("path_exists",),
    "is_directory": ("stat",),
    "get_file_size": ("stat",),
    "get_matching_paths": ("path_exists", "get_children", "is_directory"),
    "translate_name": (),
    "flush_caches": (),
    "flush": (),
    "sync": (),
    "get_filesystem_configuration": (),
    "get_filesystem_configuration_option": (),
}
"""For each slot with a default what that asks for, which may have a default in turn
(`modular_tf.filesystem.filesystem`)."""


def has_slot(tables: FilesystemTables, name: str) -> bool:
    """Return whether the plugin has a slot: `SLOT`, or `TABLE.SLOT` where several have it."""
    table, dot, slot = name.rpartition(".")
    if dot:
        return table in tables.tables and tables.tables[table].has(slot)
    return any(one.has(slot) for one in tables.tables.values())


def host_offers(has: Callable[[str], bool], slot: str) -> bool:
    """Return whether an operation works.

    Args:
        has: Tells whether the plugin has a slot.
        slot: The operation.
    """
    if has(slot):
        return True
    helpers = _DEFAULTS.get(slot)
    return helpers is not None and all(host_offers(has, helper) for helper in helpers)
