"""Moving files and directories between places."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.cli.failures import Failures
from modular_tf.cli.fs.copying import copy, copy_file
from modular_tf.cli.fs.removal import remove_tree
from modular_tf.errors import AlreadyExistsError, FailedPreconditionError, UnimplementedError

if TYPE_CHECKING:
    from modular_tf.cli.fs.place import Place


def move_file(source: Place, target: Place) -> None:
    """Move one file; an existing target file is replaced.

    Raises:
        FailedPreconditionError: The target may be the same file by another name; both stay.
    """
    if source.shares_store_with(target):
        source.filesystem.rename_file(source.uri, target.uri)
    elif copy_file(source, target):
        source.filesystem.delete_file(source.uri)
    else:
        raise FailedPreconditionError(
            f"{target.uri} holds the same bytes and may be the same file; remove one of them",
            path=source.uri,
        )


def move_directory(source: Place, target: Place) -> None:
    """Move a directory with all that is in it to where nothing is.

    Raises:
        AlreadyExistsError: Something is at `target`; directories are not merged.
        FailedPreconditionError: Not all of it could be copied; the source is still whole.
    """
    if target.filesystem.path_exists(target.uri):
        raise AlreadyExistsError(f"{target.uri} exists already", path=target.uri)
    if source.shares_store_with(target):
        _rename_directory(source, target)
        return
    # Between two stores the source goes only when all of it has arrived.
    failures = Failures()
    for _ in copy(source, target, failures, recursive=True):
        pass
    if failures.count:
        raise FailedPreconditionError("not all of it could be copied, so it stays where it is")
    remove_tree(source)


def _rename_directory(source: Place, target: Place) -> None:
    """Let the plugin rename a directory, or what is in it where it renames files only."""
    try:
        source.filesystem.rename_file(source.uri, target.uri)
    except (FailedPreconditionError, UnimplementedError):
        target.filesystem.create_dir(target.uri)
        for child in source.children():
            move = _rename_directory if child.is_directory() else move_file
            move(child, target.child(child.name))
        source.filesystem.delete_dir(source.uri)
