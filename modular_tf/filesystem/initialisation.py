"""Initialising a scheme of somebody else's plugin, with the host's answers to its known defects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.filesystem.answered import answered_filesystem
from modular_tf.loading.known_defects import answers_for
from modular_tf.rules import Violation

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.loading.filesystem_tables import FilesystemTables


def initialise(
    tables: FilesystemTables,
    *,
    plugin: str,
    path: str,
    environment: MutableMapping[str, str],
    warnings: list[Violation],
) -> PluginFilesystem:
    """Call a scheme's `init` and return what serves it.

    Args:
        tables: The accepted tables.
        plugin: The plugin's name.
        path: Its library, by which its defects are known.
        environment: The process's, which answers may add to.
        warnings: Takes what was added, as broken rules (LD-056).

    Raises:
        ModularTFError: `init` failed.
    """
    answers = answers_for(path, tables.scheme)
    for change in answers.prepare_environment(environment):
        warnings.append(Violation("LD-056", f"{tables.scheme!r}: {change}"))
    return answered_filesystem(tables, plugin, answers)
