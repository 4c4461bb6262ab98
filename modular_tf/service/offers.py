"""What one library of a plugin has registered, until it gives that back or another succeeds it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, cast

from modular_tf.device.deferred import DeferredFactory
from modular_tf.errors import AlreadyExistsError, ModularTFError
from modular_tf.filesystem.deferred import DeferredFilesystem
from modular_tf.filesystem.registry import SchemeRegistration
from modular_tf.rules import Violation
from modular_tf.rules.filesystem import scheme_pinned, scheme_taken
from modular_tf.service.reload.retired_library import RetiredGeneration, close_served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.device.ranking import Registration
    from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin_file import PluginFile
    from modular_tf.service.registries import Registries

    _Served = PluginFilesystem | DeferredFilesystem


class Registrations:
    """The schemes and the platform of one library of a plugin, in the registries of one service.

    What it registers may be deferred; the real one then takes its place when it is added. A
    library that succeeds another one registers nothing until it takes over. Each step can be done
    again, after whatever interrupted it.

    Used by its generation, under the lock of that.

    Attributes:
        scheme_places: Its registrations, by scheme.
        device_place: The registration of its platform, None for none.

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
        self._file = file
        self._config = config
        self._registries = registries
        self._predecessor = predecessor
        self.scheme_places: dict[str, SchemeRegistration] = {}
        self.device_place: Registration | None = None

    @property
    def filesystems(self) -> dict[str, _Served]:
        """What it registered, by scheme."""
        places = list(self.scheme_places.items())
        return {scheme: cast("_Served", place.filesystem) for scheme, place in places}

    @property
    def platform(self) -> DevicePlatform | DeferredFactory | None:
        """What it registered for its devices."""
        place = self.device_place
        return None if place is None else cast("DevicePlatform | DeferredFactory", place.factory)

    # -- schemes ----------------------------------------------------------------------------------

    def why_taken(self, scheme: str) -> Violation | None:
        """Return why it cannot have a scheme: who else has it, or is to have it."""
        plugin, config, old = self._file.plugin, self._config, self._predecessor
        if old is None and scheme in self.scheme_places:
            return None
        pinned = config.scheme_pins.get(scheme, plugin)
        if pinned != plugin:
            return scheme_pinned(scheme, plugin, pinned, where=config.origin)
        inherits = old is not None and scheme in old.scheme_places
        owner = None if inherits else self._registries.schemes.view.get(scheme)
        return None if owner is None else scheme_taken(scheme, plugin, owner.plugin)

    def add_filesystem(self, filesystem: _Served) -> None:
        """Register a filesystem for its scheme; one that cannot be registered is closed.

        It takes the place of a deferred one, and none is taken by a deferred one.

        Raises:
            AlreadyExistsError: Somebody has it (rule FS-018).
            InvalidArgumentError: No URI could name it (rule FS-007).
            ClosedError: The service is closed.
        """
        scheme = filesystem.scheme
        try:
            if (why := self.why_taken(scheme)) is not None:
                raise AlreadyExistsError(why.message, plugin=self._file.plugin, rule=why.rule)
            made = SchemeRegistration(self._registries.schemes, filesystem)
            place = self.scheme_places.setdefault(scheme, made)
            if not isinstance(filesystem, DeferredFilesystem):
                place.fulfil(filesystem)
            if self._predecessor is None:
                place.enter()
        except ModularTFError:
            self._give_up(filesystem)
            raise

    def _give_up(self, filesystem: _Served) -> None:
        self.scheme_places.pop(filesystem.scheme, None)
        if not isinstance(filesystem, DeferredFilesystem):
            close_served([filesystem], None, [], at_exit=False)

    # -- devices ----------------------------------------------------------------------------------

    def add_platform(self, platform: DevicePlatform | DeferredFactory) -> None:
        """Register a platform, as `add_filesystem` a filesystem.

        Raises:
            AlreadyExistsError: Its name is taken (rule SE-050).
        """
        devices = self._registries.devices
        made = devices.registration_of(platform, plugin=self._file.plugin)
        place = self.device_place = self.device_place or made
        try:
            if not (place.factory is platform or isinstance(platform, DeferredFactory)):
                devices.fulfil(place, platform)
            if self._predecessor is None:
                devices.enter(place)
            else:
                devices.check_room(place, instead_of=self._predecessor.device_place)
        except ModularTFError:
            self._give_devices_back()
            if not isinstance(platform, DeferredFactory):
                platform.close()
            raise

    def _give_devices_back(self) -> None:
        if self.device_place is not None:
            self._registries.devices.leave(self.device_place)
        self.device_place = None

    # -- in the place of another ------------------------------------------------------------------

    def give_up_taken(self) -> list[Violation]:
        """Give up, and close, what somebody else has got since this was added for a take-over.

        Does nothing without a predecessor.

        Returns:
            What it was, and who has it.
        """
        if self._predecessor is None:
            return []
        return [*self._give_up_schemes(), *self._give_up_platform()]

    def _give_up_schemes(self) -> Iterator[Violation]:
        for scheme, filesystem in self.filesystems.items():
            if (why := self.why_taken(scheme)) is not None:
                self._give_up(filesystem)
                yield why.at("register")

    def _give_up_platform(self) -> Iterator[Violation]:
        if (platform := self.platform) is not None:
            try:
                self.add_platform(platform)
            except ModularTFError as error:
                yield Violation.of_error(error, "register")

    def take_over(self) -> None:
        """Serve what the predecessor serves, in one step, and what it did not; it serves no longer.

        Does nothing without a predecessor. What somebody else has was given up before; what they
        got since is theirs.
        """
        old = self._predecessor
        if old is None:
            return
        for scheme, place in list(self.scheme_places.items()):
            with suppress(AlreadyExistsError):
                place.enter(instead_of=old.scheme_places.get(scheme))
        if self.device_place is not None:
            with suppress(AlreadyExistsError):
                self._registries.devices.enter(self.device_place, instead_of=old.device_place)
        old.withdraw()
        self._predecessor = None

    # -- the end ----------------------------------------------------------------------------------

    def give_back_deferred(self) -> None:
        """Give back what was registered before the library was mapped, and is not there."""
        for scheme, place in list(self.scheme_places.items()):
            if isinstance(place.filesystem, DeferredFilesystem):
                place.undo()
                self.scheme_places.pop(scheme, None)
        if isinstance(self.platform, DeferredFactory):
            self._give_devices_back()

    def withdraw(self) -> None:
        """Give everything back; what is open goes on. [any thread]"""
        for place in reversed(list(self.scheme_places.values())):
            place.undo()
        if self.device_place is not None:
            self._registries.devices.leave(self.device_place)

    def retired(self) -> RetiredGeneration:
        """Return what will be left for those who hold something of it, once it is forgotten."""
        platform = self._loaded_platform
        lent = [] if platform is None else self._registries.devices.listed_devices(platform)
        return RetiredGeneration(
            self._file.plugin, self._file.path, self._opened_filesystems, platform, lent
        )

    def forget(self) -> None:
        """Give everything back, and let go of it. [any thread]"""
        self.withdraw()
        self.scheme_places.clear()
        self.device_place = None

    def close(self, failures: list[ModularTFError], *, at_exit: bool) -> None:
        """Give everything back, and close it; add what went wrong to `failures`. [any thread]"""
        self.withdraw()
        close_served(self._opened_filesystems, self._loaded_platform, failures, at_exit=at_exit)

    def after_fork_in_child(self) -> None:
        """Make what the parent had usable in a forked child, or give it up."""
        for filesystem in self._opened_filesystems:
            with suppress(ModularTFError):
                filesystem.after_fork_in_child()
        if self._loaded_platform is not None:
            self._loaded_platform.after_fork_in_child()

    @property
    def _opened_filesystems(self) -> list[PluginFilesystem]:
        return [f for f in self.filesystems.values() if not isinstance(f, DeferredFilesystem)]

    @property
    def _loaded_platform(self) -> DevicePlatform | None:
        return None if isinstance(self.platform, DeferredFactory) else self.platform
