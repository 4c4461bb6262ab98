"""The files in watched places at one moment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.discovery.sources.installed import UNPACKED_SUFFIX
from modular_tf.discovery.sources.search_log import is_plugin_file_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Snapshot", "take_snapshot"]


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
            identity = FileIdentity.at(path)
            if identity is not None:
                found[path] = identity
    return found


def _files(place: str) -> Iterator[str]:
    """Yield a directory's candidates, with those of unpacked wheels, or the place itself."""
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
            elif name.endswith(UNPACKED_SUFFIX):
                for parent, _, files in os.walk(os.path.join(place, name)):
                    yield from (os.path.join(parent, it) for it in files if is_plugin_file_name(it))
