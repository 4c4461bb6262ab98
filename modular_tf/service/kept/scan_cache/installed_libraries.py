"""Which libraries of installed distributions are plugins, kept while the files are the same.

Distributions bring hundreds of libraries, of which few or none are plugins, and each start asks for
all of them. So neither a RECORD nor a library is read again before it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.discovery.file_identity import SeenFile, see, see_again

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from modular_tf.service.kept.storage.record_file import RecordFile

    _Row = list[Any]  # path, whether it is a plugin, and how it was seen where that lasts

__all__ = ["installed_plugins"]

_PREFIX = "libraries of "  # before the path of a RECORD, which begins with a slash


def installed_plugins(
    records: RecordFile,
    record: str,
    libraries: Callable[[], Iterable[str]],
    is_plugin: Callable[[str], bool | None],
) -> list[str]:
    """Return the libraries of a distribution that are plugins, in the order of its RECORD.

    Args:
        records: What is kept.
        record: The RECORD; nothing need be there.
        libraries: Reads it, and returns the libraries that may be plugins.
        is_plugin: Tells by reading a library; None where that says nothing that lasts.

    Raises:
        ShortageError: A file cannot be looked at now.
    """
    key = _PREFIX + record
    seen, rows = _kept(record, records.get(key))
    is_same = seen is not None and see_again(seen) is seen
    if not is_same:
        seen = see(record, read=False)
        known = {row[0]: row for row in rows}
        rows = [known.get(path, [path]) for path in libraries()]
    looked = [row if _is_valid(row) else _look(row[0], is_plugin) for row in rows]
    if (not is_same or looked != rows) and seen is not None and see_again(seen) is seen:
        records.put(key, [seen.as_row()[1:], looked])
    return [path for path, found, *_ in looked if found]


def _kept(record: str, value: Any) -> tuple[SeenFile | None, list[_Row]]:
    """Return the RECORD as it was seen, and the libraries; nothing where that is damaged."""
    try:
        row, libraries = value
        if not all(type(path) is str for path, *_ in libraries):
            return None, []
        return SeenFile.from_row([record, *row]), libraries
    except (TypeError, ValueError):
        return None, []


def _is_valid(row: _Row) -> bool:
    """Return whether a library is as it was when it was read."""
    try:
        path, found, *as_seen = row
        seen = SeenFile.from_row([path, *as_seen])
    except (TypeError, ValueError):  # nothing that lasts, or damaged
        return False
    return type(found) is bool and seen.identity is not None and see_again(seen) is seen


def _look(path: str, is_plugin: Callable[[str], bool | None]) -> _Row:
    seen = see(path, read=False)
    found = is_plugin(path)
    if found is None or seen is None or seen.identity is None or see_again(seen) is not seen:
        return [path, found]
    return [path, found, *seen.as_row()[1:]]
