"""The statistics of a place, for output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.cli.text import size
from modular_tf.concurrency.crew import results_at_once
from modular_tf.errors import ModularTFError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.cli.fs.place import Place
    from modular_tf.filesystem.statistics import FileStatistics


def kind(statistics: FileStatistics | None) -> str:
    """Return "directory", "file", or "other" for what is listed but cannot be looked at."""
    if statistics is None:
        return "other"
    return "directory" if statistics.is_directory else "file"


def shown_size(n_bytes: int, *, human: bool) -> str:
    """Return a number of bytes as lines have it: bare, or with a unit for people."""
    return size(n_bytes) if human else str(n_bytes)


def counted_directories(count: int) -> str:
    """Return a number of directories in words."""
    return "1 directory" if count == 1 else f"{count} directories"


def as_object(place: Place, statistics: FileStatistics | None) -> dict[str, Any]:
    """Return the facts as JSON output has them."""
    length, changed = None, 0
    if statistics is not None:
        length = None if statistics.is_directory else statistics.length
        changed = statistics.mtime_nsec
    return {
        "uri": place.uri,
        "name": place.name,
        "type": kind(statistics),
        "size": length,
        "mtime_ns": changed if changed > 0 else None,
    }


def stat_listed(place: Place) -> FileStatistics | None:
    """Return the statistics of a listed name; None if that fails, as for a dangling link."""
    try:
        return place.stat()
    except ModularTFError:
        return None


def stat_all_listed(places: Sequence[Place], at_once: int) -> list[FileStatistics | None]:
    """Return the statistics of many places, some requested at once."""
    return results_at_once(stat_listed, places, at_once)
