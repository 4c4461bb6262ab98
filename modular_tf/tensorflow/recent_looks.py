"""What was found at paths of object stores and in listings, kept for a second.

TensorFlow asks about one path several times while it loads one thing: whether it exists, what it
is, how long it is. A store needs two requests for each answer. What was there is kept, and never
that nothing was. Each change that TensorFlow makes forgets all of it when it has ended.

TensorFlow walks a tree by the names in a directory and a question for each; where a filesystem
lists statistics with the names, they are kept too.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from modular_tf.errors import AbortedError, FailedPreconditionError, NotFoundError
from modular_tf.filesystem.child_names import reported_listing
from modular_tf.filesystem.files import known_length
from modular_tf.filesystem.glob import has_magic
from modular_tf.filesystem.uri import join_path
from modular_tf.filesystem.workarounds.object_store import ObjectStoreFilesystem
from modular_tf.filesystem.workarounds.store_lookup import KINDS, LOOKUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.files import RandomAccessFile
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.statistics import FileStatistics

_KEPT_S = 1.0
_MOST_LOOKS = 1 << 15


class _Look(NamedTuple):
    good_until: float
    found: FileStatistics
    is_length_told: bool = False  # to one who is going to read so many bytes


# By filesystem and URI. A change replaces the table, so a look that is under way meanwhile writes
# to one that nobody reads.
_looks: dict[tuple[ref[Filesystem], str], _Look] = {}


def forget_looks() -> None:
    """Forget what was found, also by looks that are under way. [any thread]"""
    global _looks  # noqa: PLW0603  (of the process, as TensorFlow's schemes are)
    _looks = {}


@contextmanager
def change() -> Iterator[None]:
    """Forget what was found when a change has ended, whatever came of it. [any thread]"""
    try:
        yield
    finally:
        forget_looks()


def stat(filesystem: Filesystem, uri: str) -> FileStatistics:
    """Return what is there; `NotFoundError` for nothing. [any thread]"""
    looks, started = _looks, time.monotonic()
    if (look := _recent(filesystem, uri)) is not None:
        return look.found
    found = filesystem.stat(uri)
    if filesystem.is_object_store:
        if len(looks) >= _MOST_LOOKS:
            looks.clear()
        looks[ref(filesystem), uri] = _Look(started + _KEPT_S, found)
    return found


def _recent(filesystem: Filesystem, uri: str) -> _Look | None:
    """Return what was found at a path within the last second."""
    look = _looks.get((ref(filesystem), uri)) if _looks else None
    return look if look is not None and time.monotonic() < look.good_until else None


def children(filesystem: Filesystem, uri: str) -> list[str]:
    """Return the names in a directory, and keep what its listing has of them. [any thread]"""
    looks = _looks
    found = reported_listing(filesystem, uri, with_statistics=True)
    if len(looks) + len(found.statistics) > _MOST_LOOKS:
        looks.clear()
    if len(found.statistics) <= _MOST_LOOKS:
        good_until, owner = time.monotonic() + _KEPT_S, ref(filesystem)
        for name, known in found.statistics.items():
            looks[owner, join_path(uri, name)] = _Look(good_until, known)
    return found.names


def exists(filesystem: Filesystem, uri: str) -> bool:
    """Return whether a file or directory is there. [any thread]"""
    if not _is_asked_by_stat(filesystem, uri):
        return filesystem.path_exists(uri)
    try:
        stat(filesystem, uri)
    except NotFoundError:
        return False
    return True


def is_directory(filesystem: Filesystem, uri: str) -> bool:
    """Return whether it is a directory; `NotFoundError` for nothing. [any thread]"""
    if not _is_asked_by_stat(filesystem, uri):
        return filesystem.is_directory(uri)
    return stat(filesystem, uri).is_directory


def file_size(filesystem: Filesystem, uri: str) -> int:
    """Return a file's length, as `open_file` is to find it. [any thread]"""
    if not _is_asked_by_stat(filesystem, uri):
        return filesystem.get_file_size(uri)
    looks, key = _looks, (ref(filesystem), uri)
    found = stat(filesystem, uri)
    if found.is_directory:
        return filesystem.get_file_size(uri)
    if (look := looks.get(key)) is not None:
        looks[key] = look._replace(is_length_told=True)
    return found.length


def matching_paths(filesystem: Filesystem, pattern: str) -> list[str]:
    """Return the URIs that match a pattern; one without wildcards is a path. [any thread]"""
    if has_magic(pattern) or not _is_asked_by_stat(filesystem, pattern):
        return filesystem.get_matching_paths(pattern)
    try:
        return [pattern] if exists(filesystem, pattern) else []
    except FailedPreconditionError:
        return []


def open_file(filesystem: Filesystem, uri: str) -> RandomAccessFile:
    """Open a file. What was found is forgotten where the file's length is another. [any thread]

    Raises:
        AbortedError: `file_size` told that other length, by which TensorFlow is going to read: it
            would take part of the file for all of it.
    """
    file = filesystem.new_random_access_file(uri)
    looks, key, length = _looks, (ref(filesystem), uri), known_length(file)
    look = looks.get(key)
    if look is not None and look.found.length != length:
        looks.pop(key, None)
        is_told = look.is_length_told and time.monotonic() < look.good_until
        if is_told and length is not None:
            file.close()
            raise AbortedError(
                f"new_random_access_file {uri!r}: it was replaced since its length was asked for,"
                f" {look.found.length} bytes then and {length} now; try again",
                plugin=filesystem.plugin,
                path=uri,
                operation="new_random_access_file",
            )
    return file


def _is_asked_by_stat(filesystem: Filesystem, uri: str) -> bool:
    """Return whether `stat` takes no more requests than the questions that tell less."""
    if _recent(filesystem, uri) is not None:
        return True
    if not isinstance(filesystem, ObjectStoreFilesystem):
        return False
    way = filesystem.workarounds.lookup or "stat"
    return KINDS[way] is LOOKUPS[way]
