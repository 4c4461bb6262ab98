"""A cache of what was found at paths, which saves requests to a store."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable

_Found = TypeVar("_Found")


class StatCache(Generic[_Found]):
    """Keeps what was found at a path for some seconds, or until the path is changed. [any thread]

    Each change through the filesystem has to call `forget` or `clear`; changes by others are not
    noticed. A call that finds something reads `version`, another object after each change, before
    it begins, so that a result that a change overtook is not kept. One entry more than `most` drops
    all others.
    """

    def __init__(self, seconds: float, most: int = 4096) -> None:
        self.seconds = seconds
        self.version = object()
        self.most = most
        self._entries: dict[Hashable, tuple[float, _Found]] = {}

    def get(self, path: Hashable, seconds: float | None = None) -> _Found | None:
        """Return what was found at a path, at most `seconds` ago; None where nothing is known."""
        if not self._entries:
            return None
        found_at, found = self._entries.get(path, (0.0, None))
        age_s = self.seconds if seconds is None else seconds
        return found if found is not None and monotonic() - found_at < age_s else None

    def put(self, path: Hashable, found: _Found, version: object) -> None:
        """Keep what was found at a path, unless something has changed since `version` was taken."""
        entries = self._entries
        if version is not self.version or self.seconds <= 0:
            return
        if len(entries) >= self.most and path not in entries:
            entries.clear()
        entries[path] = monotonic(), found

    def forget(self, path: Hashable) -> None:
        """Forget a path that is about to change, or has changed."""
        self.version = object()
        self._entries.pop(path, None)

    def clear(self) -> None:
        """Forget all paths."""
        self.version = object()
        self._entries = {}
