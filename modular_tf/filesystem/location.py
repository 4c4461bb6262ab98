"""Locations of files, and whether two of them are one place or one holds the other.

A location is a filesystem and a URI of it. Identity decides, not spelling: a place on the disk is
known by its real path and by device and inode, of the directories above it too; a place of a store
by the name that its plugin is given (`Filesystem.name_in_store`). Every copy, move, comparison and
removal asks here: a copy onto itself empties its source, a copy into itself never ends, and a move
or a removal through a link takes files that lie elsewhere.
"""

from __future__ import annotations

import os
from enum import Enum, auto
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.errors import FailedPreconditionError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.statistics import FileStatistics

    Place = tuple[Filesystem | None, str]
    """A location; None with a path stands for the files of this machine."""

    TwoPathOperation = Callable[[Filesystem, str, str], None]

Identity = tuple[int, int]
"""Device and inode of a directory of the disk."""


class Location(NamedTuple):
    """A file or directory, there or not.

    Attributes:
        filesystem: The filesystem of the URI's scheme.
        uri: As the user wrote it, or the URI of a child made from that.
    """

    filesystem: Filesystem
    uri: str

    @property
    def name(self) -> str:
        """The last part of the path; empty for the root of a store."""
        path = self.uri.partition("://")[2] or self.uri
        return path.rstrip("/").rpartition("/")[2]

    def child(self, name: str) -> Location:
        """Return the location of the entry `name` in this directory."""
        separator = "" if self.uri.endswith("/") else "/"
        return Location(self.filesystem, f"{self.uri}{separator}{name}")

    def stat(self) -> FileStatistics:
        """Return size, modification time and kind."""
        return self.filesystem.stat(self.uri)

    def is_directory(self) -> bool:
        """Return whether it is a directory; False if nothing exists.

        Raises:
            NotFoundError: Not even its bucket exists.
        """
        try:
            return self.filesystem.is_directory(self.uri)
        except NotFoundError as error:
            if self.filesystem.is_missing_store(error):
                raise
            return False

    def shares_store_with(self, other: Location) -> bool:
        """Return whether the filesystem of this location can work on both."""
        return self.filesystem.shares_store_with(other.filesystem)


class Overlap(Enum):
    """The relation of one place to another."""

    APART = auto()
    """Neither is, or holds, the other."""

    SAME = auto()
    """Both are one file or one directory."""

    HOLDS = auto()
    """The other one lies somewhere below the first one."""

    WITHIN = auto()
    """The first one lies somewhere below the other one."""


def overlap(one: Place, other: Place) -> Overlap:
    """Return how two places overlap; neither needs to exist. [any thread]

    Two hard links of one file are the same place, and so are a link and its target.
    """
    here, there = disk_path(*one), disk_path(*other)
    if here is not None and there is not None:
        return _overlap_on_disk(here, there)
    if one[0] is None or other[0] is None:
        return Overlap.APART
    if not (one[0].shares_store_with(other[0]) or one[0].store is other[0].store):
        return Overlap.APART
    return _overlap_of_names(one[0].name_in_store(one[1]), other[0].name_in_store(other[1]))


def disk_path(filesystem: Filesystem | None, uri: str) -> str | None:
    """Return the path on this machine's disk that a URI names; None where it names none."""
    return uri if filesystem is None else filesystem.disk_path(uri)


def is_link(filesystem: Filesystem | None, uri: str) -> bool:
    """Return whether a symbolic link of the disk has this name. [any thread]"""
    path = disk_path(filesystem, uri)
    return path is not None and os.path.islink(path.rstrip("/"))


def is_one_name(one: Place, other: Place) -> bool:
    """Return whether two places are one entry of one directory. [any thread]

    A link and its target have two names, and so have two hard links of one file.
    """
    here, there = disk_path(*one), disk_path(*other)
    if here is not None and there is not None:
        return _entry(here) == _entry(there)
    return overlap(one, other) is Overlap.SAME


def _entry(path: str) -> tuple[str, str]:
    directory, name = os.path.split(path.rstrip("/"))
    return os.path.realpath(directory), name


def identity(filesystem: Filesystem | None, uri: str) -> Identity | None:
    """Return device and inode of a directory of the disk; None for another place. [any thread]

    A walk keeps the identities of the directories above its own: a link that leads back to one of
    them has no end. Stores have no links.
    """
    path = disk_path(filesystem, uri)
    return None if path is None else _identity(path)


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def entered(directory: Place, above: tuple[Identity, ...]) -> tuple[Identity, ...]:
    """Return the identities above the entries of a directory, given those above itself.

    Raises:
        FailedPreconditionError: A link leads back to a directory above it.
    """
    known = identity(*directory)
    if known is None:
        return above
    if known in above:
        raise FailedPreconditionError(
            "leads back to a directory above it, and was left out", path=directory[1]
        )
    return (*above, known)


def _overlap_on_disk(one: str, other: str) -> Overlap:
    here, there = os.path.realpath(one), os.path.realpath(other)
    of_one, of_other = _identity(here), _identity(there)
    if here == there or (of_one is not None and of_one == of_other):
        return Overlap.SAME
    found = _overlap_of_names(here, there)
    if found is not Overlap.APART:
        return found
    # A directory may be mounted at a second place.
    if of_one is not None and of_one in map(_identity, _above(there)):
        return Overlap.HOLDS
    if of_other is not None and of_other in map(_identity, _above(here)):
        return Overlap.WITHIN
    return Overlap.APART


def _above(path: str) -> list[str]:
    """Return the directories above a path, the nearest one first."""
    found: list[str] = []
    while (parent := os.path.dirname(path)) != path:
        found.append(parent)
        path = parent
    return found


def _overlap_of_names(one: str, other: str) -> Overlap:
    one, other = one.rstrip("/"), other.rstrip("/")
    if one == other:
        return Overlap.SAME
    if other.startswith(f"{one}/"):
        return Overlap.HOLDS
    return Overlap.WITHIN if one.startswith(f"{other}/") else Overlap.APART


def refuse_overlap(source: Location, target: Location, *, is_move: bool = False) -> None:
    """Raise if a file is copied onto itself, or a directory into itself.

    Args:
        source: What is copied or moved.
        target: Where it arrives.
        is_move: Of two hard links of one file, the source is removed and the target stays.

    Raises:
        FailedPreconditionError: It would destroy the source, or never end.
    """
    found = overlap(source, target)
    if found is Overlap.SAME:
        is_one_entry = is_link(*source) or is_link(*target) or is_one_name(source, target)
        if is_one_entry or not is_move:
            raise FailedPreconditionError(f"{target.uri} is the same file", path=source.uri)
    elif found is Overlap.HOLDS and source.is_directory():
        raise FailedPreconditionError(f"{target.uri} lies within it", path=source.uri)


TWO_PATH_OPERATIONS = ("copy_file", "rename_file")
"""The operations that `skip_same_file` wraps."""


def skip_same_file(operation: TwoPathOperation) -> TwoPathOperation:
    """Return an operation that does nothing to a file that is copied or renamed to itself.

    A copy may open its target before it has read its source, and a rename may be a copy that
    deletes its source at the end: with one file, both would lose its content. A file is not copied
    onto a link to it, nor onto another hard link of it. A rename of a link to its target is
    refused, for the link would replace its own file. A path that does not exist still raises
    `NotFoundError`, and a directory `FailedPreconditionError`.

    Args:
        operation: One of `TWO_PATH_OPERATIONS`.
    """
    name = operation.__name__

    @wraps(operation)
    def checked(self: Filesystem, source: str, target: str) -> None:
        if not _is_nothing_to_do(self, name, source, target):
            operation(self, source, target)
        elif self.stat(source).is_directory:
            raise _refused(self, name, source, "it is a directory")

    return checked


def _is_nothing_to_do(fs: Filesystem, operation: str, source: str, target: str) -> bool:
    if fs.is_same_name(source, target):
        return True
    if fs.disk_path(source) is None:  # names of a store have no links
        return False
    is_one_file = overlap((fs, source), (fs, target)) is Overlap.SAME
    if operation == "copy_file" or not is_one_file:
        return is_one_file
    if is_one_name((fs, source), (fs, target)):
        return True
    if is_link(fs, source):
        why = f"it is a link to {target!r}, which the link would replace"
        raise _refused(fs, operation, source, why)
    return False


def _refused(fs: Filesystem, operation: str, uri: str, why: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"{operation} {uri!r}: {why}", plugin=fs.plugin, path=uri, operation=operation
    )
