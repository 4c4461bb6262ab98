"""The host's defaults for operations that a filesystem does not implement.

The algorithms are TensorFlow's (`filesystem-abi` §6) with its traps closed: loops end, a failed
copy leaves no torn target behind, child names are checked, nothing is counted twice.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.concurrency.crew import Crew
from modular_tf.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InternalError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
)
from modular_tf.filesystem.child_names import checked_listing, incomplete, unnamed_keys
from modular_tf.filesystem.overlap import Overlap, is_link, overlap
from modular_tf.filesystem.statistics import DeletedCounts
from modular_tf.filesystem.uri import join_path, parse_uri, split_last

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.filesystem.configuration import Option
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.transactions import Transaction

# No system or store has paths this long: a tree that is deeper has no end.
_MAX_URI = 1 << 14


def recursively_create_dir(fs: Filesystem, uri: str) -> None:
    """Walk up to the nearest directory that exists, then create downwards."""
    missing: list[str] = []
    current = uri.rstrip("/") if parse_uri(uri).path.strip("/") else uri
    while parse_uri(current).path:
        is_directory = _is_directory_there(fs, current)
        if is_directory:
            break
        if is_directory is not None:
            raise _not_a_directory(fs, current, "recursively_create_dir")
        missing.append(current)
        parent = split_last(current)[0]
        if parent == current:
            break
        current = parent.rstrip("/") if parse_uri(parent).path.strip("/") else parent
    for directory in reversed(missing):
        with suppress(AlreadyExistsError):
            fs.create_dir(directory)


def delete_recursively(fs: Filesystem, uri: str, at_once: int = 1) -> DeletedCounts:
    """Delete what can be deleted, deepest first; the first error is raised after the rest.

    Args:
        fs: Where it is.
        uri: A file or a directory.
        at_once: The most calls under way.

    Raises:
        ModularTFError: The first failure; it carries the counts as `undeleted`.
    """
    try:
        is_directory = _is_directory_there(fs, uri)
        if is_directory is None:
            raise _nothing_there(fs, uri)
    except ModularTFError as error:
        error.undeleted = DeletedCounts(0, 1)  # as in TensorFlow, where it is called a directory
        raise
    is_both = fs.is_file_and_directory(uri)
    if not (is_directory or is_both) or is_link(fs, uri):
        return _delete_one(fs, uri)
    deletion = _Deletion(fs, at_once)
    deletion.empty(uri, is_both=is_both)
    counts = DeletedCounts(deletion.files, deletion.dirs)
    if deletion.first_error is not None:
        deletion.first_error.undeleted = counts
        raise deletion.first_error
    return counts


def _is_directory_there(fs: Filesystem, uri: str) -> bool | None:
    """Return whether a path is a directory; None for nothing.

    A store is asked once. Of other plugins some tell the kind of what is missing, so they are asked
    for its existence before.
    """
    if not fs.is_object_store and not fs.path_exists(uri):
        return None
    try:
        return fs.is_directory(uri)
    except NotFoundError:
        return None


def _nothing_there(fs: Filesystem, uri: str) -> NotFoundError:
    return NotFoundError(
        f"delete_recursively {uri!r}: nothing is there",
        plugin=fs.plugin,
        path=uri,
        operation="delete_recursively",
    )


def _delete_one(fs: Filesystem, uri: str) -> DeletedCounts:
    try:
        fs.delete_file(uri)
    except ModularTFError as error:
        error.undeleted = DeletedCounts(1, 0)
        raise
    return DeletedCounts(0, 0)


class _Deletion:
    """The state of one recursive deletion. A name that is a file and a directory goes as both."""

    def __init__(self, fs: Filesystem, at_once: int) -> None:
        self._fs = fs
        self._at_once = at_once
        self._both: set[str] = set()
        self._kinds: dict[str, bool] = {}  # of what the listing of the present directory describes
        self.files = 0
        self.dirs = 0
        self.first_error: ModularTFError | None = None

    def empty(self, root: str, *, is_both: bool) -> None:
        """Delete the tree under and including `root`."""
        directories = [root]
        if is_both:
            self._both.add(root)
        for directory in directories:  # grows while it is walked
            try:
                found = checked_listing(self._fs, directory, with_statistics=True)
            except ModularTFError as error:
                self._note(error)
                continue
            if found.unnamed:
                unnamed = map(unnamed_keys, found.unnamed)
                self._note(incomplete(directory, unnamed, self._fs.plugin))
            self._both.update(join_path(directory, name) for name in found.both)
            self._kinds = {
                join_path(directory, name): known.is_directory
                for name, known in found.statistics.items()
            }
            self._delete_children([join_path(directory, name) for name in found.names], directories)
        for directory in reversed(directories):
            self._delete_dir(directory)

    def _delete_children(self, children: list[str], directories: list[str]) -> None:
        """Delete what is no directory, and add the directories to those that are to be emptied."""
        for outcome in Crew(self._at_once).run(self._is_left, children):
            if isinstance(outcome.error, ModularTFError):
                self._note(outcome.error)
                self.files += 1
            elif outcome.get():
                directories.append(outcome.item)

    def _is_left(self, child: str) -> bool:
        """Delete a child that is no directory; return whether it is one."""
        _check_depth(self._fs, child)
        if child in self._both:
            return True
        if not is_link(self._fs, child) and self._is_directory(child):
            return not self._goes_as_link(child)
        self._fs.delete_file(child)
        return False

    def _is_directory(self, child: str) -> bool:
        known = self._kinds.get(child)
        return self._fs.is_directory(child) if known is None else known

    def _goes_as_link(self, child: str) -> bool:
        """Return whether a child was deleted as a link; the target of a link is left alone.

        No operation tells a link; a directory refuses to be deleted like a file, or, in stores
        that have nothing to delete by its name, is still there afterwards.

        Raises:
            PermissionDeniedError: It may be a link whose target must stay.
        """
        try:
            self._fs.delete_file(child)
            return not self._fs.path_exists(child)
        except PermissionDeniedError:
            raise
        except ModularTFError:
            return False

    def _delete_dir(self, directory: str) -> None:
        is_both = directory in self._both
        try:
            with suppress(NotFoundError):  # in an object store it goes with the last file in it
                if not is_both or self._fs.is_directory(directory):
                    self._fs.delete_dir(directory)
            if is_both:
                self._fs.delete_file(directory)
        except ModularTFError as error:
            self._note(error)
            self.dirs += 1

    def _note(self, error: ModularTFError) -> None:
        if self.first_error is None:
            self.first_error = error


def _check_depth(fs: Filesystem, child: str) -> None:
    if len(child) > _MAX_URI:
        raise InternalError(
            f"delete_recursively: no tree is so deep: {child[:60]!r}...",
            plugin=fs.plugin,
            operation="delete_recursively",
        )


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


def _not_a_directory(fs: Filesystem, uri: str, operation: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{operation} {uri!r}: it is not a directory",
        plugin=fs.plugin,
        path=uri,
        operation=operation,
    )
