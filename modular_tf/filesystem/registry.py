"""Which filesystem serves which scheme."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import TYPE_CHECKING

from modular_tf.errors import AlreadyExistsError, InvalidArgumentError, UnimplementedError
from modular_tf.filesystem.uri import match_scheme, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from modular_tf.filesystem.filesystem import Filesystem


class FilesystemRegistry:
    """Filesystems by scheme, case-sensitive as in TensorFlow. [any thread]"""

    def __init__(self) -> None:
        self._by_scheme: dict[str, Filesystem] = {}
        self._lock = threading.Lock()
        self.view: Mapping[str, Filesystem] = MappingProxyType(self._by_scheme)

    def register(self, filesystem: Filesystem, *, replace: bool = False) -> Callable[[], None]:
        """Let a filesystem serve its scheme; the same one again does nothing.

        Args:
            filesystem: What serves from now on.
            replace: Take the scheme from whoever serves it; open files of theirs go on.

        Returns:
            A function that undoes this registration, if it is still in force.

        Raises:
            AlreadyExistsError: Another one serves the scheme (rule FS-018).
            InvalidArgumentError: No URI could name the scheme (rule FS-007).
        """
        scheme = filesystem.scheme
        check_scheme(scheme, filesystem.plugin)
        with self._lock:
            owner = self._by_scheme.get(scheme)
            if owner is not None and owner is not filesystem and not replace:
                raise AlreadyExistsError(
                    f"scheme {scheme!r} of {filesystem.plugin} is taken by {owner.plugin}"
                    " (rule FS-018); pin it in the configuration, or register with replace=True",
                    plugin=filesystem.plugin,
                    rule="FS-018",
                )
            self._by_scheme[scheme] = filesystem
        return lambda: self._undo(scheme, filesystem, owner if replace else None)

    def _undo(self, scheme: str, filesystem: Filesystem, before: Filesystem | None) -> None:
        with self._lock:
            if self._by_scheme.get(scheme) is not filesystem:
                return
            if before is None:
                del self._by_scheme[scheme]
            else:
                self._by_scheme[scheme] = before

    def get(self, scheme: str) -> Filesystem:
        """Return the filesystem of a scheme.

        Raises:
            UnimplementedError: None serves it (TensorFlow's code for this).
        """
        try:
            return self._by_scheme[scheme]
        except KeyError:
            raise self._unknown(scheme, None) from None

    def for_uri(self, uri: str) -> Filesystem:
        """Return the filesystem of a URI's scheme.

        Raises:
            UnimplementedError: None serves it.
        """
        match = match_scheme(uri)
        try:
            return self._by_scheme[match.group() if match else ""]
        except KeyError:
            raise self._unknown(scheme_of(uri), uri) from None

    def _unknown(self, scheme: str, uri: str | None) -> UnimplementedError:
        shown = f"scheme {scheme!r}" if scheme else "plain paths"
        return UnimplementedError(
            f"no filesystem for {shown}; registered: {sorted(self._by_scheme)}",
            path=uri,
            operation="filesystem",
        )

    def clear(self) -> None:
        """Forget all; they are not closed here."""
        with self._lock:
            self._by_scheme.clear()


def check_scheme(scheme: str, plugin: str) -> None:
    """Refuse a scheme that no URI can name.

    Raises:
        InvalidArgumentError: Rule FS-007.
    """
    if scheme and scheme_of(f"{scheme}://") != scheme:
        raise InvalidArgumentError(
            f"scheme {scheme!r} of {plugin}: expected a letter, then one or more letters, digits"
            " or dots (rule FS-007)",
            plugin=plugin,
            rule="FS-007",
        )
