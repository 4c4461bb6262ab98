"""Removal of whole directory trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError

if TYPE_CHECKING:
    from modular_tf.cli.fs.place import Place


def remove_tree(place: Place) -> None:
    """Remove a directory and everything in it.

    Raises:
        FailedPreconditionError: Something could not be removed.
    """
    left = place.filesystem.delete_recursively(place.uri)
    if any(left):
        raise FailedPreconditionError(
            f"{left.undeleted_files} files and {left.undeleted_dirs} directories "
            "could not be removed",
            path=place.uri,
        )
