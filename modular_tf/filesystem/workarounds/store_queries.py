"""What exists in an object store, by the rules of files and directories.

An object store has names with slashes; the host looks a path up (`store_lookup`), and says what it
is as a POSIX filesystem would.
"""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from modular_tf.errors import (
    FailedPreconditionError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
)
from modular_tf.filesystem.child_names import Listing, store_listing, warn_left_out
from modular_tf.filesystem.stat_cache import StatCache
from modular_tf.filesystem.statistics import FileStatistics
from modular_tf.filesystem.uri import dirname
from modular_tf.filesystem.workarounds.filesystem import NO_MESSAGE, WorkaroundFilesystem
from modular_tf.filesystem.workarounds.store_lookup import (
    DIRECTORY,
    KINDS,
    LOOKUPS,
    Lookup,
    depth_of,
    store_uri,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.loading.workarounds import Workarounds

_FIRST_BLOCK = 1 << 20  # bytes of a file to ask for before its length is known
_READABLE_FOR_SECONDS = 60.0
_FOUND_FOR_SECONDS = 60.0
_RECENT_SECONDS = 1.0


class StoreQueries(WorkaroundFilesystem):
    """The part of one scheme of an object store that tells what exists [any thread]"""

    def __init__(
        self,
        tables: FilesystemTables,
        plugin: str,
        workarounds: Workarounds,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        super().__init__(tables, plugin, workarounds, environment)
        way = workarounds.lookup or "stat"
        self._lookup, self._lookup_of_kind = LOOKUPS[way], KINDS[way]
        self.has_cheap_stat = self._lookup is self._lookup_of_kind
        missing = workarounds.missing_store_message
        self._missing_store_message = re.compile(missing or NO_MESSAGE)
        self._readable = StatCache[bool](_READABLE_FOR_SECONDS)  # directories with readable files
        self._most_at_first = min(_FIRST_BLOCK, workarounds.max_read or _FIRST_BLOCK)
        # Of long files, for which a first read would be made for nothing: what was found, which a
        # reader verifies, and how long they are.
        self._found_long = StatCache[FileStatistics](_FOUND_FOR_SECONDS)
        self._long = StatCache[int](math.inf)

    # -- looking ------------------------------------------------------------------------------

    def _look(self, uri: str, operation: str = "look") -> FileStatistics | None:
        """Return the statistics of a path, None if nothing exists there."""
        version = self._found_long.version
        found = self._look_by(self._lookup, uri, operation)
        if found is not None and self._note_length(uri, found.length):
            self._found_long.put(uri, found, version)
        return found

    def _note_length(self, uri: str, length: int) -> bool:
        """Remember how long a file is; return whether it is long."""
        if length < self._most_at_first:
            self._long.forget(uri)
            return False
        self._long.put(uri, length, self._long.version)
        return True

    def _forget(self, uri: str) -> None:
        """Forget a file that is about to change, or has changed."""
        self._found_long.forget(uri)
        self._long.forget(uri)

    def _kind(self, uri: str, operation: str = "look") -> FileStatistics | None:
        """Return statistics that need not tell more than file or directory; None for nothing."""
        return self._look_by(self._lookup_of_kind, uri, operation)

    def _look_by(self, lookup: Lookup, uri: str, operation: str) -> FileStatistics | None:
        above_root = depth_of(uri) - self.workarounds.root_depth
        if above_root < 0:
            return DIRECTORY
        plain = cast("PluginFilesystem", super())  # the plugin's results without these rules
        try:
            found = lookup(plain, store_uri(uri), is_root=above_root == 0)
        except ModularTFError:
            if above_root == 0 and self.workarounds.confirm_missing:
                plain.listed_names(store_uri(uri))  # whose error says why
            raise
        if found is None and self.workarounds.confirm_missing:
            if above_root:
                self._confirm_missing(operation, store_uri(uri))
            else:
                plain.listed_names(store_uri(uri))  # whose error says that there is no bucket
        return found

    def _confirm_missing(self, operation: str, uri: str) -> None:
        """Return if nothing is there, or raise why the store does not tell.

        A directory is there if a listing says so, which the store may refuse. Nothing is asked
        twice in a directory whose files may be read.
        """
        if self._needs_length() or self._readable.get(dirname(uri)):
            return
        try:
            with self._plain_reader(uri) as file:
                self._checked_call(operation, uri, lambda: file.read(0, 1))
        except NotFoundError as error:
            if not self.is_missing_store(error):
                cast("PluginFilesystem", super()).listed_names(uri)
            self._note_missing(error, uri)

    def _note_missing(self, error: NotFoundError, uri: str) -> None:
        """Note that the files beside a missing one may be read; raise if there is no bucket."""
        if self.is_missing_store(error):
            raise error
        self._readable.put(dirname(uri), found=True, version=self._readable.version)

    def is_missing_store(self, error: NotFoundError) -> bool:
        """Return whether an error means that the whole bucket or container is not there."""
        return self._missing_store_message.search(error.message) is not None

    def _found(self, operation: str, uri: str) -> FileStatistics:
        return self._required(operation, uri, self._look(uri, operation))

    def _found_kind(self, operation: str, uri: str) -> FileStatistics:
        return self._required(operation, uri, self._kind(uri, operation))

    def _required(self, operation: str, uri: str, found: FileStatistics | None) -> FileStatistics:
        if found is None:
            raise NotFoundError(
                f"{operation} {uri!r}: nothing is there",
                plugin=self.plugin,
                path=uri,
                operation=operation,
            )
        return found

    def _found_file(self, operation: str, uri: str) -> FileStatistics:
        return self._no_directory(operation, uri, self._found(operation, uri))

    def _no_directory(self, operation: str, uri: str, found: FileStatistics) -> FileStatistics:
        if found.is_directory:
            raise self._refused(operation, uri, "it is a directory")
        return found

    def _require_directory(self, operation: str, uri: str) -> None:
        if not self._found_kind(operation, uri).is_directory:
            raise self._refused(operation, uri, "it is not a directory")

    def _refused(self, operation: str, uri: str, why: str) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{operation} {uri!r}: {why}", plugin=self.plugin, path=uri, operation=operation
        )

    # -- queries ------------------------------------------------------------------------------

    def path_exists(self, uri: str) -> bool:
        """Return whether a file or directory exists."""
        try:
            return self._kind(uri, "path_exists") is not None
        except NotFoundError:
            return False

    def stat(self, uri: str) -> FileStatistics:
        """Return length, modification time and kind of a path."""
        return self._found("stat", uri)

    def is_directory(self, uri: str) -> bool:
        """Return whether a path is a directory."""
        return self._found_kind("is_directory", uri).is_directory

    def was_file_just_now(self, uri: str) -> bool:
        """Return whether a look of the last second found a file; nothing changed it here since."""
        found = self._found_long.get(uri, _RECENT_SECONDS)
        return found is not None and not found.is_directory

    def flush_caches(self) -> None:
        """Forget what was seen, and clear the caches in the plugin."""
        self._found_long.clear()
        self._long.clear()
        super().flush_caches()

    def get_file_size(self, uri: str) -> int:
        """Return a file's length in bytes."""
        return self._length("get_file_size", uri)

    def _length(self, operation: str, uri: str) -> int:
        """Return a file's length, by the plugin's own operation if that is fewer requests."""
        if self.workarounds.length_by_size and not uri.endswith("/"):
            with suppress(ModularTFError):
                if length := super().get_file_size(uri):  # 0 may be that of a directory
                    self._note_length(uri, length)
                    return length
        return self._found_file(operation, uri).length

    def get_children(self, uri: str) -> list[str]:
        """Return the names in a directory, without its own marker object."""
        found = self.listing(uri, is_thorough=False)
        warn_left_out(uri, found.left_out)
        return found.names

    def listing(
        self,
        uri: str,
        *,
        is_thorough: bool = True,
        with_statistics: bool = False,  # noqa: ARG002  (plugins list names alone)
    ) -> Listing:
        """Return the names in a directory, and what else is there that no path leads to.

        Plugins list no keys with a doubled slash, so these take the request of their own.
        """
        plain = cast("PluginFilesystem", super())
        listed = plain.listed_names(store_uri(uri))
        if not listed:
            self._require_directory("get_children", uri)
        found = store_listing(filter(None, listed))
        if is_thorough and depth_of(uri) >= self.workarounds.root_depth:
            with suppress(NotFoundError):
                if any(plain.listed_names(f"{store_uri(uri).rstrip('/')}//")):
                    return found._replace(unnamed=("", *found.unnamed))
        return found

    def is_file_and_directory(self, uri: str) -> bool:
        """Return whether an object has this name, and others lie below it.

        Where the store may not be listed, its files are read by their names alone.
        """
        if depth_of(uri) <= self.workarounds.root_depth:
            return False
        with suppress(NotFoundError, PermissionDeniedError):
            if any(cast("PluginFilesystem", super()).listed_names(f"{store_uri(uri)}/")):
                with self._plain_reader(store_uri(uri)) as file:
                    self._checked_call("stat", uri, lambda: file.read(0, 1))
                return True
        return False
