"""What is at a path of a store of objects, found out in the way that its plugin answers truly.

Such a store has names with slashes, and no directories: a directory is there as long as a name
begins with it. Plugins tell that more or less reliably, each by another operation.
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


class Lookup(Protocol):
    """One way to find out what is at a path; returns None for nothing."""

    def __call__(
        self, plugin: PluginFilesystem, uri: str, *, is_root: bool
    ) -> FileStatistics | None:
        """Ask the plugin.

        Args:
            plugin: Its operations, as it has them.
            uri: As `store_uri` returns it.
            is_root: Whether the URI is that of a whole bucket or container.
        """


def store_uri(uri: str) -> str:
    """Return a URI without a slash at its end, except that of a root, which gets one."""
    scheme, host, path = parse_uri(uri)
    return create_uri(scheme, host, path.rstrip("/") or "/")


def depth_of(uri: str) -> int:
    """Return how many levels a URI's path has."""
    return len([level for level in parse_uri(uri).path.split("/") if level])


def by_stat(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:  # noqa: ARG001
    """Believe `stat`."""
    with suppress(NotFoundError):
        return plugin.stat(uri)
    return None


def by_listing(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:
    """Believe `path_exists` about files, and listings about directories."""
    if not is_root and plugin.path_exists(uri):
        return plugin.stat(uri)
    with suppress(NotFoundError):
        if plugin.listed_names(uri) or is_root:
            return DIRECTORY
    return None


def by_opening(plugin: PluginFilesystem, uri: str, *, is_root: bool) -> FileStatistics | None:
    """Believe that what opens is a file, and `stat` about a name that ends in a slash."""
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
