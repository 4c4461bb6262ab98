"""Opening a filesystem from the accepted tables of a scheme, with workarounds if needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.rules import Violation
from modular_tf.rules.mapping import ENVIRONMENT_FITS

if TYPE_CHECKING:
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.workarounds import Workarounds


class OpenedFilesystem(NamedTuple):
    """A filesystem, and warnings about what was changed in this process for it."""

    filesystem: PluginFilesystem
    warnings: tuple[Violation, ...]


def open_filesystem(
    tables: FilesystemTables, *, plugin: str, path: str, bundled: bool
) -> OpenedFilesystem:
    """Return an initialised filesystem, with workarounds if the plugin has known defects.

    Args:
        tables: The accepted tables.
        plugin: The plugin's name for users.
        path: Its library, whose name identifies known defects.
        bundled: Whether it comes with this package.

    Raises:
        ModularTFError: The plugin's `init` failed.
    """
    if bundled:
        return OpenedFilesystem(PluginFilesystem(tables, plugin), ())
    # Imported for other people's plugins only: bundled ones have no row, and the data costs time.
    from modular_tf.loading.known_defects import workarounds_for  # noqa: PLC0415

    workarounds = workarounds_for(path, tables.scheme)
    changes = workarounds.prepare_environment(os.environ)
    warnings = tuple(
        Violation(ENVIRONMENT_FITS, f"{tables.scheme!r}: {change}") for change in changes
    )
    return OpenedFilesystem(_with_workarounds(tables, plugin, workarounds), warnings)


def _with_workarounds(
    tables: FilesystemTables, plugin: str, workarounds: Workarounds
) -> PluginFilesystem:
    """Return the initialised filesystem that applies these workarounds, if there are any."""
    if not workarounds:
        return PluginFilesystem(tables, plugin)
    from modular_tf.filesystem.workarounds.filesystem import WorkaroundFilesystem  # noqa: PLC0415
    from modular_tf.filesystem.workarounds.object_store import (  # noqa: PLC0415
        ObjectStoreFilesystem,
    )

    if workarounds.lookup is None:
        return WorkaroundFilesystem(tables, plugin, workarounds)
    return ObjectStoreFilesystem(tables, plugin, workarounds)
