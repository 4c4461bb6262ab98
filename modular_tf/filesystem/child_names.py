"""Validation of the names in a directory.

A name that is empty, `.`, `..` or holds a slash would lead a walk in circles or out of its tree.
"""

from __future__ import annotations

import warnings
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.errors import DataLossError, InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.statistics import FileStatistics


FILE_AND_DIRECTORY = "is a file and a directory"
"""What is reported of a name that no path tells apart."""


class IncompleteListingWarning(UserWarning):
    """A directory of a store was listed, and more is there than paths can name.

    The warning names the directory and what was left out. Copies, moves and removals of trees fail
    instead. `warnings.simplefilter("error", modular_tf.IncompleteListingWarning)` makes it an error
    everywhere.
    """


class Listing(NamedTuple):
    """What is in a directory of a filesystem.

    Attributes:
        names: The names in it, sorted, each once.
        unnamed: Parts of keys of a store that are no names, as `..`, so that no path leads to
            them; "" stands for keys with a doubled slash.
        both: Names of files that are directories too.
        statistics: By name, what `stat` would return, as far as the listing has it. Of other names
            `stat` is to be asked, always of those in `both`.
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

    One that it lists twice is an object and a directory.
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


def complete_listing(fs: Filesystem, uri: str, *, with_statistics: bool = False) -> Listing:
    """Return the validated listing of a directory that has nothing else in it.

    Raises:
        DataLossError: Something in it has no path.
    """
    found = checked_listing(fs, uri, with_statistics=with_statistics)
    if found.left_out:
        raise incomplete(uri, found.left_out, fs.plugin)
    return found


def reported_listing(fs: Filesystem, uri: str, *, with_statistics: bool = False) -> Listing:
    """Return the listing of a directory; warn of what else is in it, as `get_children` does."""
    if not with_statistics:
        return Listing(fs.get_children(uri))
    found = checked_listing(fs, uri, is_thorough=False, with_statistics=True)
    warn_left_out(uri, found.left_out)
    return found


def incomplete(uri: str, left_out: Iterable[str], plugin: str | None = None) -> DataLossError:
    """Return the error that names what of a directory was left out."""
    return DataLossError.of("get_children", uri, "; ".join(left_out), plugin=plugin)


def clean_names(names: Iterable[str], *, plugin: str, uri: str) -> list[str]:
    """Return the names sorted, each once, without the trailing slash some put on directories.

    Raises:
        InternalError: A name cannot be that of a child.
    """
    cleaned = {name.removesuffix("/") for name in names}
    for child in cleaned:
        if not _is_name(child):
            text = f"{plugin} gave the name {child!r}, which no child can have"
            raise InternalError.of("get_children", uri, text, plugin=plugin)
    return sorted(cleaned)


def checked_listing(
    fs: Filesystem, uri: str, *, is_thorough: bool = True, with_statistics: bool = False
) -> Listing:
    """Return the validated listing of a directory, for any filesystem."""
    found = fs.listing(uri, is_thorough=is_thorough, with_statistics=with_statistics)
    return found._replace(names=clean_names(found.names, plugin=fs.plugin, uri=uri))
