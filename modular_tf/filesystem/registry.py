"""Which filesystem serves which scheme."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    InvalidArgumentError,
    UnimplementedError,
)
from modular_tf.filesystem.deferred import DeferredFilesystem
from modular_tf.filesystem.scheme import match_scheme, scheme_of
from modular_tf.fork_lock import ForkLock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.filesystem import Filesystem

    Registered = Filesystem | DeferredFilesystem


class FilesystemRegistry:
    """Filesystems by scheme, case-sensitive as in TensorFlow. [any thread].

    Attributes:
        view: What serves now, by scheme, open or not; it follows what is registered.
    """

    def __init__(self) -> None:
        self._by_scheme: dict[str, Registered] = {}
        # All that are registered for a scheme, the last of which serves. A list of one each, so
        # that the same filesystem registered twice is two registrations.
        self._registered: dict[str, list[list[Registered]]] = {}
        self._lock = ForkLock()
        self._closed = False
        self.view: Mapping[str, Registered] = MappingProxyType(self._by_scheme)

    def register(self, filesystem: Registered, *, replace: bool = False) -> Callable[[], None]:
        """Let a filesystem serve its scheme.

        Args:
            filesystem: What serves from now on; what serves already may be registered again.
            replace: Take the scheme from whoever serves it; open files of theirs go on.

        Returns:
            A function that undoes this registration, now or later; what served before, and is
            still registered, serves again.

        Raises:
            AlreadyExistsError: Another one serves the scheme (rule FS-018).
            InvalidArgumentError: No URI could name the scheme (rule FS-007).
            ClosedError: The registry is closed.
        """
        scheme = filesystem.scheme
        check_scheme(scheme, filesystem.plugin)
        with self._lock:
            if self._closed:
                raise self._unknown(scheme, None)
            owner = self._by_scheme.get(scheme)
            if owner is not None and owner is not filesystem and not replace:
                raise AlreadyExistsError(
                    f"scheme {scheme!r} of {filesystem.plugin} is taken by {owner.plugin}"
                    " (rule FS-018); pin it in the configuration, or register with replace=True",
                    plugin=filesystem.plugin,
                    rule="FS-018",
                )
            registration = [filesystem]
            self._registered.setdefault(scheme, []).append(registration)
            self._by_scheme[scheme] = filesystem
        return lambda: self._undo(scheme, registration)

    def fulfil(self, registered: Registered, filesystem: Registered) -> None:
        """Put a filesystem in the place of another, or of what stands for it, in one step.

        What took the scheme from it in the meantime goes on serving.

        Args:
            registered: What is replaced, wherever it is registered.
            filesystem: What serves the same scheme from now on.

        Raises:
            ClosedError: The registry is closed.
        """
        scheme = registered.scheme
        with self._lock:
            if self._closed:
                raise self._unknown(scheme, None)
            for registration in self._registered.get(scheme, ()):
                if registration[0] is registered:
                    registration[0] = filesystem
            if self._by_scheme.get(scheme) is registered:
                self._by_scheme[scheme] = filesystem

    def _undo(self, scheme: str, registration: list[Registered]) -> None:
        if self._closed:  # all was forgotten
            return
        with self._lock:
            left = [r for r in self._registered.get(scheme, ()) if r is not registration]
            self._registered[scheme] = left
            if left:
                self._by_scheme[scheme] = left[-1][0]
            else:
                self._by_scheme.pop(scheme, None)

    def get(self, scheme: str) -> Filesystem:
        """Return the filesystem of a scheme; the first time, its library may be mapped for it.

        Raises:
            UnimplementedError: None serves it (TensorFlow's code for this).
            ClosedError: The registry is closed.
            ModularTFError: Its library does not do now what it did when it was tried.
        """
        try:
            found = self._by_scheme[scheme]
        except KeyError:
            raise self._unknown(scheme, None) from None
        return self._open(found) if isinstance(found, DeferredFilesystem) else found

    def for_uri(self, uri: str) -> Filesystem:
        """Return the filesystem of a URI's scheme; errors as in `get`."""
        match = match_scheme(uri)
        try:
            found = self._by_scheme[match.group() if match else ""]
        except KeyError:
            raise self._unknown(scheme_of(uri), uri) from None
        return self._open(found) if isinstance(found, DeferredFilesystem) else found

    def _open(self, deferred: DeferredFilesystem) -> Filesystem:
        while True:
            deferred.open()
            found = self._by_scheme.get(deferred.scheme)
            if found is None or found is deferred:
                raise self._unknown(deferred.scheme, None)
            if not isinstance(found, DeferredFilesystem):
                return found
            deferred = found  # another generation took the place meanwhile

    def _unknown(self, scheme: str, uri: str | None) -> ModularTFError:
        if self._closed:
            return ClosedError("the plugin service is closed", path=uri, operation="filesystem")
        shown = f"scheme {scheme!r}" if scheme else "plain paths"
        return UnimplementedError(
            f"no filesystem for {shown}; registered: {sorted(self._by_scheme)}",
            path=uri,
            operation="filesystem",
        )

    def close(self) -> None:
        """Forget all, for good; the filesystems themselves are not closed here."""
        with self._lock:
            self._closed = True
            self._registered.clear()
            self._by_scheme.clear()


def check_scheme(scheme: str, plugin: str) -> None:
    """Refuse a scheme that no URI can name.

    Raises:
        InvalidArgumentError: Rule FS-007.
    """
    if scheme != "" and scheme_of(f"{scheme}://") != scheme:
        raise InvalidArgumentError(
            f"scheme {scheme!r} of {plugin}: expected a letter, then one or more letters, digits"
            " or dots (rule FS-007)",
            plugin=plugin,
            rule="FS-007",
        )
