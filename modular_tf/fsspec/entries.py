"""Statistics of files in the format of fsspec."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.crew import results_at_once
from modular_tf.errors import ModularTFError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.filesystem.statistics import FileStatistics

Entry = dict[str, Any]
"""One file or directory as fsspec describes it: name, size, type, mtime."""


def file_or_directory(path: str, statistics: FileStatistics) -> Entry:
    """Return the entry of `path` for its statistics.

    `mtime` is in seconds since 1970 (what pyarrow reads), `mtime_ns` the same in nanoseconds.
    """
    return {
        "name": path,
        "size": 0 if statistics.is_directory else statistics.length,
        "type": "directory" if statistics.is_directory else "file",
        "mtime": statistics.mtime_nsec / 1e9,
        "mtime_ns": statistics.mtime_nsec,
    }


def directory(path: str) -> Entry:
    """Return the entry of a directory without statistics, such as the root of a store."""
    return {"name": path, "size": 0, "type": "directory"}


def unknown(path: str) -> Entry:
    """Return the entry of a name that is listed but cannot be looked at."""
    return {"name": path, "size": None, "type": "other"}


def modification_time(entry: Entry) -> datetime:
    """Return the time of last modification, in UTC."""
    return datetime.fromtimestamp(entry["mtime_ns"] / 1e9, tz=timezone.utc)


def describe_all(
    describe: Callable[[str], Entry], paths: Sequence[str], at_once: int
) -> list[Entry | None]:
    """Return the entries of `paths` in their order, None for those that have vanished.

    The C API lists names only, so each entry costs a question of its own.
    """

    def attempt(path: str) -> Entry | None:
        try:
            return describe(path)
        except NotFoundError:
            return None
        except ModularTFError:
            return unknown(path)

    return results_at_once(attempt, paths, at_once)
