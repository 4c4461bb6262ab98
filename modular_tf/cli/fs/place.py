"""A file or directory named on the command line, by URI or local path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.errors import NotFoundError, UnimplementedError
from modular_tf.filesystem.child_names import FILE_AND_DIRECTORY

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.statistics import FileStatistics
    from modular_tf.service.service import PluginService

FILE_LEFT_OUT = f"{FILE_AND_DIRECTORY}; the file was left out"
"""What is reported of a name that is both, where the directory is taken."""


@dataclass(frozen=True)
class Place:
    """A URI with the filesystem that serves it.

    Attributes:
        filesystem: The filesystem of the URI's scheme.
        uri: As the user wrote it, or a child's URI made from that.
    """

    filesystem: Filesystem
    uri: str

    @classmethod
    def of(cls, service: PluginService, uri: str) -> Place:
        """Return the place of a URI, with its filesystem.

        Raises:
            UnimplementedError: No plugin serves its scheme.
        """
        try:
            return cls(service.filesystem_for(uri), uri)
        except UnimplementedError as error:
            scheme = uri.partition("://")[0]
            hint = f"`modular-tf why {scheme}` shows more"
            raise UnimplementedError(f"{error.message}; {hint}", path=uri) from error

    @property
    def name(self) -> str:
        """The last part of the path; empty for the root of a store."""
        return self._path.rstrip("/").rpartition("/")[2]

    @property
    def _path(self) -> str:
        return self.uri.partition("://")[2] or self.uri

    def child(self, name: str) -> Place:
        """Return the place of the entry `name` in this directory."""
        separator = "" if self.uri.endswith("/") else "/"
        return Place(self.filesystem, f"{self.uri}{separator}{name}")

    def stat(self) -> FileStatistics:
        """Return size, modification time and kind."""
        return self.filesystem.stat(self.uri)

    def is_directory(self) -> bool:
        """Return whether it is a directory; False if nothing exists.

        Raises:
            NotFoundError: Not even its bucket exists.
        """
        try:
            return self.filesystem.is_directory(self.uri)
        except NotFoundError as error:
            if self.filesystem.is_missing_store(error):
                raise
            return False

    def children(self) -> list[Place]:
        """Return what is in this directory, by name, as far as paths can name it."""
        found = self.filesystem.listing(self.uri, is_thorough=False)
        return [self.child(name) for name in found.names]

    def shares_store_with(self, other: Place) -> bool:
        """Return whether the filesystem of this place can work on both."""
        return self.filesystem.shares_store_with(other.filesystem)

    @property
    def pair(self) -> tuple[Filesystem, str]:
        """Filesystem and URI, as `modular_tf.filesystem.overlap` takes them."""
        return self.filesystem, self.uri
