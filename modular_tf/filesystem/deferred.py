"""A scheme whose filesystem is opened at its first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import FailedPreconditionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.filesystem import Filesystem


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


class MadeOnce:
    """A filesystem of Python code that is made when it is first asked for. [any thread]

    One thread makes it, with no lock but this one's, and the threads that ask for the same wait.
    What fails is tried again by the next that asks. Nothing ends a function that hangs.

    Args:
        scheme: The scheme, for messages.
        make: Makes it, by code of others.
    """

    def __init__(self, scheme: str, make: Callable[[], Filesystem]) -> None:
        self._scheme = scheme
        self._make = make
        self._lock = ForkLock()
        self._is_making = False
        self._made: Filesystem | None = None

    def get(self) -> Filesystem:
        """Return the filesystem; the first call has it made.

        Raises:
            FailedPreconditionError: What makes it uses the scheme.
            ModularTFError: As `make` raises.
        """
        with self._lock:
            if self._made is None:
                if self._is_making:
                    text = f"scheme {self._scheme!r}: what makes its filesystem uses the scheme"
                    raise FailedPreconditionError(text, operation="filesystem")
                self._is_making = True
                try:
                    self._made = self._make()
                finally:
                    self._is_making = False
            return self._made

    def after_fork_in_child(self) -> None:
        """Have it made anew: few clients can be used in a forked child."""
        self._made = None
        self._is_making = False
