"""Opening a filesystem from the accepted tables of a scheme, with workarounds if needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.rules import Violation
from modular_tf.rules.mapping import ENVIRONMENT_FITS, SETTINGS_READ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.workarounds import Workarounds


class OpenedFilesystem(NamedTuple):
    """A filesystem, and warnings about what was changed in this process for it."""

    filesystem: PluginFilesystem
    warnings: tuple[Violation, ...]


def open_filesystem(
    tables: FilesystemTables, *, plugin: str, path: str, bundled: bool, guarded: bool = False
) -> OpenedFilesystem:
    """Return an initialised filesystem, with workarounds if the plugin has known defects.

    Args:
        tables: The accepted tables.
        plugin: The plugin's name for users.
        path: Its library, whose name identifies known defects.
        bundled: Whether it comes with this package.
        guarded: Whether its worker was bound to guarded functions; nothing without a worker.

    Raises:
        ModularTFError: The plugin's `init` failed.
    """
    if bundled:
        return OpenedFilesystem(PluginFilesystem(tables, plugin), ())
    # Imported for other people's plugins only: bundled ones have no row, and the data costs time.
    from modular_tf.loading.guarded_functions import is_guarded  # noqa: PLC0415
    from modular_tf.loading.known_defects import workarounds_for  # noqa: PLC0415
    from modular_tf.loading.unread_settings import unread_setting  # noqa: PLC0415

    workarounds = workarounds_for(path, tables.scheme)
    if tables.place is not None:  # whose environment and descriptors are not this process's
        workarounds = workarounds.in_worker(guarded)
        environment = dict(tables.place.worker.environment)
        workarounds.prepare_environment(environment)  # as the worker does, which tells of changes
        filesystem = _with_workarounds(tables, plugin, workarounds, environment)
        return OpenedFilesystem(filesystem, ())
    if is_guarded(path):
        workarounds = workarounds.where_guarded()
    changes = workarounds.prepare_environment(os.environ)
    warnings = [Violation(ENVIRONMENT_FITS, f"{tables.scheme!r}: {change}") for change in changes]
    if workarounds.unread_setting and (
        unread := unread_setting(workarounds.unread_setting, os.environ)
    ):
        warnings.append(Violation(SETTINGS_READ, f"{tables.scheme!r}: {unread}"))
    filesystem = _with_workarounds(tables, plugin, workarounds, os.environ)
    return OpenedFilesystem(filesystem, tuple(warnings))


def _with_workarounds(
    tables: FilesystemTables,
    plugin: str,
    workarounds: Workarounds,
    environment: Mapping[str, str],
) -> PluginFilesystem:
    """Return the initialised filesystem that applies these workarounds, if there are any."""
    if not workarounds:
        return PluginFilesystem(tables, plugin)
    from modular_tf.filesystem.workarounds.filesystem import WorkaroundFilesystem  # noqa: PLC0415
    from modular_tf.filesystem.workarounds.object_store import (  # noqa: PLC0415
        ObjectStoreFilesystem,
    )

    if workarounds.lookup is None:
        return WorkaroundFilesystem(tables, plugin, workarounds, environment)
    return ObjectStoreFilesystem(tables, plugin, workarounds, environment)
