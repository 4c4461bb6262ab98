"""Which filesystem serves a plugin's scheme, by what is known of the plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.filesystem.workarounds.filesystem import AnsweredFilesystem
from modular_tf.filesystem.workarounds.object_store import ObjectStoreFilesystem

if TYPE_CHECKING:
    from modular_tf.loading.defect_answers import Answers
    from modular_tf.loading.filesystem_tables import FilesystemTables


def answered_filesystem(
    tables: FilesystemTables, plugin: str, answers: Answers
) -> PluginFilesystem:
    """Initialise a scheme of a plugin, with the host's answers to its known defects.

    Args:
        tables: The accepted tables.
        plugin: The plugin's name.
        answers: What to do differently; nothing for most plugins.

    Raises:
        ModularTFError: The plugin's `init` failed.
    """
    if not answers:
        return PluginFilesystem(tables, plugin)
    if answers.lookup is None:
        return AnsweredFilesystem(tables, plugin, answers)
    return ObjectStoreFilesystem(tables, plugin, answers)
