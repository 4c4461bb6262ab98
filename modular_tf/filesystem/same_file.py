"""Copying or renaming a file to itself: nothing is done, for all filesystems.

A copy may open its target before it has read its source, and a rename may be a copy that deletes
its source at the end: with one file, both would lose its content.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.filesystem import Filesystem

    TwoPathOperation = Callable[[Filesystem, str, str], None]

TWO_PATH_OPERATIONS = ("copy_file", "rename_file")
"""The operations that `skip_same_file` wraps."""


def skip_same_file(operation: TwoPathOperation) -> TwoPathOperation:
    """Return an operation that leaves a file alone that is copied or renamed to itself.

    The filesystem's own names decide what is the same file (`is_same_name`). A path that does not
    exist still raises `NotFoundError`, and a directory `FailedPreconditionError`.

    Args:
        operation: One of `TWO_PATH_OPERATIONS`.
    """
    name = operation.__name__

    @wraps(operation)
    def checked(self: Filesystem, source: str, target: str) -> None:
        if not self.is_same_name(source, target):
            operation(self, source, target)
        elif self.stat(source).is_directory:
            raise FailedPreconditionError(
                f"{name} {source!r}: it is a directory",
                plugin=self.plugin,
                path=source,
                operation=name,
            )

    return checked
