"""What `stat` says about a place, as output shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.cli.fs.place import Place
    from modular_tf.filesystem.statistics import FileStatistics

_FEW = 8
_AT_ONCE = 16


def kind(statistics: FileStatistics) -> str:
    """Return "directory" or "file"."""
    return "directory" if statistics.is_directory else "file"


def as_object(place: Place, statistics: FileStatistics) -> dict[str, Any]:
    """Return the facts as JSON output has them."""
    return {
        "uri": place.uri,
        "name": place.name,
        "type": kind(statistics),
        "size": None if statistics.is_directory else statistics.length,
        "mtime_ns": statistics.mtime_nsec if statistics.mtime_nsec > 0 else None,
    }


def stat_all(places: Sequence[Place]) -> list[FileStatistics]:
    """Ask about many places at the same time: stores answer each in tens of milliseconds."""
    if len(places) <= _FEW:
        return [place.stat() for place in places]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  (only for long listings)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda place: place.stat(), places))
