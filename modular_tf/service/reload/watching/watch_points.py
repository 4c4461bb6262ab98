"""The directories to watch for changes at a path, with all links that lead there."""

from __future__ import annotations

import os
import stat
from collections import deque
from typing import TYPE_CHECKING

from modular_tf.discovery.sources.installed import UNPACKED_SUFFIX
from modular_tf.discovery.sources.search_log import is_plugin_file_name

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["WatchPoints"]

_MAX_LINKS = 40  # the kernel's own limit


class WatchPoints:
    """Real directories whose entries matter. [any thread]

    A place that is missing, or is reached through links, is told of by the directories in which
    it, or one of those links, would be made anew. The renaming of a directory further up is told
    by none of them.

    Args:
        places: Absolute paths of files and directories.

    Attributes:
        directories: The directories, which existed a moment ago.
    """

    def __init__(self, places: Iterable[str]) -> None:
        self._names: dict[str, set[str]] = {}
        self._plugin_directories: set[str] = set()
        for place in places:
            self._add_place(place)
        self.directories = frozenset(self._names) | self._plugin_directories

    def concern(self, path: str) -> bool:
        """Return whether an event at this path, below a real directory, may be about a place."""
        directory, name = os.path.split(path)
        if name in self._names.get(directory, ()) or path in self.directories:
            return True
        return directory in self._plugin_directories and (
            is_plugin_file_name(name) or name.endswith(UNPACKED_SUFFIX)
        )

    def _add_place(self, place: str) -> None:
        directory = self._follow(place)
        if directory is None:
            return
        self._plugin_directories.add(directory)
        try:
            with os.scandir(directory) as entries:
                links = [entry.path for entry in entries if _is_plugin_link(entry)]
        except OSError:
            return
        for link in links:
            self._follow(link)

    def _follow(self, path: str) -> str | None:
        """Record all links of a path and its end; return the end if it is a directory."""
        directory, left, links = "/", deque(_parts(path)), 0
        while left:
            name = left.popleft()
            here = os.path.normpath(os.path.join(directory, name))
            mode = _mode(here)
            if not left or not mode or stat.S_ISLNK(mode):
                self._names.setdefault(directory, set()).add(name)
            if stat.S_ISLNK(mode) and links < _MAX_LINKS:
                links += 1
                target = _target(here)
                directory = "/" if target.startswith("/") else directory
                left.extendleft(reversed(_parts(target)))
            elif stat.S_ISDIR(mode):
                directory = here
            else:
                return None
        return directory


def _is_plugin_link(entry: os.DirEntry[str]) -> bool:
    return is_plugin_file_name(entry.name) and entry.is_symlink()


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _mode(path: str) -> int:
    """Return the mode of what lies there, links not followed; 0 for nothing."""
    try:
        return os.lstat(path).st_mode
    except (OSError, ValueError):
        return 0


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
