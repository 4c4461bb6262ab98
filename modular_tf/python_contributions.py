"""Filesystems and devices that Python code brings, registered beside those of plugins."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modular_tf.errors import AlreadyExistsError
from modular_tf.report import PYTHON_SOURCE, PluginRecord, State
from modular_tf.shadowing import without_lost_schemes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.registry import FilesystemRegistry
    from modular_tf.hooks import Hooks


class PythonContributions:
    """What Python code registered in one service. Used under the service's lock.

    Args:
        filesystems: Where filesystems serve.
        devices: Where device factories serve.
        pins: Name of the plugin that alone may serve a scheme, from the configuration.
        unused_name: Makes a name unique among the service's plugins.
    """

    def __init__(
        self,
        filesystems: FilesystemRegistry,
        devices: DeviceRegistry,
        pins: Mapping[str, str],
        unused_name: Callable[[str], str],
    ) -> None:
        self._filesystems = filesystems
        self._devices = devices
        self._pins = pins
        self._unused_name = unused_name
        self._hooked = False
        self._records: dict[str, PluginRecord] = {}
        self._made: dict[str, dict[str, Filesystem]] = {}

    @property
    def names(self) -> set[str]:
        """The names that are taken."""
        return set(self._records)

    def records(self) -> list[PluginRecord]:
        """Return one record per contribution, as it serves now."""
        serving = self._filesystems.view
        return [
            without_lost_schemes(record, self._made[name], serving)
            for name, record in self._records.items()
        ]

    def add_hooked(self, hooks: Hooks) -> None:
        """Register what hooks bring, once; what is refused is noted there."""
        if self._hooked:
            return
        self._hooked = True
        for scheme, filesystem in hooks.filesystems():
            with _noted(hooks, f"registering {filesystem!r} for scheme {scheme!r}"):
                self.add_filesystem(scheme, filesystem, replace=False)
        for factory in hooks.device_factories():
            with _noted(hooks, f"registering {factory!r}"):
                self.add_device_factory(factory)

    def add_filesystem(self, scheme: str, filesystem: Any, *, replace: bool) -> Callable[[], None]:
        """Register a filesystem; see `PluginService.register_filesystem`."""
        # Imported where Python code registers something; in most processes none does.
        from modular_tf.filesystem.python_filesystem import as_filesystem  # noqa: PLC0415

        made = as_filesystem(scheme, filesystem)
        if made is not filesystem:
            made.plugin = self._unused_name(made.plugin)
        if not replace:
            self._check_pin(made)
        undo = self._filesystems.register(made, replace=replace)
        return self._record(made.plugin, undo, kind="filesystem", filesystems={scheme: made})

    def _check_pin(self, filesystem: Filesystem) -> None:
        pinned = self._pins.get(filesystem.scheme, filesystem.plugin)
        if pinned != filesystem.plugin:
            raise AlreadyExistsError(
                f"scheme {filesystem.scheme!r} of {filesystem.plugin} is pinned to {pinned!r}"
                " in the configuration (rule FS-018)",
                plugin=filesystem.plugin,
                rule="FS-018",
            )

    def add_device_factory(self, factory: Any) -> Callable[[], None]:
        """Register a device factory; see `PluginService.register_device_factory`."""
        from modular_tf.device.python_factory import PythonDeviceFactory  # noqa: PLC0415

        name = self._unused_name(type(factory).__name__)
        made = PythonDeviceFactory(factory, plugin=name)
        undo = self._devices.register(made, plugin=name)
        return self._record(name, undo, kind="device", device_types=(made.device_type,))

    def _record(
        self,
        name: str,
        undo: Callable[[], None],
        *,
        kind: str,
        filesystems: dict[str, Filesystem] | None = None,
        device_types: tuple[str, ...] = (),
    ) -> Callable[[], None]:
        name = self._unused_name(name)
        self._records[name] = PluginRecord(
            name=name,
            path=None,
            source=PYTHON_SOURCE,
            kinds=(kind,),
            state=State.LOADED,
            schemes=tuple(filesystems or ()),
            device_types=device_types,
        )

        self._made[name] = filesystems or {}

        def forget() -> None:
            undo()
            self._records.pop(name, None)

        return forget


@contextmanager
def _noted(hooks: Hooks, what: str) -> Iterator[None]:
    """Let nothing out that goes wrong with an object of a stranger; note it instead."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  (its attributes may raise anything)
        hooks.note(what, error)
