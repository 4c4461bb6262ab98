"""Whether two places are one, or one of them holds the other: by identity, not by spelling.

Whatever copies, moves, compares or removes asks here. A copy onto itself empties its source, a
copy into itself never ends, and a move or a removal through a link takes what lies elsewhere.

A place on the disk is known by its real path and by device and inode, of the directories above it
too. A place of a store is known by the name that its plugin is given (`Filesystem.name_in_store`).
"""

from __future__ import annotations

import os
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem

    Place = tuple[Filesystem | None, str]
    """A filesystem with a URI of it; None with a path of this machine."""

Identity = tuple[int, int]
"""Device and inode of a directory of the disk."""


class Overlap(Enum):
    """What one place has in common with another."""

    APART = auto()
    """Neither is, or holds, the other."""

    SAME = auto()
    """Both are one file or one directory."""

    HOLDS = auto()
    """The other one lies somewhere below the first one."""

    WITHIN = auto()
    """The first one lies somewhere below the other one."""


def overlap(one: Place, other: Place) -> Overlap:
    """Return what two places have in common; neither needs to exist. [any thread]

    Two hard links of one file are the same place, and so are a link and what it leads to.

    Args:
        one: The first place.
        other: The second place.
    """
    here, there = disk_path(*one), disk_path(*other)
    if here is not None and there is not None:
        return _overlap_on_disk(here, there)
    if one[0] is None or other[0] is None or not _is_one_store(one[0], other[0]):
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

    A link and what it leads to have two names, and so have two hard links of one file.
    """
    here, there = disk_path(*one), disk_path(*other)
    if here is not None and there is not None:
        return _entry(here) == _entry(there)
    return overlap(one, other) is Overlap.SAME


def _entry(path: str) -> tuple[str, str]:
    directory, name = os.path.split(path.rstrip("/"))
    return os.path.realpath(directory), name


def identity(filesystem: Filesystem | None, uri: str) -> Identity | None:
    """Return what a directory of the disk is known by; None for another place. [any thread]

    A walk keeps the identities of the directories above the one that it comes to: a link that leads
    back to one of them has no end. Stores have no links.
    """
    path = disk_path(filesystem, uri)
    return None if path is None else _identity(path)


def _identity(path: str) -> Identity | None:
    try:
        facts = os.stat(path)
    except (OSError, ValueError):
        return None
    return facts.st_dev, facts.st_ino


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


def _is_one_store(one: Filesystem, other: Filesystem) -> bool:
    return one.shares_store_with(other) or one.store is other.store
