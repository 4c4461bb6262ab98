"""Deletion of a directory with all that is in it, by many calls at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.filesystem import defaults
from modular_tf.filesystem.filesystem import Filesystem

if TYPE_CHECKING:
    from modular_tf.filesystem.statistics import DeletedCounts


def delete_tree(fs: Filesystem, uri: str, at_once: int) -> DeletedCounts:
    """Delete a file or a directory as `Filesystem.delete_recursively` does. [any thread]

    Args:
        fs: Where it is. A filesystem that has an operation of its own for it uses that.
        uri: What to delete.
        at_once: The most calls under way.

    Returns:
        How much could not be deleted.

    Raises:
        ModularTFError: The first failure, after the rest was deleted.
    """
    method = getattr(fs.delete_recursively, "__func__", None)
    if at_once > 1 and method is Filesystem.delete_recursively:
        return defaults.delete_recursively(fs, uri, at_once)
    return fs.delete_recursively(uri)
