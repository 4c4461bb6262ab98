"""What was found at paths of object stores, kept for a second.

TensorFlow asks about one path several times while it loads one thing: whether it exists, what it
is, how long it is. A store needs two requests for each answer. What was there is kept, and never
that nothing was. Each change that TensorFlow makes forgets all of it when it has ended.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from weakref import ref

from modular_tf.errors import FailedPreconditionError, NotFoundError
from modular_tf.filesystem.files import known_length
from modular_tf.filesystem.glob import has_magic
from modular_tf.filesystem.workarounds.object_store import ObjectStoreFilesystem
from modular_tf.filesystem.workarounds.store_lookup import KINDS, LOOKUPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.filesystem.files import RandomAccessFile
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.statistics import FileStatistics

_KEPT_S = 1.0
_MOST_LOOKS = 4096

# By filesystem and URI: until when an answer counts, and the answer. A change replaces the table,
# so a look that is under way meanwhile writes to one that nobody reads.
_looks: dict[tuple[ref[Filesystem], str], tuple[float, FileStatistics]] = {}


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
    if not filesystem.is_object_store:
        return filesystem.stat(uri)
    looks, key, started = _looks, (ref(filesystem), uri), time.monotonic()
    good_until, found = looks.get(key, (0.0, None))
    if found is None or started >= good_until:
        found = filesystem.stat(uri)
        if len(looks) >= _MOST_LOOKS:
            looks.clear()
        looks[key] = started + _KEPT_S, found
    return found


def exists(filesystem: Filesystem, uri: str) -> bool:
    """Return whether a file or directory is there. [any thread]"""
    if not _is_asked_by_stat(filesystem):
        return filesystem.path_exists(uri)
    try:
        stat(filesystem, uri)
    except NotFoundError:
        return False
    return True


def is_directory(filesystem: Filesystem, uri: str) -> bool:
    """Return whether it is a directory; `NotFoundError` for nothing. [any thread]"""
    if not _is_asked_by_stat(filesystem):
        return filesystem.is_directory(uri)
    return stat(filesystem, uri).is_directory


def file_size(filesystem: Filesystem, uri: str) -> int:
    """Return a file's length. [any thread]"""
    if not _is_asked_by_stat(filesystem):
        return filesystem.get_file_size(uri)
    found = stat(filesystem, uri)
    return filesystem.get_file_size(uri) if found.is_directory else found.length


def matching_paths(filesystem: Filesystem, pattern: str) -> list[str]:
    """Return the URIs that match a pattern; one without wildcards is a path. [any thread]"""
    if has_magic(pattern) or not _is_asked_by_stat(filesystem):
        return filesystem.get_matching_paths(pattern)
    try:
        return [pattern] if exists(filesystem, pattern) else []
    except FailedPreconditionError:
        return []


def open_file(filesystem: Filesystem, uri: str) -> RandomAccessFile:
    """Open a file. What was found is forgotten where the file's length is another. [any thread]"""
    file = filesystem.new_random_access_file(uri)
    _good_until, found = _looks.get((ref(filesystem), uri), (0.0, None))
    if found is not None and found.length != known_length(file):
        _looks.pop((ref(filesystem), uri), None)
    return file


def _is_asked_by_stat(filesystem: Filesystem) -> bool:
    """Return whether `stat` takes no more requests than the questions that tell less."""
    if not isinstance(filesystem, ObjectStoreFilesystem):
        return False
    way = filesystem.workarounds.lookup or "stat"
    return KINDS[way] is LOOKUPS[way]
