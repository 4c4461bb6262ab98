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
from modular_tf.filesystem.scheme import match_scheme, scheme_of
from modular_tf.rules.filesystem import scheme_misspelt, scheme_taken

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.filesystem import Filesystem

    Registered: TypeAlias = "Filesystem | DeferredFilesystem"


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


class SchemeRegistration:
    """A registered filesystem, which serves its scheme from `enter` to `undo`. [any thread]

    Both calls can be repeated, so that an interrupted `enter` can be completed or undone. A
    registration that was undone cannot be entered again.

    Attributes:
        filesystem: What serves the scheme, or stands for what does.
        scheme: The scheme.
        plugin: Whose it is.
        is_over: Whether it was undone. Set by its registry.
    """

    __slots__ = ("_registry", "filesystem", "is_over", "plugin", "scheme")

    def __init__(self, registry: FilesystemRegistry, filesystem: Registered) -> None:
        self._registry = registry
        self.filesystem = filesystem
        self.scheme = filesystem.scheme  # read once: an attribute of Python code's may be a method
        self.plugin = filesystem.plugin
        self.is_over = False

    def enter(self, *, replace: bool = False, instead_of: SchemeRegistration | None = None) -> None:
        """Let the filesystem serve its scheme from now on.

        Args:
            replace: Replace the filesystem that serves the scheme; its open files stay usable.
            instead_of: Take the position of this one in one step, where it is in force; what took
                the scheme from it in the meantime goes on serving.

        Raises:
            AlreadyExistsError: Another one serves the scheme (rule FS-018).
            InvalidArgumentError: No URI could name the scheme (rule FS-007).
            ClosedError: The registry is closed, or this was undone.
        """
        self._registry.enter(self, replace=replace, instead_of=instead_of)

    def fulfil(self, filesystem: Registered) -> None:
        """Replace the filesystem of this registration in one step."""
        self._registry.fulfil(self, filesystem)

    def undo(self) -> None:
        """Remove it; the filesystem that served before, if it is still registered, serves again."""
        self._registry.leave(self)


class FilesystemRegistry:
    """Filesystems by scheme, case-sensitive as in TensorFlow. [any thread]

    A signal handler may use it in the middle of its methods. What they change is therefore computed
    first and put in place by stores without a call between them.

    Args:
        fallback: Returns the filesystem of a scheme that has none here; None for none. It may raise
            why that cannot be made.
    """

    def __init__(self, fallback: Callable[[str], Filesystem | None] = lambda _scheme: None) -> None:
        self._fallback = fallback
        self._by_scheme: dict[str, Registered] = {}
        # All that are registered for a scheme, the last of which serves.
        self._registered: dict[str, tuple[SchemeRegistration, ...]] = {}
        self._lock = ForkLock()
        self._closed = False

    @property
    def serving(self) -> dict[str, Registered]:
        """What serves now, by scheme, open or not: a copy, made in one step."""
        return dict(self._by_scheme)

    def register(self, filesystem: Registered, *, replace: bool = False) -> Callable[[], None]:
        """Let a filesystem serve its scheme; see `SchemeRegistration.enter`.

        What serves already may be registered again: those are two registrations.

        Returns:
            A function that undoes this registration, now or later.

        Raises:
            AlreadyExistsError: Another one serves the scheme (rule FS-018).
            InvalidArgumentError: No URI could name the scheme (rule FS-007).
            ClosedError: The registry is closed.
        """
        registration = SchemeRegistration(self, filesystem)
        registration.enter(replace=replace)
        return registration.undo

    # -- for registrations ------------------------------------------------------------------------

    def enter(
        self,
        entering: SchemeRegistration,
        *,
        replace: bool = False,
        instead_of: SchemeRegistration | None = None,
    ) -> None:
        """Add a registration; see `SchemeRegistration.enter`."""
        scheme = entering.scheme
        check_scheme(scheme, entering.plugin)
        with self._lock:
            while True:
                before = self._registered.setdefault(scheme, ())
                if entering in before:
                    return
                self._check_open(entering)
                if instead_of is not None and instead_of in before:
                    after = tuple(entering if r is instead_of else r for r in before)
                else:
                    if before and not replace:
                        _check_same(entering, before[-1])
                    after = (*before, entering)
                if self._change(scheme, before, after):
                    return

    def fulfil(self, registration: SchemeRegistration, filesystem: Registered) -> None:
        """Replace a registration's filesystem; see `SchemeRegistration.fulfil`."""
        scheme = registration.scheme
        with self._lock:
            if scheme in self._by_scheme and self._by_scheme[scheme] is registration.filesystem:
                self._by_scheme[scheme] = filesystem
            registration.filesystem = filesystem

    def leave(self, leaving: SchemeRegistration) -> None:
        """Remove a registration; see `SchemeRegistration.undo`."""
        scheme = leaving.scheme
        with self._lock:
            leaving.is_over = True
            while leaving in (before := self._registered.get(scheme, ())):
                after = tuple([r for r in before if r is not leaving])
                if self._change(scheme, before, after):
                    return

    def _check_open(self, entering: SchemeRegistration) -> None:
        if self._closed or entering.is_over:
            who = "the plugin service" if self._closed else entering.plugin
            raise ClosedError(f"{who} is closed", operation="filesystem")

    def _change(
        self,
        scheme: str,
        before: tuple[SchemeRegistration, ...],
        after: tuple[SchemeRegistration, ...],
    ) -> bool:
        """Replace a scheme's registrations, unless they have changed; return whether that was done.

        It makes no call, and signal handlers run after calls only.
        """
        if self._closed or self._registered[scheme] is not before:
            return self._closed
        self._registered[scheme] = after
        if after:
            self._by_scheme[scheme] = after[-1].filesystem
        elif scheme in self._by_scheme:
            del self._by_scheme[scheme]
        return True

    def get(self, scheme: str) -> Filesystem:
        """Return the filesystem of a scheme; the first time, its library may be mapped for it.

        Raises:
            UnimplementedError: None serves it (TensorFlow's code for this).
            ClosedError: The registry is closed.
            ModularTFError: Its library does not do now what it did when it was tried.
        """
        try:
            found = self._by_scheme[scheme]
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
            found = self._by_scheme[match.group() if match else ""]
        except KeyError:
            return self._otherwise(scheme_of(uri), uri)
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

    def _otherwise(self, scheme: str, uri: str | None) -> Filesystem:
        found = None if self._closed else self._fallback(scheme)
        if found is None:
            raise self._unknown(scheme, uri) from None
        return found

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
        """Remove all registrations; the filesystems themselves are not closed here."""
        with self._lock:
            self._closed = True
            self._registered.clear()
            self._by_scheme.clear()


def _check_same(entering: SchemeRegistration, owner: SchemeRegistration) -> None:
    if entering.filesystem is not owner.filesystem:
        refusal = scheme_taken(entering.scheme, entering.plugin, owner.plugin)
        hint = "; pin it in the configuration, or register with replace=True"
        raise refusal.error(AlreadyExistsError, plugin=entering.plugin, hint=hint)


def check_scheme(scheme: str, plugin: str) -> None:
    """Raise if no URI can name a scheme.

    Raises:
        InvalidArgumentError: Rule FS-007.
    """
    if scheme != "" and scheme_of(f"{scheme}://") != scheme:
        refusal = scheme_misspelt(f"scheme of {plugin}", scheme)
        raise refusal.error(InvalidArgumentError, plugin=plugin)
