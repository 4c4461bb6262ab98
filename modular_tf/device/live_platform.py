"""A platform that a C plugin has set up in this process, shared by all services that load it.

A library is mapped once and keeps its state in globals, so two services that load one plugin must
not initialise it twice, nor may one of them take down what the other still uses.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.factory import checked_count
from modular_tf.device.plugin_device import PluginDevice
from modular_tf.errors import ClosedError, ModularTFError, NotFoundError
from modular_tf.loading.device_loader import (
    ENTRY_POINT,
    RefusedDeviceTables,
    read_device_tables,
)
from modular_tf.loading.plugin_allocator import create_allocator
from modular_tf.native import device_calls
from modular_tf.rules.device import DEVICE_COUNT_SUCCEEDS

if TYPE_CHECKING:
    from modular_tf.device.details import DeviceDetails
    from modular_tf.loading.device_loader import ExportingLibrary
    from modular_tf.loading.device_tables import DeviceTables
    from modular_tf.loading.plugin_allocator import PluginAllocator
    from modular_tf.rules import Violation

_sharing = ForkLock()
_shared: dict[int, LivePlatform] = {}  # by address of the plugin's SE_InitPlugin


def hold_platform(
    library: ExportingLibrary, *, plugin: str, holder: object, survives_fork: bool = False
) -> LivePlatform | RefusedDeviceTables:
    """Return the plugin's platform, set up now unless another service holds it already.

    `holder` is who is to release it. With `survives_fork` a forked child can go on with the plugin,
    and make devices of its own. Most cannot: their threads and mostly the driver are not copied by
    a fork.
    """
    entry = library.symbol(ENTRY_POINT)
    with _sharing:
        live = _shared.get(entry) if entry is not None else None
        if live is not None and not live.holders:
            _take_down(live)  # which an interrupted call has begun
            live = None
        if live is None:
            tables = read_device_tables(library, plugin=plugin)
            if isinstance(tables, RefusedDeviceTables):
                return tables
            live = LivePlatform(tables, entry or 0, survives_fork=survives_fork)
            _shared[live.entry] = live
        live.holders.add(holder)
        return live


def release_platform(live: LivePlatform, holder: object) -> list[Violation]:
    """Release the platform; the last holder tears it down. A second call does nothing.

    Returns what went wrong in the plugin's destroy functions.
    """
    with _sharing:
        live.holders.discard(holder)
        return [] if live.holders else _take_down(live)


def _take_down(live: LivePlatform) -> list[Violation]:
    failures = live.take_down()
    if _shared.get(live.entry) is live:
        del _shared[live.entry]
    return failures


class LivePlatform:
    """The platform and its devices. [any thread]: calls into the plugin come one at a time."""

    def __init__(self, tables: DeviceTables, entry: int, *, survives_fork: bool = False) -> None:
        self.tables = tables  # the accepted structs
        self.entry = entry  # address of SE_InitPlugin
        self._survives_fork = survives_fork
        self._inherited: list[object] = []  # what the parent made lies there, and is left alone
        # objects that got it and have not released it; guarded by this module
        self.holders: set[object] = set()
        self._devices: dict[int, PluginDevice] = {}
        self._timer_nanoseconds: int | None = None
        self._allocator: PluginAllocator | None = None
        self._is_up = True
        self._lock = ForkLock()
        self._process = os.getpid()

    def device_count(self) -> int:
        """Return the number of devices, from the plugin."""
        with self._lock:
            self._check_up()
            return self._device_count()

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Return what the plugin knows about a device, creating it if need be."""
        with self._lock:
            return self._device(ordinal).details

    def device_address(self, ordinal: int) -> int:
        """Return the SP_Device's address, valid until `take_down`; creates it if needed."""
        with self._lock:
            return self._device(ordinal).address

    def timer_nanoseconds(self) -> int:
        """Return SP_TimerFns.nanoseconds, 0 for none, having the plugin fill it if need be."""
        with self._lock:
            self._check_up()
            if self._timer_nanoseconds is None:
                tables = self.tables
                self._timer_nanoseconds = tables.registration.create_timer_fns(
                    tables.platform, tables.platform_fns
                )
            return self._timer_nanoseconds

    def allocator(self) -> PluginAllocator | None:
        """Return the plugin's own allocator, having it created if need be; None for none.

        Errors as of `modular_tf.loading.plugin_allocator.create_allocator`.
        """
        with self._lock:
            self._check_up()
            if self._allocator is None:
                self._allocator = create_allocator(self.tables)
            return self._allocator

    def _device(self, ordinal: int) -> PluginDevice:
        self._check_up()
        device = self._devices.get(ordinal)
        if device is None:
            self._check_ordinal(ordinal)
            # Filed before the plugin has it, so that an interrupt cannot lose it.
            device = self._devices[ordinal] = PluginDevice(self.tables, ordinal)
        if not device.address:
            try:
                device.create()
            except ModularTFError:
                del self._devices[ordinal]
                raise
        return device

    def take_down(self) -> list[Violation]:
        """Destroy the allocator, which may hold memory of devices, the devices, the platform.

        Each once, whatever interrupts it; a further call does what is left. In a forked child,
        nothing.
        """
        with self._lock:
            self._is_up = False
            if self.is_inherited:
                return []
            failures = [] if self._allocator is None else self._allocator.destroy()
            for device in self._devices.values():
                failures += device.destroy()
            return failures + self.tables.registration.tear_down()

    @property
    def can_make_devices(self) -> bool:
        """Whether this process may make devices: not where a parent has set the plugin up."""
        return self._survives_fork or not self.is_inherited

    @property
    def is_inherited(self) -> bool:
        """Whether a parent process set it up, whose devices no child may use."""
        return os.getpid() != self._process

    def _check_up(self) -> None:
        """Raise if another thread has closed the platform while this one waited.

        A forked child begins without devices of its own, where the plugin survives that.
        """
        if self.is_inherited and self._survives_fork:
            self._inherited += [self._devices, self._allocator]
            self._devices, self._allocator, self._timer_nanoseconds = {}, None, None
            self._process = os.getpid()
        if not self._is_up:
            raise ClosedError(f"platform {self.tables.name} was closed", plugin=self.tables.plugin)

    def _device_count(self) -> int:
        """Return the announced count; layouts older than TF 2.5 have a field for it."""
        tables = self.tables
        announced = tables.visible_device_count
        if announced is not None:
            field = "SP_Platform.visible_device_count"
            return checked_count(announced, plugin=tables.plugin, told_by=field)
        try:
            count = device_calls.get_device_count(
                tables.platform_fns.value("get_device_count"),
                tables.platform.address,
                plugin=tables.plugin,
            )
        except ModularTFError as error:
            error.rule = DEVICE_COUNT_SUCCEEDS
            raise
        return checked_count(count, plugin=tables.plugin)

    def _check_ordinal(self, ordinal: int) -> None:
        count = self._device_count()
        if not 0 <= ordinal < count:
            raise NotFoundError(
                f"{self.tables.device_type}:{ordinal}: the platform has {count} devices",
                plugin=self.tables.plugin,
            )
