"""Which files of a store are long, as far as the last look at them told."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from modular_tf.filesystem.statistics import FileStatistics

_MOST = 4096
_LONGEST_S = 60.0  # an older look tells little of what a file is now
_RECENT_S = 1.0


class _Look(NamedTuple):
    found: FileStatistics | None
    time: float
    change: object


class LongFiles:
    """Remembers names of long files, for which a first read would be made for nothing.

    It saves requests and decides nothing: a file may have changed since. [any thread]

    Args:
        shortest: Bytes from which on a file is long.
    """

    def __init__(self, shortest: int) -> None:
        self._shortest = shortest
        self._looks: dict[str, _Look] = {}
        self._last_change = object()

    @property
    def last_change(self) -> object:
        """Stands for the last change; a look that began before may tell of what a file was."""
        return self._last_change

    def __contains__(self, uri: str) -> bool:
        return uri in self._looks

    def last_look(self, uri: str) -> FileStatistics | None:
        """Return what the last look at a long file told; None for none in the last minute."""
        look = self._looks.get(uri)
        return look.found if look is not None and monotonic() - look.time < _LONGEST_S else None

    def is_recent(self, uri: str) -> bool:
        """Return whether a look of the last second, and of no change since, found a long file."""
        look = self._looks.get(uri)
        if look is None or look.found is None or look.found.is_directory:
            return False
        return look.change is self._last_change and monotonic() - look.time < _RECENT_S

    def note(
        self, uri: str, length: int, found: FileStatistics | None = None, change: object = None
    ) -> None:
        """Remember how long a file is.

        Args:
            uri: The file.
            length: Its length in bytes.
            found: What a look at it told, if there was one.
            change: The last change when that look began.
        """
        if length < self._shortest:
            self._looks.pop(uri, None)
            return
        if len(self._looks) >= _MOST and uri not in self._looks:
            self._looks.clear()
        self._looks[uri] = _Look(found, monotonic(), change)

    def forget(self, uri: str) -> None:
        """Forget a file that is about to change, or has changed."""
        self._last_change = object()
        self._looks.pop(uri, None)

    def clear(self) -> None:
        """Forget all files."""
        self._last_change = object()
        self._looks.clear()
