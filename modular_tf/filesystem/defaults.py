"""The host's defaults for operations that a filesystem does not implement.

The algorithms are TensorFlow's (`filesystem-abi` §6) with its traps closed: loops end, a failed
copy leaves no torn target behind, child names are checked, nothing is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.errors import (
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
)
from modular_tf.filesystem.location import Overlap, is_link, overlap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.filesystem.configuration import Option
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.transactions import Transaction


def rename_file(fs: Filesystem, source: str, target: str) -> None:
    """Copy, then delete the source: not atomic, a failure between leaves both.

    Raises:
        FailedPreconditionError: The target is a directory, or a link that leads to the source.
    """
    if _is_directory(fs, target):
        raise FailedPreconditionError(
            f"rename_file {source!r}: the target {target!r} is a directory;"
            " name the file within it",
            plugin=fs.plugin,
            path=target,
            operation="rename_file",
        )
    if is_link(fs, target) and overlap((fs, source), (fs, target)) is Overlap.SAME:
        raise FailedPreconditionError(
            f"rename_file {source!r}: {target!r} is a link to it; remove the link first",
            plugin=fs.plugin,
            path=target,
            operation="rename_file",
        )
    fs.copy_file(source, target)
    fs.delete_file(source)


def _is_directory(fs: Filesystem, uri: str) -> bool:
    """Return whether a directory is known to be there."""
    try:
        return fs.is_directory(uri)
    except ModularTFError:
        return False


def get_file_size(fs: Filesystem, uri: str) -> int:
    """Return a file's length in bytes, from `stat`."""
    statistics = fs.stat(uri)
    if statistics.is_directory:
        raise FailedPreconditionError(
            f"get_file_size {uri!r}: it is a directory",
            plugin=fs.plugin,
            path=uri,
            operation="get_file_size",
        )
    return statistics.length


def transaction_text(transaction: Transaction) -> str:
    """Return where a transaction's token is and whose it is, for debugging."""
    return f"token {transaction.token!r}, owner {transaction.filesystem!r}"


def no_options(fs: Filesystem, operation: str, names: Iterable[str]) -> NotFoundError:
    """Return the error of setting options where a filesystem has none that can be set."""
    asked = ", ".join(map(repr, names)) or "none"
    return NotFoundError(
        f"{operation}: {fs.plugin} has no options that can be set for {fs.scheme!r}"
        f" (asked for: {asked})",
        plugin=fs.plugin,
        operation=operation,
    )


def configuration_option(fs: Filesystem, key: str) -> Option:
    """Return one option out of the whole configuration."""
    for option in fs.get_filesystem_configuration():
        if option.name == key:
            return option
    raise NotFoundError(
        f"get_filesystem_configuration_option: {fs.plugin} has no option {key!r}",
        plugin=fs.plugin,
        operation="get_filesystem_configuration_option",
    )
