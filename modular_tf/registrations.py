"""What one library of a plugin has registered, until it gives that back or another succeeds it."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from modular_tf.device.deferred import DeferredFactory
from modular_tf.errors import ModularTFError
from modular_tf.filesystem.deferred import DeferredFilesystem
from modular_tf.report import Reason
from modular_tf.retired_generation import RetiredGeneration, close_served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from modular_tf.configuration import Config
    from modular_tf.device.device import Device
    from modular_tf.device.platform import DevicePlatform
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.plugin_file import PluginFile
    from modular_tf.registries import Registries

_DEVICES = object()  # stands among the schemes, for what undoes their registrations


class Registrations:
    """The schemes and the platform of one library of a plugin, in the registries of one service.

    What it registers may be deferred; the real one then takes its place when it is added. A
    library that succeeds another one registers nothing until it takes over.

    Used by its generation, under the lock of that.

    Attributes:
        filesystems: What it registered, by scheme.
        platform: What it registered for its devices.

    Args:
        file: The library.
        config: What the user decided.
        registries: Where it registers.
        predecessor: Whose place it takes, by `take_over`.
    """

    def __init__(
        self,
        file: PluginFile,
        config: Config,
        registries: Registries,
        predecessor: Registrations | None = None,
    ) -> None:
        self.filesystems: dict[str, PluginFilesystem | DeferredFilesystem] = {}
        self.platform: DevicePlatform | DeferredFactory | None = None
        self._file = file
        self._config = config
        self._registries = registries
        self._predecessor = predecessor
        self._undo: dict[object, Callable[[], None]] = {}
        self._lent: list[Device] = []

    # -- schemes ----------------------------------------------------------------------------------

    def why_taken(self, scheme: str) -> str | None:
        """Return why it cannot have a scheme: who else has it, or is to have it."""
        plugin, config = self._file.plugin, self._config
        pinned = config.scheme_pins.get(scheme, plugin)
        if pinned != plugin:
            return f"scheme {scheme!r} of {plugin} is pinned to {pinned!r} in {config.origin}"
        inherits = self._predecessor is not None and scheme in self._predecessor.filesystems
        owner = None if inherits else self._registries.schemes.view.get(scheme)
        return (
            None if owner is None else f"scheme {scheme!r} of {plugin} is taken by {owner.plugin}"
        )

    def add_filesystem(self, filesystem: PluginFilesystem | DeferredFilesystem) -> None:
        """Register a filesystem for its scheme, which nobody else has; close one that cannot be.

        Raises:
            AlreadyExistsError: Somebody has it (rule FS-018).
            InvalidArgumentError: No URI could name it (rule FS-007).
            ClosedError: The service is closed.
        """
        deferred = self.filesystems.get(filesystem.scheme)
        self.filesystems[filesystem.scheme] = filesystem  # first: closing finds it from now on
        try:
            if isinstance(deferred, DeferredFilesystem):
                self._registries.schemes.fulfil(deferred, filesystem)
            elif self._predecessor is None:
                self._register_scheme(filesystem)
        except ModularTFError:
            del self.filesystems[filesystem.scheme]
            if not isinstance(filesystem, DeferredFilesystem):
                close_served([filesystem], None, at_exit=False)
            raise

    def _register_scheme(self, filesystem: PluginFilesystem | DeferredFilesystem) -> None:
        self._undo[filesystem.scheme] = self._registries.schemes.register(filesystem)

    # -- devices ----------------------------------------------------------------------------------

    def add_platform(self, platform: DevicePlatform | DeferredFactory) -> None:
        """Register a platform.

        Raises:
            AlreadyExistsError: Its name is taken (rule SE-050); it is closed.
        """
        deferred = self.platform
        with self._placing(platform):
            if isinstance(deferred, DeferredFactory) and _is_same_rank(deferred, platform):
                self._registries.devices.fulfil(deferred, platform)
            else:
                self._give_back(_DEVICES)
                self._register_platform(platform)

    @contextmanager
    def _placing(self, platform: DevicePlatform | DeferredFactory) -> Iterator[None]:
        """Have a platform that is being registered; close one that cannot be."""
        self.platform = platform
        try:
            yield
        except ModularTFError:
            self.platform = None
            if not isinstance(platform, DeferredFactory):
                platform.close()
            raise

    def _register_platform(self, platform: DevicePlatform | DeferredFactory) -> None:
        devices, plugin, old = self._registries.devices, self._file.plugin, self._predecessor
        if old is None:
            self._undo[_DEVICES] = devices.register(platform, plugin=plugin)
        else:  # it takes the place later
            devices.check_room(platform, plugin=plugin, instead_of=old.platform)

    # -- in the place of another ------------------------------------------------------------------

    def give_up_taken(self) -> list[Reason]:
        """Give up, and close, what somebody else has got since this was added for a take-over.

        Does nothing without a predecessor.

        Returns:
            What it was, and who has it.
        """
        if self._predecessor is None:
            return []
        return [*self._give_up_schemes(), *self._give_up_platform()]

    def _give_up_schemes(self) -> Iterator[Reason]:
        for scheme, filesystem in list(self.filesystems.items()):
            if (why := self.why_taken(scheme)) is not None:
                del self.filesystems[scheme]
                if not isinstance(filesystem, DeferredFilesystem):
                    close_served([filesystem], None, at_exit=False)
                yield Reason.of_rule("register", "FS-018", why)

    def _give_up_platform(self) -> Iterator[Reason]:
        if (platform := self.platform) is not None:
            try:
                with self._placing(platform):
                    self._register_platform(platform)
            except ModularTFError as error:
                yield Reason.of_error("register", error)

    def take_over(self) -> None:
        """Serve what the predecessor serves, in one step, and what it did not; it serves no longer.

        Does nothing without a predecessor. What somebody else has was given up before.
        """
        old, self._predecessor = self._predecessor, None
        if old is None:
            return
        self._take_schemes_over(old)
        if self.platform is not None:
            self._take_platform_over(old, self.platform)
        old.withdraw()

    def _take_schemes_over(self, old: Registrations) -> None:
        for scheme, filesystem in self.filesystems.items():
            if (undo := old._undo.pop(scheme, None)) is not None:
                self._registries.schemes.fulfil(old.filesystems[scheme], filesystem)
                self._undo[scheme] = undo
            else:
                self._register_scheme(filesystem)

    def _take_platform_over(
        self, old: Registrations, platform: DevicePlatform | DeferredFactory
    ) -> None:
        if old.platform is None or _DEVICES not in old._undo:
            self._register_platform(platform)
        else:
            old._lent += self._registries.devices.fulfil(old.platform, platform)
            self._undo[_DEVICES] = old._undo.pop(_DEVICES)

    # -- the end ----------------------------------------------------------------------------------

    def give_back_deferred(self) -> None:
        """Give back what was registered before the library was mapped, and is not there."""
        for scheme, filesystem in list(self.filesystems.items()):
            if isinstance(filesystem, DeferredFilesystem):
                del self.filesystems[scheme]
                self._give_back(scheme)
        if isinstance(self.platform, DeferredFactory):
            self.platform = None
            self._give_back(_DEVICES)

    def _give_back(self, place: object) -> None:
        if (undo := self._undo.pop(place, None)) is not None:
            undo()

    def withdraw(self) -> None:
        """Give everything back; what is open goes on. [any thread]"""
        for undo in reversed(list(self._undo.values())):
            undo()
        self._undo.clear()

    def retire(self) -> RetiredGeneration:
        """Give everything back, and what is left to those who hold something of it."""
        platform = self._loaded_platform
        if platform is not None:
            self._lent += self._registries.devices.listed_devices(platform)
        self.withdraw()
        retired = RetiredGeneration(
            self._file.plugin, self._file.path, self._opened_filesystems, platform, self._lent
        )
        self.filesystems, self.platform, self._lent = {}, None, []
        return retired

    def close(self, *, at_exit: bool) -> list[ModularTFError]:
        """Give everything back, and close it; return what went wrong. [any thread]"""
        self.withdraw()
        return close_served(self._opened_filesystems, self._loaded_platform, at_exit=at_exit)

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for filesystem in self._opened_filesystems:
            with suppress(ModularTFError):
                filesystem.after_fork_in_child()

    @property
    def _opened_filesystems(self) -> list[PluginFilesystem]:
        return [f for f in self.filesystems.values() if not isinstance(f, DeferredFilesystem)]

    @property
    def _loaded_platform(self) -> DevicePlatform | None:
        return None if isinstance(self.platform, DeferredFactory) else self.platform


def _is_same_rank(deferred: DeferredFactory, platform: DevicePlatform | DeferredFactory) -> bool:
    return (deferred.device_type, deferred.platform, deferred.priority) == (
        platform.device_type,
        platform.platform,
        platform.priority,
    )
