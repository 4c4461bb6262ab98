"""A platform of a device plugin, as the loader accepted it, for its own slots to be called."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.check.device.raw_call import RawDeviceCaller
from modular_tf.check.device.subject import Answer
from modular_tf.check.native.raw_device import PLATFORM, RawDeviceSlots, as_pointer, int_out
from modular_tf.device.plugin_device import PluginDevice
from modular_tf.errors import ModularTFError
from modular_tf.loading.device_loader import RefusedDeviceTables, read_device_tables
from modular_tf.loading.plugin_allocator import create_allocator
from modular_tf.native.device_calls import announce_calls

if TYPE_CHECKING:
    from modular_tf.check.calls import CallJournal
    from modular_tf.loading.device_loader import ExportingLibrary
    from modular_tf.loading.device_tables import DeviceTable, DeviceTables

_NAME = "plugin"


class RawPlatform:
    """One call of SE_InitPlugin and what may be called since.

    Attributes:
        tables: The accepted tables, all in the newest layout.
        caller: Calls the slots.
        allocator: The RFC's allocator, None for other plugins.
        devices_created: How many times create_device has succeeded here.
    """

    def __init__(self, tables: DeviceTables, journal: CallJournal) -> None:
        """Create the RFC's allocator, if there is one; no device yet.

        Raises:
            ModularTFError: The allocator cannot be created, or not be used.
        """
        self.tables = tables
        self.devices_created = 0
        functions = tables.platform_fns, tables.device_fns, tables.executor
        slots = RawDeviceSlots({table.layout.name: addresses_of(table) for table in functions})
        self.caller = RawDeviceCaller(slots, journal)
        self.allocator = create_allocator(tables)
        if self.allocator is not None:
            slots.add(self.allocator.fns.layout.name, addresses_of(self.allocator.fns))
        self._has_timer_fns = False

    @property
    def counts_by_function(self) -> bool:
        """Whether the layout has get_device_count; the oldest announce a number."""
        return self.tables.visible_device_count is None

    def device_count(self, preset: int = 0) -> Answer:
        """Ask for the number of devices; the value is what was left there.

        Args:
            preset: What is there before; 0, as hosts have it.
        """
        announced = self.tables.visible_device_count
        if announced is not None:
            return Answer(0, value=announced)
        count = int_out(preset)
        platform = as_pointer(self.tables.platform.address)
        answer = self.caller.ask("get_device_count", "platform", platform, count, table=PLATFORM)
        return replace(answer, value=int(count[0]))

    def create_device(self, ordinal: int) -> Answer:
        """Create a device; the value is a `PluginDevice`, which the caller destroys."""
        call = f"create_device(platform, {{ordinal={ordinal}}})"
        try:
            device = PluginDevice(self.tables, ordinal)
            device.create()
        except ModularTFError as error:
            self.caller.journal.leave(call, error.code.name)
            return Answer(int(error.code), error.message, call=call)
        self.caller.journal.leave(call, "OK")
        self.devices_created += 1
        return Answer(0, value=device)

    def fill_timer_fns(self) -> None:
        """Have the plugin fill SP_TimerFns, once, if it has the functions for that.

        Raises:
            ModularTFError: The plugin's own status.
        """
        if not self._has_timer_fns:
            self._has_timer_fns = True
            tables = self.tables
            address = tables.registration.create_timer_fns(tables.platform, tables.platform_fns)
            self.caller.slots.add("SP_TimerFns", {"nanoseconds": address})

    def take_down(self) -> list[str]:
        """Destroy what was made here, in TensorFlow's order; the devices must be gone.

        Returns:
            What went wrong.
        """
        failures = [] if self.allocator is None else self.allocator.destroy()
        failures += self.tables.registration.tear_down()
        return [failure.message for failure in failures]


def read_tables(
    library: ExportingLibrary, journal: CallJournal
) -> DeviceTables | RefusedDeviceTables:
    """Initialise a plugin that is mapped, and judge what it leaves, as a service does."""
    announce_calls(journal.enter)
    return read_device_tables(library, plugin=_NAME)


def accepted_tables(library: ExportingLibrary, journal: CallJournal) -> DeviceTables:
    """Initialise a plugin that is mapped and was not initialised yet.

    Raises:
        RefusedDevicePluginError: It breaks rules.
    """
    tables = read_tables(library, journal)
    if isinstance(tables, RefusedDeviceTables):
        raise tables.error()
    return tables


def addresses_of(table: DeviceTable) -> dict[str, int]:
    """Return the address of each slot of a table."""
    return {field.name: table.value(field.name) for field in table.layout.slots}
