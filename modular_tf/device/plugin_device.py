"""One device of a C plugin: its SP_Device, and what the plugin knows about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from modular_tf.abi.layouts import layout
from modular_tf.concurrency.computed_once import computed_once
from modular_tf.device.details import DeviceDetails, known_or_none
from modular_tf.errors import FailedPreconditionError, ModularTFError, error_from_code
from modular_tf.loading.device_dialect import HOSTED
from modular_tf.loading.device_tables import LentStruct, check_device, read_name
from modular_tf.native import device_calls
from modular_tf.native.ffi import ffi
from modular_tf.native.host_struct import HostStruct
from modular_tf.rules import Violation
from modular_tf.rules import device as rules
from modular_tf.rules.device import DESTROY_RETURNS

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.loading.device_tables import DeviceTable, DeviceTables

_PARAMS = layout("SE_CreateDeviceParams")
_ROOM = 128
_Number = TypeVar("_Number", int, float)


class PluginDevice:
    """A device of a C plugin, created by `create`. One thread at a time."""

    table: DeviceTable  # what create_device left there, in the newest layout

    def __init__(self, tables: DeviceTables, ordinal: int) -> None:
        """Prepare the structs for `create`; the plugin is not called."""
        self.ordinal = ordinal
        self.tables = tables
        self.address = 0  # of its SP_Device, valid until `destroy`; 0 before `create` has returned
        self._struct = LentStruct(layout("SP_Device", tables.dialect))
        self._params = HostStruct(_PARAMS, _ROOM, struct_size=_PARAMS.size, ordinal=ordinal)
        self._params.set("device", self._struct.address)
        self._exists = ffi.new("int32_t *")
        self._warnings: list[Violation] = []

    def create(self) -> None:
        """Create the device; after an interrupt the next call does what is left.

        An error is the plugin's own status (rule SE-042), or of a broken SP_Device.
        """
        tables = self.tables
        if not self._exists[0]:
            try:
                device_calls.create(
                    tables.platform_fns.value("create_device"),
                    tables.platform.address,
                    self._params.address,
                    plugin=tables.plugin,
                    operation="create_device",
                    exists=self._exists,
                )
            except ModularTFError as error:
                raise error_from_code(
                    error.code,
                    f"{tables.device_type}:{self.ordinal}: {error.message}",
                    plugin=tables.plugin,
                    operation="create_device",
                    rule=rules.CREATE_DEVICE_SUCCEEDS,
                ) from None
        struct = self._struct
        self._warnings = [*struct.collect(self._params.get("device"), "params.device")]
        for violation in self._warnings:
            if violation.is_error:
                raise FailedPreconditionError(
                    f"{tables.device_type}:{self.ordinal}: {violation.in_full}"
                    f" (plugin {tables.plugin})",
                    plugin=tables.plugin,
                    operation="create_device",
                    rule=violation.rule,
                )
        given = struct.table()
        self._warnings.extend(check_device(given))
        self.table = given.in_layout(layout("SP_Device", HOSTED))
        self.address = struct.filled_at

    @computed_once
    def details(self) -> DeviceDetails:
        """The details that the plugin knows, requested once."""
        texts = {
            name: self._text(field)
            for name, field in (
                ("hardware_name", "hardware_name"),
                ("vendor", "device_vendor"),
                ("pci_bus_id", "pci_bus_id"),
            )
        }
        node = self._number("get_numa_node", device_calls.get_numa_node)
        bandwidth = self._number("get_memory_bandwidth", device_calls.get_memory_bandwidth)
        gflops = self._number("get_gflops", device_calls.get_gflops)
        return DeviceDetails(
            **texts,
            numa_node=None if node is None else int(node),
            memory_bandwidth=None if bandwidth is None else int(bandwidth),
            gflops=gflops,
            warnings=tuple(self._warnings),
        )

    def _text(self, field: str) -> str | None:
        text = read_name(self.table, field)
        if text is None and self.table.has(field):
            self._warnings.append(
                Violation(rules.DEVICE_STRINGS_READABLE, f"SP_Device.{field} is no readable string")
            )
        return text or None

    def _number(self, slot: str, call: Callable[..., _Number]) -> float | None:
        fns = self.tables.device_fns
        if not fns.has(slot):
            return None
        try:
            return known_or_none(call(fns.value(slot), self.address, plugin=self.tables.plugin))
        except ModularTFError as error:
            self._warnings.append(Violation(rules.DEVICE_FNS_RETURN, error.message))
            return None

    def destroy(self) -> list[Violation]:
        """Call destroy_device once and return what went wrong.

        Nothing may use the device afterwards.
        """
        tables = self.tables
        if not self._exists[0]:
            return []
        try:
            device_calls.destroy(
                tables.platform_fns.value("destroy_device"),
                tables.platform.address,
                self._struct.filled_at,
                plugin=tables.plugin,
                operation="destroy_device",
                exists=self._exists,
            )
        except ModularTFError as error:
            return [Violation(DESTROY_RETURNS, error.message)]
        return []
