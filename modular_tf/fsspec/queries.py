"""The operations that read metadata: existence, statistics, listings."""

# ruff: noqa: FBT001, FBT002  (the signatures are fsspec's)

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.errors import FailedPreconditionError, NotFoundError, UnimplementedError
from modular_tf.fsspec import entries, paths
from modular_tf.fsspec.identity import PluginIdentity

if TYPE_CHECKING:
    from datetime import datetime


class Queries(PluginIdentity):
    """The part of `ModularFileSystem` that changes nothing."""

    def info(self, path: Any, **_: Any) -> entries.Entry:
        """Return the entry of one file or directory: name, size, type, mtime (s) and mtime_ns.

        Raises:
            NotFoundError: There is nothing at `path`.
        """
        path = self._strip_protocol(path)
        if path == self.root_marker:
            return entries.directory(path)
        return entries.file_or_directory(path, self.filesystem.stat(self.uri(path)))

    def exists(self, path: Any, **_: Any) -> bool:
        """Return whether something is there; an error other than "not found" is raised."""
        path = self._strip_protocol(path)
        return path == self.root_marker or self.filesystem.path_exists(self.uri(path))

    def isfile(self, path: Any) -> bool:
        """Return whether `path` is a file; False when nothing is there."""
        return self._is(path, "file")

    def isdir(self, path: Any) -> bool:
        """Return whether `path` is a directory; False when nothing is there."""
        return self._is(path, "directory")

    def _is(self, path: Any, kind: str) -> bool:
        try:
            return bool(self.info(path)["type"] == kind)
        except NotFoundError:
            return False

    def modified(self, path: Any) -> datetime:
        """Return when `path` was last changed, in UTC."""
        return entries.modification_time(self.info(path))

    def created(self, path: Any) -> NoReturn:
        """Raise: plugins do not report when a file was created."""
        raise UnimplementedError("plugins do not tell the time of creation", path=self.uri(path))

    def ls(
        self,
        path: Any,
        detail: bool = True,
        refresh: bool = False,
        **_: Any,
    ) -> list[Any]:
        """Return the entries of a directory, or of the one file at `path`, sorted by name.

        With `detail`, each entry costs the plugin one more question, asked in parallel.

        Raises:
            NotFoundError: There is nothing at `path`.
        """
        path = self._strip_protocol(path)
        names = self._children(path)
        if names is None:
            return [self.info(path)] if detail else [path]
        if not detail:
            return names
        return self._listing(path, names, refresh=refresh)

    def _children(self, path: str) -> list[str] | None:
        """Return the paths in the directory `path`, None if it is a file."""
        try:
            names = self.filesystem.get_children(self.uri(path))
        except (NotFoundError, FailedPreconditionError):
            if self.info(path)["type"] == "directory":
                raise
            return None
        # Some stores answer an empty list for a file, or for nothing at all.
        if not names and self.info(path)["type"] != "directory":
            return None
        return [paths.join(path, name) for name in names]

    def _listing(self, path: str, names: list[str], *, refresh: bool) -> list[entries.Entry]:
        if not refresh:
            with suppress(KeyError):  # also where it expires at this moment
                known: list[entries.Entry] = self.dircache[path]
                return known
        found = entries.describe_all(self.info, names)
        self.dircache[path] = found
        return found

    def forget_listing(self, path: str) -> None:
        """Drop what the listings cache knows about `path` and the directories above it.

        Those come and go with what is in them, in stores without directories or by `auto_mkdir`.
        """
        if not self.dircache.use_listings_cache:
            return
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
        self.dircache.clear()
        self.filesystem.flush_caches()
