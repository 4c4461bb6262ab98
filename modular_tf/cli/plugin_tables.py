"""The tables of a loaded plugin, slot by slot, as `inspect` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import FILESYSTEM_OPS
from modular_tf.native.library import address_owner

if TYPE_CHECKING:
    from modular_tf.abi.layouts import Layout
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.loading.device_table import DeviceTable
    from modular_tf.loading.filesystem_tables import FilesystemTables, Table

HOST_DEFAULTS = frozenset(
    (
        "recursively_create_dir",
        "delete_recursively",
        "rename_file",
        "copy_file",
        "paths_exist",
        "is_directory",
        "get_file_size",
        "get_matching_paths",
        "translate_name",
        "flush_caches",
        "decode_transaction_token",
        "get_filesystem_configuration",
        "set_filesystem_configuration",
        "set_filesystem_configuration_option",
        "get_filesystem_configuration_option",
        "get_filesystem_configuration_keys",
    )
)
"""The operations that the host does itself where a filesystem leaves them out."""


def filesystem_tables(tables: FilesystemTables) -> list[dict[str, Any]]:
    """Return the tables of one scheme, slot by slot."""
    return [_filesystem_table(tables.scheme, table) for table in tables.tables.values()]


def device_tables(platform: DevicePlatform) -> list[dict[str, Any]]:
    """Return the tables of functions of a device platform, in the plugin's layout."""
    return [_device_table(platform.platform, table) for table in platform.tables.given]


def _filesystem_table(scheme: str, table: Table) -> dict[str, Any]:
    absent = HOST_DEFAULTS if table.kind == FILESYSTEM_OPS.name else frozenset()
    return {
        "scheme": scheme,
        "struct": table.kind,
        "size": table.size,
        "dialect": _dialect(table.layout),
        "slots": [
            _slot(field.name, field.offset, table.slots.get(field.name, 0), absent)
            for field in table.layout.slots
        ],
    }


def _device_table(platform: str, table: DeviceTable) -> dict[str, Any]:
    return {
        "platform": platform,
        "struct": table.layout.name,
        "size": table.size,
        "dialect": _dialect(table.layout),
        "slots": [
            _slot(field.name, field.offset, table.value(field.name), frozenset())
            for field in table.layout.slots
        ],
    }


def _slot(name: str, offset: int, address: int, defaults: frozenset[str]) -> dict[str, Any]:
    owner = address_owner(address) if address else None
    absence = "default" if name in defaults else "absent"
    return {
        "slot": name,
        "offset": offset,
        "is": "present" if address else absence,
        "symbol": owner.symbol if owner else None,
        "symbol_offset": owner.offset if owner else None,
        "library": owner.path if owner else None,
    }


def _dialect(layout: Layout) -> str | None:
    return layout.dialect.value if layout.dialect else None
