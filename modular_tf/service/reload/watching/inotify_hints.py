"""Hints from the kernel that something may have happened, through watchdog.

They make the watcher look at once instead of later. It does not depend on them: an event that is
lost, late or repeated costs time only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.inotify import InotifyObserver

from modular_tf.concurrency.fork_lock import ForkLock

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.service.reload.watching.watch_points import WatchPoints

__all__ = ["InotifyHints"]

# Not among them: opening and reading, which we do ourselves, and each single write.
_EVENTS: Final[list[type[FileSystemEvent]]] = [
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
]


class InotifyHints(FileSystemEventHandler):
    """Wakes the watcher when something may have happened at its places. [any thread]

    Args:
        wake: Called from a thread of watchdog's; must return at once and raise nothing.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._points: WatchPoints | None = None
        self._watches: dict[str, tuple[tuple[int, int], Any]] = {}
        self._lock = ForkLock()
        self._closed: set[str] = set()
        self._ended: set[str] = set()
        self._observer = InotifyObserver()
        self._observer.start()

    def follow(self, points: WatchPoints) -> bool:
        """Watch exactly these directories from now on.

        Returns:
            Whether one of them was not watched until now, so that a change in it may have been
            missed.

        Raises:
            OSError: The kernel has no watches left for this user.
        """
        self._points = points
        with self._lock:
            ended, self._ended = self._ended, set()
        identities = {directory: _identity(directory) for directory in points.directories}
        for directory, (identity, _) in list(self._watches.items()):
            if directory in ended or identities.get(directory) != identity:
                self._unwatch(directory)
        added = False
        for directory, found in identities.items():
            if found is not None and directory not in self._watches:
                added = self._watch(directory, found) or added
        return added

    def take_closed(self) -> set[str]:
        """Return the real paths of files that a writer has closed, or moved there, since then."""
        with self._lock:
            closed, self._closed = self._closed, set()
        return closed

    def close(self) -> None:
        """Stop; no hint comes afterwards."""
        self._observer.stop()
        self._observer.join()

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle an event; called by watchdog."""
        source, target = os.fsdecode(event.src_path), os.fsdecode(event.dest_path)
        with self._lock:
            if isinstance(event, FileClosedEvent):
                self._closed.add(source)
            elif isinstance(event, FileMovedEvent):
                self._closed.add(target)
            elif isinstance(event, DirDeletedEvent | DirMovedEvent):
                self._ended.add(source)
        points = self._points
        if points is None or points.concern(source) or (target and points.concern(target)):
            self._wake()

    def _watch(self, directory: str, identity: tuple[int, int]) -> bool:
        try:
            watch = self._observer.schedule(self, directory, event_filter=_EVENTS)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            return False  # gone again, or not for us to read
        self._watches[directory] = identity, watch
        return True

    def _unwatch(self, directory: str) -> None:
        _, watch = self._watches.pop(directory)
        with suppress(KeyError, OSError):  # watchdog gave it up by itself
            self._observer.unschedule(watch)


def _identity(directory: str) -> tuple[int, int] | None:
    try:
        found = os.stat(directory)
    except OSError:
        return None
    return found.st_dev, found.st_ino
