"""The operations that read metadata of one path: existence, statistics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.errors import NotFoundError, UnimplementedError
from modular_tf.filesystem.scheme import is_of_this_machine
from modular_tf.fsspec import entries
from modular_tf.fsspec.identity import PluginIdentity

if TYPE_CHECKING:
    from datetime import datetime


class Queries(PluginIdentity):
    """The part of `ModularFileSystem` that tells of one path."""

    _last_change: object = None  # another object for each change, so that no thread misses one

    def info(self, path: Any, **_: Any) -> entries.Entry:
        """Return the entry of one file or directory: name, size, type, mtime (s) and mtime_ns.

        Raises:
            NotFoundError: There is nothing at `path`.
        """
        path = self._strip_protocol(path)
        return self._cached_entry(path) or self._asked_info(path)

    def _asked_info(self, path: str) -> entries.Entry:
        if path == self.root_marker:
            return entries.directory(path)
        return entries.file_or_directory(path, self.filesystem.stat(self.uri(path)))

    def exists(self, path: Any, **_: Any) -> bool:
        """Return whether something is there; an error other than "not found" is raised."""
        path = self._strip_protocol(path)
        if path == self.root_marker or self._cached_entry(path) is not None:
            return True
        return self.filesystem.path_exists(self.uri(path))

    def isfile(self, path: Any) -> bool:
        """Return whether `path` is a file; False when nothing is there.

        In a bucket, `isfile` and `isdir` may tell what this filesystem saw within the last second.
        """
        return self._is(path, "file")

    def isdir(self, path: Any) -> bool:
        """Return whether `path` is a directory; False when nothing is there."""
        return self._is(path, "directory")

    def _is(self, path: Any, kind: str) -> bool:
        path = self._strip_protocol(path)
        try:
            return self._kind(path) == kind
        except NotFoundError:
            return False

    def _kind(self, path: str) -> str:
        """Return "file" or "directory"; some stores tell this by fewer requests than the rest."""
        known = self._cached_entry(path)
        if known is None and path != self.root_marker and not is_of_this_machine(self.scheme):
            uri = self.uri(path)
            if self.filesystem.was_file_just_now(uri):
                return "file"
            return "directory" if self.filesystem.is_directory(uri) else "file"
        return str((known or self._asked_info(path))["type"])

    def modified(self, path: Any) -> datetime:
        """Return when `path` was last changed, in UTC."""
        return entries.modification_time(self.info(path))

    def created(self, path: Any) -> NoReturn:
        """Raise: plugins do not report when a file was created."""
        raise UnimplementedError("plugins do not report the time of creation", path=self.uri(path))

    # -- the listings cache, where the user wants one -----------------------------------------

    def _cached_listing(self, path: str) -> list[entries.Entry] | None:
        with suppress(KeyError):  # also where it expires at this moment
            known: list[entries.Entry] = self.dircache[path]
            return known
        return None

    def _cached_entry(self, path: str) -> entries.Entry | None:
        """Return what a cached listing says of `path`; None if none does."""
        if not self.dircache.use_listings_cache:
            return None
        for entry in self._cached_listing(self._parent(path)) or []:
            if entry["name"] == path:
                return entry
        return entries.directory(path) if self._cached_listing(path) else None

    def forget_listing(self, path: str) -> None:
        """Drop what the listings cache knows about `path` and the directories above it.

        Those come and go with what is in them, in stores without directories or by `auto_mkdir`.
        """
        if not self.dircache.use_listings_cache:
            return
        self._last_change = object()  # first: a listing that is under way now is not kept
        above = path
        while above != self.root_marker:
            self._forget_one(above)
            above = self._parent(above)
        self._forget_one(above)

    def _forget_one(self, path: str) -> None:
        with suppress(KeyError):
            del self.dircache[path]

    def invalidate_cache(self, path: Any = None) -> None:
        """Drop cached listings, at `path` or all; with no path the plugin's own caches too."""
        if path is not None:
            self.forget_listing(self._strip_protocol(path))
            return
        self.forget_listings()
        self.filesystem.flush_caches()

    def forget_listings(self) -> None:
        """Drop what the listings cache knows of all directories."""
        self._last_change = object()
        self.dircache.clear()

    def _keep_listing(self, path: str, listing: list[entries.Entry], change: object) -> None:
        """Keep a listing that was begun at a change, unless there was another one since."""
        self.dircache[path] = listing
        if self._last_change is not change:
            self._forget_one(path)
