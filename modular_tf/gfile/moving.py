"""Renaming directories where a filesystem renames files only.

`tf.io.gfile.rename` moves directories on TensorFlow's own local filesystem, while the contract of
plugins lets `rename_file` refuse them. What is refused is moved here entry by entry: no data is
copied, but it is not atomic, and a failure leaves part of the tree at either place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.concurrency.crew import Crew
from modular_tf.errors import FailedPreconditionError, InvalidArgumentError
from modular_tf.filesystem.child_names import complete_listing
from modular_tf.filesystem.overlap import Overlap, is_link, overlap
from modular_tf.filesystem.uri import join_path

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem


def rename(fs: Filesystem, source: str, target: str, at_once: int = 1) -> None:
    """Move a file or directory, replacing a file or an empty directory of the same kind.

    Args:
        fs: Where both are.
        source: What to move.
        target: Its new name.
        at_once: The most calls under way, where a directory is moved entry by entry.

    Raises:
        FailedPreconditionError: The target is of the other kind, or a directory that holds
            something.
        InvalidArgumentError: A directory was to be moved into itself.
        NotFoundError: The source, or the directory of the target, does not exist.
    """
    if not _is_renamed(fs, source, target):
        _move_directory(fs, source, target, at_once)


def _is_renamed(fs: Filesystem, source: str, target: str) -> bool:
    """Rename what can be renamed; return False for a directory that is refused."""
    try:
        fs.rename_file(source, target)
    except FailedPreconditionError:
        if not _is_directory(fs, source):
            raise
        return False
    return True


def _is_directory(fs: Filesystem, uri: str) -> bool:
    try:
        return fs.is_directory(uri)
    except FailedPreconditionError:  # under a file
        return False


def _move_directory(fs: Filesystem, source: str, target: str, at_once: int) -> None:
    found = overlap((fs, source), (fs, target))
    if found is Overlap.SAME:
        return
    if is_link(fs, source):
        raise FailedPreconditionError(
            f"rename {source!r} to {target!r}: it is a link to a directory, which"
            f" {fs.plugin} does not rename",
            plugin=fs.plugin,
            path=source,
            operation="rename_file",
        )
    if found is Overlap.HOLDS:
        raise InvalidArgumentError(f"rename {source!r} to {target!r}: into itself", path=source)
    _require_empty_directory(fs, target)
    children = [
        (join_path(source, name), join_path(target, name))
        for name in complete_listing(fs, source).names
    ]
    outcomes = Crew(at_once).run(lambda pair: _is_renamed(fs, *pair), children)
    for directory in [outcome.item for outcome in outcomes if not outcome.get()]:
        _move_directory(fs, *directory, at_once)
    fs.delete_dir(source)


def _require_empty_directory(fs: Filesystem, target: str) -> None:
    """Create the directory `target`, or raise if it exists and is not empty."""
    if not fs.path_exists(target):
        fs.create_dir(target)
    elif not fs.is_directory(target) or any(fs.listing(target)):
        raise FailedPreconditionError(
            f"rename: the target {target!r} is no empty directory",
            plugin=fs.plugin,
            path=target,
            operation="rename_file",
        )
