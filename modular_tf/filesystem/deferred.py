"""A scheme whose filesystem is opened at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class DeferredFilesystem:
    """Stands in a registry for a filesystem that is known and not open. [any thread]

    Attributes:
        scheme: The scheme that it serves.
        plugin: The plugin's name for users.

    Args:
        scheme: As above.
        plugin: As above.
        open_now: Puts the filesystem, and whatever else its library brings, in the place of what
            stands for it (`FilesystemRegistry.fulfil`); raises why that cannot be.
    """

    __slots__ = ("_open_now", "plugin", "scheme")

    def __init__(self, scheme: str, plugin: str, open_now: Callable[[], None]) -> None:
        self.scheme = scheme
        self.plugin = plugin
        self._open_now = open_now

    def open(self) -> None:
        """Load the library and put the open filesystem in this one's place.

        Raises:
            ModularTFError: The plugin does not do now what it did when it was tried.
        """
        self._open_now()
