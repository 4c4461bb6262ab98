"""Locations of files, and whether two of them are one place or one holds the other.

Identity decides, not spelling: a place on the disk is known by its real path and by device and
inode, of the directories above it too; a place of a store by the name that its plugin is given
(`Filesystem.name_in_store`). The names in a directory are checked: one that is empty, `.`, `..` or
holds a slash would lead a walk in circles or out of its tree.
"""

from __future__ import annotations

import os
import warnings
from enum import Enum, auto
from functools import wraps
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from modular_tf.errors import (
    DataLossError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from modular_tf.filesystem.files import FileStatistics
    from modular_tf.filesystem.filesystem import Filesystem

    Place = tuple[Filesystem, str]
    """A location, perhaps as a plain tuple."""

    TwoPathOperation = Callable[[Filesystem, str, str], None]

Identity = tuple[int, int]
"""Device and inode of a directory of the disk."""


class Location(NamedTuple):
    """A file or directory, there or not; `uri` is as the user wrote it, or made for a child."""

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

        `NotFoundError` if not even its bucket exists.
        """
        try:
            return self.filesystem.is_directory(self.uri)
        except NotFoundError as error:
            if self.filesystem.is_missing_bucket(error):
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
    (fs, uri), (other_fs, other_uri) = one, other
    here, there = fs.disk_path(uri), other_fs.disk_path(other_uri)
    if here is None or there is None:
        if not (fs.shares_store_with(other_fs) or fs.store is other_fs.store):
            return Overlap.APART
        return _overlap_of_names(fs.name_in_store(uri), other_fs.name_in_store(other_uri))
    here, there = os.path.realpath(here), os.path.realpath(there)
    of_one, of_other = _identity(here), _identity(there)
    if of_one is not None and of_one == of_other:
        return Overlap.SAME
    found = _overlap_of_names(here, there)
    if found is Overlap.APART:  # a directory may be mounted at a second place
        if of_one is not None and of_one in map(_identity, _above(there)):
            return Overlap.HOLDS
        if of_other is not None and of_other in map(_identity, _above(here)):
            return Overlap.WITHIN
    return found


def _overlap_of_names(one: str, other: str) -> Overlap:
    one, other = one.rstrip("/"), other.rstrip("/")
    if one == other:
        return Overlap.SAME
    if other.startswith(f"{one}/"):
        return Overlap.HOLDS
    return Overlap.WITHIN if one.startswith(f"{other}/") else Overlap.APART


def _above(path: str) -> list[str]:
    """Return the directories above a path, the nearest one first."""
    found: list[str] = []
    while (parent := os.path.dirname(path)) != path:
        found.append(parent)
        path = parent
    return found


def is_link(filesystem: Filesystem, uri: str) -> bool:
    """Return whether a symbolic link of the disk has this name. [any thread]"""
    path = filesystem.disk_path(uri)
    return path is not None and os.path.islink(path.rstrip("/"))


def is_one_name(one: Place, other: Place) -> bool:
    """Return whether two places are one entry of one directory. [any thread]

    A link and its target have two names, and so have two hard links of one file.
    """
    here, there = one[0].disk_path(one[1]), other[0].disk_path(other[1])
    if here is None or there is None:
        return overlap(one, other) is Overlap.SAME
    (directory, name), (other_directory, other_name) = (
        os.path.split(path.rstrip("/")) for path in (here, there)
    )
    same_directory = os.path.realpath(directory) == os.path.realpath(other_directory)
    return same_directory and name == other_name


def identity(filesystem: Filesystem, uri: str) -> Identity | None:
    """Return device and inode of a directory of the disk; None for another place. [any thread]"""
    path = filesystem.disk_path(uri)
    return None if path is None else _identity(path)


def _identity(path: str) -> Identity | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def entered(directory: Place, above: tuple[Identity, ...]) -> tuple[Identity, ...]:
    """Return the identities above the entries of a directory, given those above itself.

    `FailedPreconditionError` if a link leads back to a directory above it.
    """
    known = identity(*directory)
    if known is None:
        return above
    if known in above:
        raise FailedPreconditionError(
            "leads back to a directory above it, and was left out", path=directory[1]
        )
    return (*above, known)


def refuse_overlap(source: Location, target: Location, *, is_move: bool = False) -> None:
    """Raise `FailedPreconditionError` for a copy onto itself, or of a directory into itself.

    Of two hard links of one file, a move removes the source and leaves the target.
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
    """Return the operation, changed to leave a file that is its own target as it is.

    A plugin's copy or rename would lose its content. A file is not copied onto a link to it, nor
    onto another hard link of it. A rename of a link to its target is refused, for the link would
    replace its own file. A path that does not exist still raises `NotFoundError`, and a directory
    `FailedPreconditionError`.
    """
    name = operation.__name__

    @wraps(operation)
    def checked(self: Filesystem, source: str, target: str) -> None:
        is_one = self.is_same_name(source, target)
        if not is_one and self.disk_path(source) is not None:  # names of a store have no links
            one, other = (self, source), (self, target)
            is_one = overlap(one, other) is Overlap.SAME
            if is_one and name == "rename_file" and not is_one_name(one, other):
                if is_link(*one):
                    why = f"it is a link to {target!r}, which the link would replace"
                    raise FailedPreconditionError.of(name, source, why, plugin=self.plugin)
                is_one = False
        if not is_one:
            operation(self, source, target)
        elif self.stat(source).is_directory:
            why = "it is a directory"
            raise FailedPreconditionError.of(name, source, why, plugin=self.plugin)

    return checked


# -- the names in a directory -----------------------------------------------------------------

FILE_AND_DIRECTORY = "is a file and a directory"
"""What is reported of a name whose one path stands for both."""


class IncompleteListingWarning(UserWarning):
    """A directory of a store was listed, and more is there than paths can name.

    The warning names the directory and what was left out. Copies, moves and removals of trees fail
    instead. `warnings.simplefilter("error", modular_tf.IncompleteListingWarning)` makes it an error
    everywhere.
    """


class Listing(NamedTuple):
    """What is in a directory of a filesystem.

    `names` are sorted, each once; those in `both` are names of a file and of a directory. `unnamed`
    are parts of keys of a store that are no names, such as `..`, so that no path leads to them; ""
    stands for keys with a doubled slash. `statistics` are what `stat` would return, as far as the
    listing has it; of other names, and of all in `both`, `stat` is to be asked.
    """

    names: list[str]
    unnamed: tuple[str, ...] = ()
    both: frozenset[str] = frozenset()
    statistics: Mapping[str, FileStatistics] = MappingProxyType({})

    @property
    def left_out(self) -> list[str]:
        """What is not reached by the names, a sentence each."""
        both = (f"{n!r} {FILE_AND_DIRECTORY}, one of which was left out" for n in self.both)
        return [*sorted(both), *map(unnamed_keys, self.unnamed)]


def unnamed_keys(part: str) -> str:
    """Return a sentence on the keys with a part that is no name."""
    kind = "such a part" if part else "'//'"
    return f"{part!r} was left out: no path leads to keys with {kind}"


def store_listing(names: Iterable[str]) -> Listing:
    """Return the listing of a directory from names of a store, whose keys may be no paths.

    A name that the store lists twice is an object and a directory.
    """
    good: set[str] = set()
    both: set[str] = set()
    unnamed: set[str] = set()
    for name in names:
        child = name.removesuffix("/")
        if not _is_name(child):
            unnamed.add(child)
        elif child in good:
            both.add(child)
        else:
            good.add(child)
    return Listing(sorted(good), tuple(sorted(unnamed)), frozenset(both))


def _is_name(child: str) -> bool:
    return child not in ("", ".", "..") and "/" not in child


def warn_left_out(uri: str, left_out: Iterable[str]) -> None:
    """Warn of what a listing left out, if anything; by default Python shows it once a directory."""
    if text := "; ".join(left_out):
        warnings.warn(f"{uri}: {text}", IncompleteListingWarning, stacklevel=3)


def incomplete(uri: str, left_out: Iterable[str], plugin: str | None = None) -> DataLossError:
    """Return the error that names what a listing of a directory left out."""
    return DataLossError.of("get_children", uri, "; ".join(left_out), plugin=plugin)


def clean_names(names: Iterable[str], *, plugin: str, uri: str) -> list[str]:
    """Return the names sorted, each once, without the trailing slash some put on directories.

    `InternalError` if a name cannot be that of a child.
    """
    cleaned = {name.removesuffix("/") for name in names}
    for child in cleaned:
        if not _is_name(child):
            text = f"{plugin} gave the name {child!r}, which no child can have"
            raise InternalError.of("get_children", uri, text, plugin=plugin)
    return sorted(cleaned)


def checked_listing(
    fs: Filesystem,
    uri: str,
    *,
    on_left_out: Literal["keep", "warn", "raise"] = "keep",
    is_thorough: bool = True,
    with_statistics: bool = False,
) -> Listing:
    """Return the validated listing of a directory, for any filesystem.

    What no path leads to is only in the listing ("keep"), or raises `DataLossError`, or is warned
    of as by `get_children`, which makes no request of its own to find it.
    """
    if on_left_out == "warn" and not with_statistics:
        return Listing(fs.get_children(uri))
    is_thorough = is_thorough and on_left_out != "warn"
    found = fs.listing(uri, is_thorough=is_thorough, with_statistics=with_statistics)
    found = found._replace(names=clean_names(found.names, plugin=fs.plugin, uri=uri))
    if on_left_out == "raise" and found.left_out:
        raise incomplete(uri, found.left_out, fs.plugin)
    if on_left_out == "warn":
        warn_left_out(uri, found.left_out)
    return found
