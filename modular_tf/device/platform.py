"""The platform of a loaded C plugin: a device factory that ends when it is closed."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, final

from modular_tf.device.factory import PLUGIN_PRIORITY, checked_count
from modular_tf.device.fork_lock import ForkLock
from modular_tf.device.plugin_device import PluginDevice
from modular_tf.errors import ClosedError, InternalError, ModularTFError, NotFoundError
from modular_tf.loading.device_loader import RefusedDeviceTables, read_device_tables
from modular_tf.native import device_calls

if TYPE_CHECKING:
    from types import TracebackType

    from modular_tf.device.details import DeviceDetails
    from modular_tf.loading.device_loader import ExportingLibrary
    from modular_tf.loading.device_tables import DeviceTables
    from modular_tf.rules import Violation


def load_device_platform(
    library: ExportingLibrary, *, plugin_name: str, priority: int = PLUGIN_PRIORITY
) -> DevicePlatform:
    """Run a mapped library's SE_InitPlugin and accept what it leaves, or refuse it.

    Args:
        library: The plugin; call this once for each.
        plugin_name: Its name for users.
        priority: Of its factory, where the configuration does not say otherwise.

    Raises:
        PluginError: The plugin broke rules (SE-001 to SE-032), the first of which is `rule`, or
            SE_InitPlugin failed, whose `code` it then has. Its destroy functions have run.
    """
    tables = read_device_tables(library, plugin=plugin_name)
    if isinstance(tables, RefusedDeviceTables):
        raise tables.error()
    return DevicePlatform(tables, priority=priority)


@final
class DevicePlatform:
    """The devices of one C plugin. [any thread].

    Listing asks the plugin for a count only. A device is created when its details are asked for
    the first time, as TensorFlow creates it at first use, and stays until the platform is closed;
    a device that fails is tried again the next time and does not touch the others.

    A platform that is dropped without `close` is closed by the garbage collector; at the end of
    the process nothing is called, as in TensorFlow. A forked child never destroys what its parent
    created.

    Attributes:
        device_type: The type of its devices.
        platform: Its name.
        priority: Where it stands among factories of its type.
        plugin: The plugin's name for users.
        tables: The accepted structs.
    """

    def __init__(self, tables: DeviceTables, *, priority: int = PLUGIN_PRIORITY) -> None:
        self.device_type = tables.device_type
        self.platform = tables.name
        self.priority = priority
        self.plugin = tables.plugin
        self.tables = tables
        self._live = _LivePlatform(tables)
        self._finalizer = weakref.finalize(self, self._live.close)
        self._finalizer.atexit = False

    @property
    def warnings(self) -> tuple[Violation, ...]:
        """Rules that the plugin broke without being refused."""
        return self.tables.warnings

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._live.closed

    def device_count(self) -> int:
        """Ask the plugin for its number of devices.

        Raises:
            ModularTFError: The plugin's own status (rule SE-040), or a number that cannot be
                (SE-041).
            ClosedError: The platform was closed.
        """
        return self._live.device_count()

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Return what the plugin knows about a device, creating it if need be.

        Raises:
            NotFoundError: There is no such ordinal.
            ModularTFError: create_device failed with this code (rule SE-042).
            ClosedError: The platform was closed.
        """
        return self._live.device_details(ordinal)

    def close(self) -> None:
        """Destroy the devices, then the platform, in TensorFlow's order. Safe to call twice.

        Raises:
            InternalError: A destroy function threw (rule SE-032); all of them have been called.
        """
        self._finalizer.detach()
        failures = self._live.close()
        if failures:
            text = "; ".join(failure.message for failure in failures)
            raise InternalError(
                f"closing platform {self.platform}: {text}", plugin=self.plugin, rule="SE-032"
            )

    def __enter__(self) -> DevicePlatform:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<DevicePlatform {self.platform} of {self.device_type} from {self.plugin}{state}>"


class _LivePlatform:
    """What must end with the platform; apart from it, so that a finalizer can hold it."""

    def __init__(self, tables: DeviceTables) -> None:
        self.closed = False
        self._tables = tables
        self._devices: dict[int, PluginDevice] = {}
        self._lock = ForkLock()
        self._process = os.getpid()

    def device_count(self) -> int:
        with self._lock:
            return self._device_count()

    def device_details(self, ordinal: int) -> DeviceDetails:
        with self._lock:
            self._check_open()
            device = self._devices.get(ordinal)
            if device is None:
                self._check_ordinal(ordinal)
                device = self._devices[ordinal] = PluginDevice(self._tables, ordinal)
            return device.details

    def close(self) -> list[Violation]:
        with self._lock:
            if self.closed:
                return []
            self.closed = True
            devices, self._devices = self._devices, {}
            if os.getpid() != self._process:
                return []
            failures = [failure for device in devices.values() for failure in device.destroy()]
            return failures + self._tables.registration.tear_down()

    def _device_count(self) -> int:
        self._check_open()
        tables = self._tables
        try:
            count = device_calls.get_device_count(
                tables.platform_fns.value("get_device_count"),
                tables.platform.address,
                plugin=tables.plugin,
            )
        except ModularTFError as error:
            error.rule = "SE-040"
            raise
        return checked_count(count, plugin=tables.plugin)

    def _check_open(self) -> None:
        if self.closed:
            name = self._tables.name
            raise ClosedError(f"platform {name} was closed", plugin=self._tables.plugin)

    def _check_ordinal(self, ordinal: int) -> None:
        count = self._device_count()
        if not 0 <= ordinal < count:
            raise NotFoundError(
                f"{self._tables.device_type}:{ordinal}: the platform has {count} devices",
                plugin=self._tables.plugin,
            )
