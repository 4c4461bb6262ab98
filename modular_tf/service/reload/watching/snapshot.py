"""The files in watched places at one moment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.discovery.sources.search_log import is_plugin_file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Snapshot", "file_identity", "take_snapshot"]


Snapshot = dict[str, FileIdentity]
"""Identity by path of every file that counts as a candidate."""


def take_snapshot(places: Iterable[str]) -> Snapshot:
    """Return the files in places; what is missing or unreadable is left out. [any thread]

    Args:
        places: Absolute paths. A file counts whatever it is called, in a directory those with a
            plugin's name.
    """
    found: Snapshot = {}
    for place in places:
        for path in _files(place):
            identity = file_identity(path)
            if identity is not None:
                found[path] = identity
    return found


def file_identity(path: str) -> FileIdentity | None:
    """Return the identity of a file, of the link itself where it leads nowhere; None for none."""
    for look in (os.stat, os.lstat):
        try:
            return FileIdentity.of(look(path))
        except (OSError, ValueError):
            continue
    return None


def _files(place: str) -> Iterator[str]:
    """Yield a directory's candidates, or the place itself."""
    try:
        names = os.listdir(place)
    except NotADirectoryError:
        yield place
    except (OSError, ValueError):
        return
    else:
        for name in names:
            if is_plugin_file_name(name):
                yield os.path.join(place, name)
