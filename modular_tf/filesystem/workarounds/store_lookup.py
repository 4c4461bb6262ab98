"""Ways to find out what exists at a path of an object store, one for each kind of plugin.

An object store has names with slashes and no directories: a directory exists as long as it is the
prefix of a name. Plugins report that reliably by one operation only, each by a different one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from modular_tf.errors import NotFoundError
from modular_tf.filesystem.statistics import FileStatistics
from modular_tf.filesystem.uri import create_uri, parse_uri

if TYPE_CHECKING:
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem

DIRECTORY = FileStatistics(0, 0, is_directory=True)
_SOME_FILE = FileStatistics(0, 0, is_directory=False)


class Lookup(Protocol):
    """One way to find out what exists at a path; returns None for nothing."""

    def __call__(
        self, plugin: PluginFilesystem, uri: str, *, is_root: bool
    ) -> FileStatistics | None:
        """Return the statistics of a path, None if nothing exists there.

        Args:
            plugin: The plugin's own operations, without the rules of directories.
            uri: A URI as `store_uri` returns it.
            is_root: Whether the URI names a whole bucket or container.
        """


def store_uri(uri: str) -> str:
    """Return a URI without trailing slashes; the URI of a root ends with one slash."""
    scheme, host, path = parse_uri(uri)
    return create_uri(scheme, host, path.rstrip("/") or "/")


def depth_of(uri: str) -> int:
    """Return how many levels a URI's path has."""
    return len([level for level in parse_uri(uri).path.split("/") if level])


def by_stat(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:  # noqa: ARG001
    """Look up a path by `stat`."""
    with suppress(NotFoundError):
        return plugin.stat(uri)
    return None


def by_listing(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:
    """Look up files by `stat`, which takes what is missing for a directory, and list those."""
    if not is_root:
        with suppress(NotFoundError):
            found = plugin.stat(uri)
            if not found.is_directory:
                return found
    return _by_names(plugin, uri, is_root=is_root)


def kind_by_listing(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:
    """Look up files by `path_exists`, fewer requests than `stat`, and directories by listing."""
    if not is_root and plugin.path_exists(uri):
        return _SOME_FILE
    return _by_names(plugin, uri, is_root=is_root)


def _by_names(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:
    with suppress(NotFoundError):
        if plugin.listed_names(uri) or is_root:
            return DIRECTORY
    return None


def by_opening(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:
    """Look up files by opening them and directories by `stat` of the name with a slash."""
    if is_root:
        return DIRECTORY
    with suppress(NotFoundError):
        plugin.new_random_access_file(uri).close()
        return plugin.stat(uri)
    with suppress(NotFoundError):
        plugin.stat(f"{uri}/")
        return DIRECTORY
    return None


LOOKUPS: dict[str, Lookup] = {"stat": by_stat, "listing": by_listing, "opening": by_opening}

KINDS: dict[str, Lookup] = {**LOOKUPS, "listing": kind_by_listing}
"""Ways that may tell only the kind, as file or directory, where that takes fewer requests."""
