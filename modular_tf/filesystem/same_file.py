"""Copying or renaming a file to itself: nothing is done, for all filesystems.

A copy may open its target before it has read its source, and a rename may be a copy that deletes
its source at the end: with one file, both would lose its content.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError
from modular_tf.filesystem.overlap import Overlap, is_link, is_one_name, overlap

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.filesystem import Filesystem

    TwoPathOperation = Callable[[Filesystem, str, str], None]

TWO_PATH_OPERATIONS = ("copy_file", "rename_file")
"""The operations that `skip_same_file` wraps."""


def skip_same_file(operation: TwoPathOperation) -> TwoPathOperation:
    """Return an operation that leaves a file alone that is copied or renamed to itself.

    A file is not copied onto a link to it, nor onto another hard link of it: the two are one file.
    A rename of a link to what it leads to is refused, for the link would replace its own file. A
    path that does not exist still raises `NotFoundError`, and a directory
    `FailedPreconditionError`.

    Args:
        operation: One of `TWO_PATH_OPERATIONS`.
    """
    name = operation.__name__

    @wraps(operation)
    def checked(self: Filesystem, source: str, target: str) -> None:
        if not _is_nothing_to_do(self, name, source, target):
            operation(self, source, target)
        elif self.stat(source).is_directory:
            raise FailedPreconditionError(
                f"{name} {source!r}: it is a directory",
                plugin=self.plugin,
                path=source,
                operation=name,
            )

    return checked


def _is_nothing_to_do(fs: Filesystem, operation: str, source: str, target: str) -> bool:
    if fs.is_same_name(source, target):
        return True
    if fs.disk_path(source) is None:  # of a store the names tell all
        return False
    is_one_file = overlap((fs, source), (fs, target)) is Overlap.SAME
    if operation == "copy_file" or not is_one_file:
        return is_one_file
    if is_one_name((fs, source), (fs, target)):
        return True
    if is_link(fs, source):
        raise FailedPreconditionError(
            f"rename_file {source!r}: it is a link to {target!r}, which the link would replace",
            plugin=fs.plugin,
            path=source,
            operation="rename_file",
        )
    return False
