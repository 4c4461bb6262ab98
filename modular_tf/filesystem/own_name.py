"""What becomes of a file that is copied or renamed to itself: it stays, whoever serves it.

A copy may open its target before it has read its source, and a rename may be a copy that deletes
its source at the end: of one file, both leave nothing.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING

from modular_tf.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.filesystem import Filesystem

    OnTwo = Callable[[Filesystem, str, str], None]

ON_TWO_NAMES = ("copy_file", "rename_file")
"""The operations that `unless_itself` is for."""


def unless_itself(operation: OnTwo) -> OnTwo:
    """Wrap an operation of `ON_TWO_NAMES`, which is then called with two different names only.

    Two names of one file are those that the filesystem translates alike. A file stays as it is;
    what is not there raises `NotFoundError`, and a directory `FailedPreconditionError`, as under
    another name.
    """
    name = operation.__name__

    @wraps(operation)
    def guarded(self: Filesystem, source: str, target: str) -> None:
        if not self.is_same_name(source, target):
            operation(self, source, target)
        elif self.stat(source).is_directory:
            raise FailedPreconditionError(
                f"{name} {source!r}: it is a directory",
                plugin=self.plugin,
                path=source,
                operation=name,
            )

    return guarded
