"""Opening a filesystem from the accepted tables of a scheme, with workarounds if needed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.rules import Violation
from modular_tf.rules.loading import ENVIRONMENT_FITS, SETTINGS_READ

if TYPE_CHECKING:
    from modular_tf.loading.filesystem_tables import FilesystemTables


class OpenedFilesystem(NamedTuple):
    """A filesystem, and warnings about what was changed in this process for it."""

    filesystem: PluginFilesystem
    warnings: tuple[Violation, ...]


def open_filesystem(
    tables: FilesystemTables, *, plugin: str, path: str, bundled: bool, guarded: bool = False
) -> OpenedFilesystem:
    """Return an initialised filesystem, with workarounds if the plugin has known defects.

    The name of the library at `path` identifies known defects; `bundled` plugins have none.
    `guarded` says that the plugin's worker was bound to guarded functions; without a worker it is
    ignored. A failed `init` of the plugin raises its `ModularTFError`.
    """
    if bundled:
        return OpenedFilesystem(PluginFilesystem(tables, plugin), ())
    # Imported for other people's plugins only: bundled ones have no known defects.
    from modular_tf.filesystem import workarounds  # noqa: PLC0415
    from modular_tf.loading.bound_files import bound_files  # noqa: PLC0415

    store = workarounds.store_class(path, tables.scheme)
    if store is None:
        return OpenedFilesystem(PluginFilesystem(tables, plugin), ())
    if tables.place is not None:  # whose environment is not this process's
        environment = dict(tables.place.worker.environment)
        # As the worker does, which reports what is changed.
        store.prepare_environment(environment, guarded=guarded)
        return OpenedFilesystem(store(tables, plugin, environment), ())
    changes = store.prepare_environment(os.environ, guarded=path in bound_files.guarded)
    filesystem = store(tables, plugin)
    warnings = [Violation(ENVIRONMENT_FITS, f"{tables.scheme!r}: {change}") for change in changes]
    if unread := store.unread_setting(os.environ):
        warnings.append(Violation(SETTINGS_READ, f"{tables.scheme!r}: {unread}"))
    return OpenedFilesystem(filesystem, tuple(warnings))
