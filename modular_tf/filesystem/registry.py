"""The registry of filesystems by scheme, and what stands in it for those that are not open yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    UnimplementedError,
    unexpected,
)
from modular_tf.filesystem.uri import match_scheme, scheme_of
from modular_tf.rules.filesystem import scheme_misspelt, scheme_taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.filesystem import Filesystem

    Registered: TypeAlias = "Filesystem | DeferredFilesystem"


class DeferredFilesystem:
    """Stands in a registry for a filesystem that is known and not open. [any thread]

    `open` loads the library and replaces all its stand-ins by open filesystems
    (`SchemeRegistration.fulfil`), or raises why that cannot be.
    """

    __slots__ = ("open", "plugin", "scheme")

    def __init__(self, scheme: str, plugin: str, open_now: Callable[[], None]) -> None:
        self.scheme = scheme
        self.plugin = plugin
        self.open = open_now


class MadeOnce:
    """A filesystem of Python code that is made when it is first used. [any thread]

    Other threads wait meanwhile. After a failure the next use tries it again. Nothing ends a
    function that hangs.
    """

    def __init__(self, scheme: str, make: Callable[[], Filesystem]) -> None:
        self._scheme = scheme
        self._make = make
        self._lock = ForkLock()
        self._is_making = False
        self._made: Filesystem | None = None

    def get(self) -> Filesystem:
        """Return the filesystem; the first call makes it, and raises what `make` raises.

        `FailedPreconditionError` if `make` itself uses the scheme.
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


class SchemeRegistration:
    """A registered filesystem, which serves its scheme from `enter` to `undo`. [any thread]

    Both calls can be repeated, so that an interrupted `enter` can be completed or undone. A
    registration that was undone cannot be entered again.
    """

    __slots__ = ("_is_over", "_registry", "filesystem", "plugin", "scheme")

    def __init__(self, registry: FilesystemRegistry, filesystem: Registered) -> None:
        self._registry = registry
        self.filesystem = filesystem
        self.scheme = filesystem.scheme  # read once: an attribute of Python code's may be a method
        self.plugin = filesystem.plugin
        self._is_over = False

    def enter(self, *, replace: bool = False, instead_of: SchemeRegistration | None = None) -> None:
        """Make the filesystem serve its scheme from now on.

        With `replace`, it replaces the one that serves the scheme, whose open files stay usable.
        With `instead_of`, it takes the position of that registration in one step, if that is in
        force; a filesystem that took the scheme from it in the meantime goes on serving.

        Raises:
            AlreadyExistsError: Another one serves the scheme (rule FS-018).
            InvalidArgumentError: No URI could name the scheme (rule FS-007).
            ClosedError: The registry is closed, or this was undone.
        """
        registry, scheme = self._registry, self.scheme
        if scheme != "" and scheme_of(f"{scheme}://") != scheme:
            refusal = scheme_misspelt(f"scheme of {self.plugin}", scheme)
            raise refusal.error(InvalidArgumentError, plugin=self.plugin)
        with registry.lock:
            while True:
                before = registry.registered.setdefault(scheme, ())
                if self in before:
                    return
                if registry.is_closed or self._is_over:
                    closed = "the plugin service" if registry.is_closed else self.plugin
                    raise ClosedError(f"{closed} is closed", operation="filesystem")
                if instead_of is not None and instead_of in before:
                    after = tuple(self if r is instead_of else r for r in before)
                else:
                    if before and not replace and self.filesystem is not before[-1].filesystem:
                        taken = scheme_taken(scheme, self.plugin, before[-1].plugin)
                        hint = "; pin it in the configuration, or register with replace=True"
                        raise taken.error(AlreadyExistsError, plugin=self.plugin, hint=hint)
                    after = (*before, self)
                if registry.change(scheme, before, after):
                    return

    def fulfil(self, filesystem: Registered) -> None:
        """Replace the filesystem of this registration in one step."""
        serving = self._registry.by_scheme
        with self._registry.lock:
            if self.scheme in serving and serving[self.scheme] is self.filesystem:
                serving[self.scheme] = filesystem
            self.filesystem = filesystem

    def undo(self) -> None:
        """Remove it; the filesystem that served before, if it is still registered, serves again."""
        registry, scheme = self._registry, self.scheme
        with registry.lock:
            self._is_over = True
            while self in (before := registry.registered.get(scheme, ())):
                after = tuple([r for r in before if r is not self])
                if registry.change(scheme, before, after):
                    return


class FilesystemRegistry:
    """Filesystems by scheme, case-sensitive as in TensorFlow. [any thread]

    A signal handler may use it in the middle of its methods. What they change is therefore computed
    first and put in place by stores without a call between them.

    `fallback` returns the filesystem of a scheme that has none here, or None, or raises why it
    cannot be made. `by_scheme` has what serves now, open or not. For registrations only:
    `registered` has all of a scheme, the last of which serves, and `lock` is held while one
    changes.
    """

    def __init__(self, fallback: Callable[[str], Filesystem | None] = lambda _scheme: None) -> None:
        self._fallback = fallback
        self.by_scheme: dict[str, Registered] = {}
        self.registered: dict[str, tuple[SchemeRegistration, ...]] = {}
        self.lock = ForkLock()
        self.is_closed = False

    @property
    def serving(self) -> dict[str, Registered]:
        """What serves now, by scheme, open or not: a copy, made in one step."""
        return dict(self.by_scheme)

    def register(self, filesystem: Registered, *, replace: bool = False) -> Callable[[], None]:
        """Make a filesystem serve its scheme; see `SchemeRegistration.enter`.

        What serves already may be registered again: those are two registrations. Return a function
        that undoes this one, now or later.
        """
        registration = SchemeRegistration(self, filesystem)
        registration.enter(replace=replace)
        return registration.undo

    def change(
        self,
        scheme: str,
        before: tuple[SchemeRegistration, ...],
        after: tuple[SchemeRegistration, ...],
    ) -> bool:
        """Replace a scheme's registrations, unless they have changed; return whether that was done.

        It makes no call, and signal handlers run after calls only.
        """
        if self.is_closed or self.registered[scheme] is not before:
            return self.is_closed
        self.registered[scheme] = after
        if after:
            self.by_scheme[scheme] = after[-1].filesystem
        elif scheme in self.by_scheme:
            del self.by_scheme[scheme]
        return True

    def get(self, scheme: str) -> Filesystem:
        """Return the filesystem of a scheme; the first time, its library may be mapped for it.

        Raises:
            UnimplementedError: None serves it (TensorFlow's code for this).
            ClosedError: The registry is closed.
            ModularTFError: Its library does not do now what it did when it was tried.
        """
        try:
            found = self.by_scheme[scheme]
        except (KeyError, TypeError):
            if not isinstance(scheme, str):
                raise unexpected(scheme, "a scheme", "a text") from None
            return self._otherwise(scheme, None)
        return self._open(found) if isinstance(found, DeferredFilesystem) else found

    def for_uri(self, uri: str) -> Filesystem:
        """Return the filesystem of a URI's scheme; errors as in `get`."""
        if not isinstance(uri, str):
            raise unexpected(uri, "a URI", "a text")
        match = match_scheme(uri) if "://" in uri else None  # most lookups are of plain paths
        try:
            found = self.by_scheme[match.group() if match else ""]
        except KeyError:
            return self._otherwise(scheme_of(uri), uri)
        return self._open(found) if isinstance(found, DeferredFilesystem) else found

    def _open(self, deferred: DeferredFilesystem) -> Filesystem:
        while True:
            deferred.open()
            found = self.by_scheme.get(deferred.scheme)
            if found is None or found is deferred:
                raise self._unknown(deferred.scheme, None)
            if not isinstance(found, DeferredFilesystem):
                return found
            deferred = found  # another generation took the place meanwhile

    def _otherwise(self, scheme: str, uri: str | None) -> Filesystem:
        found = None if self.is_closed else self._fallback(scheme)
        if found is None:
            raise self._unknown(scheme, uri) from None
        return found

    def _unknown(self, scheme: str, uri: str | None) -> ModularTFError:
        if self.is_closed:
            return ClosedError("the plugin service is closed", path=uri, operation="filesystem")
        shown = f"scheme {scheme!r}" if scheme else "plain paths"
        return UnimplementedError(
            f"no filesystem for {shown}; registered: {sorted(self.by_scheme)}",
            path=uri,
            operation="filesystem",
        )

    def close(self) -> None:
        """Remove all registrations; the filesystems themselves are not closed here."""
        with self.lock:
            self.is_closed = True
            self.registered.clear()
            self.by_scheme.clear()
