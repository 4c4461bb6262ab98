"""Filesystems and devices of Python, registered beside those of plugins."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from modular_tf.errors import AlreadyExistsError
from modular_tf.filesystem.registry import DeferredFilesystem, MadeOnce, SchemeRegistration
from modular_tf.service.configured_filesystems import make_configured
from modular_tf.service.lifetime import entry_point
from modular_tf.service.registrations import why_pinned
from modular_tf.service.report import (
    CONFIGURATION_SOURCE,
    PYTHON_SOURCE,
    PluginRecord,
    State,
    lost_schemes,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.registry import Registered
    from modular_tf.service.configuration import Config
    from modular_tf.service.configured_filesystems import ConfiguredFilesystem
    from modular_tf.service.hooks import Hooks
    from modular_tf.service.lifetime import ServiceLock
    from modular_tf.service.registrations import Registries


@dataclass(eq=False)
class _Contribution:
    """One object of Python code, made before it is registered."""

    name: str
    enter: Callable[[str], None]  # registers it under its name, which is made unique then
    leave: Callable[[], None]  # undoes that, and can be repeated
    filesystems: Mapping[str, Registered] = field(default_factory=dict)
    device_types: tuple[str, ...] = ()
    source: str = PYTHON_SOURCE  # who named the object

    def record(self, name: str) -> PluginRecord:
        return PluginRecord(
            name=name,
            path=None,
            source=self.source,
            kinds=("device" if self.device_types else "filesystem",),
            state=State.LOADED,
            schemes=tuple(self.filesystems),
            device_types=self.device_types,
        )


class PythonContributions:
    """What Python code registered in one service. [any thread]

    Attributes of its objects, which are users' code, are read before the service's lock is taken.
    """

    def __init__(
        self,
        lock: ServiceLock,
        registries: Registries,
        config: Config,
        reserved: Mapping[str, str],
        unused_name: Callable[[str], str],
    ) -> None:
        self._lock = lock
        self._registries = registries
        self._config = config
        self._reserved = reserved
        self._unused_name = unused_name
        self._contributed: dict[str, _Contribution] = {}
        self._is_hooked = False  # whether what hooks bring is registered
        self._configured: list[tuple[SchemeRegistration, DeferredFilesystem, MadeOnce]] = []

    @property
    def names(self) -> set[str]:
        """The names that are taken."""
        return set(self._contributed)

    def records(self) -> list[PluginRecord]:
        """Return one record per contribution, as it serves now."""
        contributed = list(self._contributed.items())
        serving = self._registries.schemes.serving
        return [
            without(made.record(name), lost_schemes(name, made.filesystems, serving))
            for name, made in contributed
        ]

    def add_filesystem(self, scheme: str, filesystem: Any, *, replace: bool) -> Callable[[], None]:
        """Register a filesystem; see `PluginService.register_filesystem`."""
        return self._add(self._of_filesystem(scheme, filesystem, replace=replace))

    def add_device_factory(self, factory: Any) -> Callable[[], None]:
        """Register a device factory; see `PluginService.register_device_factory`."""
        return self._add(self._of_factory(factory))

    # -- what the configuration names --------------------------------------------------------------

    @entry_point
    def add_configured(self) -> None:
        """Register what the configuration names; nothing of it is imported."""
        for scheme, configured in self._config.filesystems.items():
            self._add(self._of_configured(scheme, configured))

    def _of_configured(self, scheme: str, configured: ConfiguredFilesystem) -> _Contribution:
        def make() -> Filesystem:
            return make_configured(scheme, configured, place.plugin, origin=self._config.origin)

        def open_now() -> None:
            filesystems[scheme] = filesystem = made.get()
            place.fulfil(filesystem)

        made = MadeOnce(scheme, make)
        deferred = DeferredFilesystem(scheme, configured.name, open_now)
        filesystems: dict[str, Registered] = {scheme: deferred}
        place = SchemeRegistration(self._registries.schemes, deferred)
        self._configured.append((place, deferred, made))

        def enter(name: str) -> None:
            deferred.plugin = place.plugin = name
            place.enter()

        return _Contribution(
            configured.name,
            enter=enter,
            leave=place.undo,
            filesystems=filesystems,
            source=CONFIGURATION_SOURCE,
        )

    def after_fork_in_child(self) -> None:
        """Have the filesystems that the configuration names made anew."""
        for place, deferred, made in self._configured:
            made.after_fork_in_child()
            place.fulfil(deferred)

    # -- what hooks bring -------------------------------------------------------------------------

    def add_hooked(self, hooks: Hooks) -> None:
        """Register what hooks bring, once; what is refused is noted there."""
        if self._is_hooked:
            return
        if hooks.is_asking("modular_tf_filesystems", "modular_tf_device_factories"):
            return  # this is done when they have answered
        brought = []
        for what, make in self._hooked(hooks):
            try:
                brought.append((what, make()))
            except Exception as error:  # noqa: BLE001  (its attributes may raise anything)
                hooks.note(what, error)
        self._add_brought(hooks, brought)

    @entry_point
    def _add_brought(self, hooks: Hooks, brought: list[tuple[str, _Contribution]]) -> None:
        with self._lock:
            if self._is_hooked:  # another thread was faster
                return
            try:
                for what, made in brought:
                    try:
                        self._register(made)
                    except Exception as error:  # noqa: BLE001  (its attributes may raise anything)
                        hooks.note(what, error)
            except BaseException:  # the next call registers all of it
                for _, made in brought:
                    self._undo(made)
                raise
            self._is_hooked = True

    def _hooked(self, hooks: Hooks) -> Iterator[tuple[str, Callable[[], _Contribution]]]:
        of_filesystem = partial(self._of_filesystem, replace=False, reserved=self._reserved)
        for scheme, filesystem in hooks.filesystems():
            what = f"registering {filesystem!r} for scheme {scheme!r}"
            yield what, partial(of_filesystem, scheme, filesystem)
        for factory in hooks.device_factories():
            yield f"registering {factory!r}", partial(self._of_factory, factory)

    # -- registering ------------------------------------------------------------------------------

    def _of_filesystem(
        self,
        scheme: str,
        filesystem: Any,
        *,
        replace: bool,
        reserved: Mapping[str, str] = MappingProxyType({}),
    ) -> _Contribution:
        # Imported where Python code registers something; in most processes none does.
        from modular_tf.filesystem.python_filesystem import as_filesystem  # noqa: PLC0415

        made = as_filesystem(scheme, filesystem)
        place = SchemeRegistration(self._registries.schemes, made)

        def enter(name: str) -> None:
            if made is not filesystem:
                made.plugin = place.plugin = name
            why = why_pinned(place.scheme, place.plugin, self._config, reserved)
            if why is not None and not replace:
                raise why.error(AlreadyExistsError, plugin=place.plugin)
            place.enter(replace=replace)

        return _Contribution(
            place.plugin, enter=enter, leave=place.undo, filesystems={place.scheme: made}
        )

    def _of_factory(self, factory: Any) -> _Contribution:
        from modular_tf.device.factory import PythonDeviceFactory  # noqa: PLC0415

        made = PythonDeviceFactory(factory, plugin=type(factory).__name__)
        devices = self._registries.devices
        place = devices.registration_of(made, plugin=made.plugin)

        def enter(name: str) -> None:
            made.plugin = place.plugin = name
            devices.enter(place)

        return _Contribution(
            made.plugin,
            enter=enter,
            leave=partial(devices.leave, place),
            device_types=(made.device_type,),
        )

    @entry_point
    def _add(self, made: _Contribution) -> Callable[[], None]:
        with self._lock:
            self._lock.check_open()
            self._register(made)
        return partial(self._undo, made)

    def _register(self, made: _Contribution) -> None:
        made.name = self._unused_name(made.name)
        try:
            made.enter(made.name)
        except BaseException:
            made.leave()
            raise
        self._contributed[made.name] = made

    @entry_point
    def _undo(self, made: _Contribution) -> None:
        made.leave()
        # Without the lock, under which an init may hang.
        if self._contributed.get(made.name) is made:
            self._contributed.pop(made.name, None)
