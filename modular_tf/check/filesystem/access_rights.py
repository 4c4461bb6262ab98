"""Directories that nothing may be written to, and how a check comes to one."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.local_disk import local_path
from modular_tf.check.native.write_override import without_write_override

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.ground import FilesystemGround

_NO_WRITING = 0o555


@contextmanager
def read_only(ground: FilesystemGround, directory: str) -> Iterator[None]:
    """Forbid changes in a directory within the block, to this thread and whoever is not root.

    A worker process that runs the plugin keeps root's rights.

    Args:
        ground: Where it stands.
        directory: Its URI; it is there.

    Raises:
        Unsupported: It is not on a local disk, or nothing can be forbidden here.
    """
    path = local_path(ground, directory)
    if path is None:
        raise Unsupported("rights can be taken away on a local disk only")
    before = os.stat(path).st_mode
    os.chmod(path, _NO_WRITING)
    try:
        with nullcontext() if ground.subject.is_in_worker() else without_write_override():
            _expect_forbidden(path)
            yield
    finally:
        os.chmod(path, before)


def _expect_forbidden(path: str) -> None:
    """Go on where this thread really cannot write: to ask for its rights may not tell."""
    trial = os.path.join(path, "trial")
    try:
        os.mkdir(trial)
    except PermissionError:
        return
    os.rmdir(trial)
    raise Unsupported("permissions do not restrict this user on this disk")
