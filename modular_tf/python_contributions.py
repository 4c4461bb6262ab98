"""Filesystems and devices that Python code brings, registered beside those of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.device.python_factory import PythonDeviceFactory
from modular_tf.filesystem.python_filesystem import as_filesystem
from modular_tf.report import PYTHON_SOURCE, PluginRecord, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.registry import DeviceRegistry
    from modular_tf.filesystem.registry import FilesystemRegistry


class PythonContributions:
    """What Python code registered in one service. Used under the service's lock.

    Args:
        filesystems: Where filesystems serve.
        devices: Where device factories serve.
        unused_name: Makes a name unique among the service's plugins.
    """

    def __init__(
        self,
        filesystems: FilesystemRegistry,
        devices: DeviceRegistry,
        unused_name: Callable[[str], str],
    ) -> None:
        self._filesystems = filesystems
        self._devices = devices
        self._unused_name = unused_name
        self._records: dict[str, PluginRecord] = {}

    @property
    def records(self) -> dict[str, PluginRecord]:
        """One record per contribution, by name."""
        return self._records

    def add_filesystem(
        self, scheme: str, filesystem: Any, *, replace: bool
    ) -> Callable[[], None]:
        """Register a filesystem; see `PluginService.register_filesystem`."""
        made = as_filesystem(scheme, filesystem)
        undo = self._filesystems.register(made, replace=replace)
        return self._record(made.plugin, undo, kind="filesystem", schemes=(scheme,))

    def add_device_factory(self, factory: Any) -> Callable[[], None]:
        """Register a device factory; see `PluginService.register_device_factory`."""
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
        schemes: tuple[str, ...] = (),
        device_types: tuple[str, ...] = (),
    ) -> Callable[[], None]:
        name = self._unused_name(name)
        self._records[name] = PluginRecord(
            name=name,
            path=None,
            source=PYTHON_SOURCE,
            kinds=(kind,),
            state=State.LOADED,
            schemes=schemes,
            device_types=device_types,
        )

        def forget() -> None:
            undo()
            self._records.pop(name, None)

        return forget
