"""The statistics of a place, for output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.threads import map_at_once
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


def as_object(place: Place, statistics: FileStatistics | None) -> dict[str, Any]:
    """Return the facts as JSON output has them."""
    size, changed = None, 0
    if statistics is not None:
        size = None if statistics.is_directory else statistics.length
        changed = statistics.mtime_nsec
    return {
        "uri": place.uri,
        "name": place.name,
        "type": kind(statistics),
        "size": size,
        "mtime_ns": changed if changed > 0 else None,
    }


def stat_listed(place: Place) -> FileStatistics | None:
    """Return the statistics of a listed name; None if that fails, as for a dangling link."""
    try:
        return place.stat()
    except ModularTFError:
        return None


def stat_all_listed(places: Sequence[Place]) -> list[FileStatistics | None]:
    """Return the statistics of many places, requested in parallel."""
    return map_at_once(stat_listed, places)
