"""From the accepted tables of a scheme to a filesystem that is initialised."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.rules import Violation
from modular_tf.rules.mapping import ENVIRONMENT_FITS

if TYPE_CHECKING:
    from modular_tf.loading.filesystem_tables import FilesystemTables


class OpenedFilesystem(NamedTuple):
    """A filesystem, and what had to be changed in this process for it."""

    filesystem: PluginFilesystem
    warnings: tuple[Violation, ...]


def open_filesystem(
    tables: FilesystemTables, *, plugin: str, path: str, bundled: bool
) -> OpenedFilesystem:
    """Initialise a scheme, with the host's answers where the plugin has known defects.

    Args:
        tables: The accepted tables.
        plugin: The plugin's name for users.
        path: Its library, by whose name defects are known.
        bundled: Whether it comes with this package.

    Raises:
        ModularTFError: The plugin's `init` failed.
    """
    if bundled:
        return OpenedFilesystem(PluginFilesystem(tables, plugin), ())
    # Imported for other people's plugins only: ours have no row, and the data costs time.
    from modular_tf.filesystem.workarounds.selection import answered_filesystem  # noqa: PLC0415
    from modular_tf.loading.known_defects import answers_for  # noqa: PLC0415

    answers = answers_for(path, tables.scheme)
    changes = answers.prepare_environment(os.environ)
    warnings = tuple(
        Violation(ENVIRONMENT_FITS, f"{tables.scheme!r}: {change}") for change in changes
    )
    return OpenedFilesystem(answered_filesystem(tables, plugin, answers), warnings)
