"""Validation of the names in a directory.

A name that is empty, `.`, `..` or holds a slash would lead a walk in circles or out of its tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.errors import DataLossError, InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.filesystem.filesystem import Filesystem


class Listing(NamedTuple):
    """What is in a directory, as far as paths can name it.

    Attributes:
        names: The names in it, sorted, each once.
        left_out: What else is there, a sentence each: keys of a store that no path leads to.
    """

    names: list[str]
    left_out: list[str]


def store_listing(names: Iterable[str]) -> Listing:
    """Return the listing of a directory of a store, whose keys may be no paths.

    Args:
        names: As the store lists them. One that it lists twice is an object and a directory.
    """
    good: set[str] = set()
    left_out: set[str] = set()
    for name in names:
        child = name.removesuffix("/")
        if not child or child in (".", "..") or "/" in child:
            left_out.add(f"{child!r} was left out: no path leads to keys with such a part")
        elif child in good:
            left_out.add(f"{child!r} is a file and a directory, one of which was left out")
        else:
            good.add(child)
    return Listing(sorted(good), sorted(left_out))


def complete_children(fs: Filesystem, uri: str) -> list[str]:
    """Return the names of the children of a directory that has no others.

    Raises:
        DataLossError: Something in it has no path.
    """
    names, left_out = fs.listing(uri)
    if left_out:
        raise incomplete(fs, uri, left_out)
    return names


def incomplete(fs: Filesystem, uri: str, left_out: list[str]) -> DataLossError:
    """Return the error that says what of a directory was left out."""
    return DataLossError(
        f"get_children {uri!r}: {'; '.join(left_out)}",
        plugin=fs.plugin,
        path=uri,
        operation="get_children",
    )


def clean_names(names: Iterable[str], *, plugin: str, uri: str) -> list[str]:
    """Return the names sorted, each once, without the trailing slash some put on directories.

    An object store may list one name twice, as an object and as the folder of others.

    Raises:
        InternalError: A name cannot be that of a child.
    """
    cleaned = set()
    for name in names:
        child = name.removesuffix("/")
        if not child or child in (".", "..") or "/" in child:
            raise InternalError(
                f"get_children {uri!r}: {plugin} gave the name {name!r}, which no child can have",
                plugin=plugin,
                path=uri,
                operation="get_children",
            )
        cleaned.add(child)
    return sorted(cleaned)


def checked_children(fs: Filesystem, uri: str) -> list[str]:
    """Return the validated names of the children of a directory, for any filesystem."""
    return clean_names(fs.get_children(uri), plugin=fs.plugin, uri=uri)


def checked_listing(fs: Filesystem, uri: str) -> Listing:
    """Return the validated listing of a directory, for any filesystem."""
    names, left_out = fs.listing(uri)
    return Listing(clean_names(names, plugin=fs.plugin, uri=uri), left_out)
