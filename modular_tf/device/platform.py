"""The platform of a loaded C plugin: a device factory that can be closed.

A library is mapped once and keeps its state in globals, so two services that load one plugin must
not initialise it twice, nor may one of them take down what the other still uses: they share a
`LivePlatform`, and each has a `DevicePlatform` of its own.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, final

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.executor import Executor, close_executors
from modular_tf.device.factory import PLUGIN_PRIORITY, checked_count
from modular_tf.device.memory.arenas import Arenas
from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.device.plugin_device import PluginDevice
from modular_tf.errors import ClosedError, InternalError, ModularTFError, NotFoundError
from modular_tf.loading.device_loader import (
    ENTRY_POINT,
    RefusedDeviceTables,
    read_device_tables,
)
from modular_tf.loading.plugin_allocator import create_allocator
from modular_tf.native import device_calls
from modular_tf.rules.device import DESTROY_RETURNS, DEVICE_COUNT_SUCCEEDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.device.details import DeviceDetails
    from modular_tf.loading.device_loader import ExportingLibrary
    from modular_tf.loading.device_tables import DeviceTables
    from modular_tf.loading.plugin_allocator import PluginAllocator
    from modular_tf.rules import Violation

_sharing = ForkLock()
_shared: dict[int, LivePlatform] = {}  # by address of the plugin's SE_InitPlugin

_still_viewed: set[DevicePlatform] = set()
"""Closed platforms of host devices whose memory was in use then.

Memory that native code frees, as that of a kernel's output, is not reported: the next platform that
is loaded or closed checks."""


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
    """A platform that a plugin has set up in this process, and its devices. [any thread]

    All services that load the plugin share it. Calls into the plugin come one at a time.
    """

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
            count = self._device_count()
            if not 0 <= ordinal < count:
                raise NotFoundError(
                    f"{self.tables.device_type}:{ordinal}: the platform has {count} devices",
                    plugin=self.tables.plugin,
                )
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
            return checked_count(announced, plugin=tables.plugin, reported_by=field)
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


def _close_unviewed() -> None:
    for platform in list(_still_viewed):
        platform.release_if_unviewed()


def load_device_platform(
    library: ExportingLibrary,
    *,
    plugin_name: str,
    priority: int = PLUGIN_PRIORITY,
    memory: Callable[[str], MemorySettings] | None = None,
    copy_streams: int = 1,
    survives_fork: bool = False,
    is_host_memory: bool = False,
) -> DevicePlatform:
    """Return the platform of a mapped library; runs SE_InitPlugin and checks its tables.

    While a platform of the same library is open in this process, that one is shared: the plugin is
    not initialised again, and taken down when the last of them is closed.

    `memory` returns the user's settings of a device type; one to four `copy_streams` of a device
    share its copies to other devices. Raises RefusedDevicePluginError if the plugin broke rules
    (SE-001 to SE-032), or one of its functions failed, whose `code` it then has; what it had set up
    is torn down.
    """
    _close_unviewed()
    holder = object()
    live = hold_platform(library, plugin=plugin_name, holder=holder, survives_fork=survives_fork)
    if isinstance(live, RefusedDeviceTables):
        raise live.error()
    settings = MemorySettings() if memory is None else memory(live.tables.device_type)
    return DevicePlatform(
        live,
        holder,
        plugin=plugin_name,
        priority=priority,
        memory=settings,
        copy_streams=copy_streams,
        is_host_memory=is_host_memory,
    )


@final
class DevicePlatform:
    """The devices of one C plugin. [any thread]

    Listing asks the plugin for a count only. A device is created when its details are asked for the
    first time, as TensorFlow creates it at first use, and stays until the platform is closed; a
    device that fails is tried again the next time and does not touch the others. Once it is closed,
    all methods raise ClosedError.

    A platform that is dropped without `close`, or open at the end of the process, is not taken
    down, as in TensorFlow: the garbage collector must not choose the moment of a plugin's destroy
    functions. A forked child neither uses nor destroys what its parent created; where the plugin
    survives a fork, the child makes devices of its own.
    """

    def __init__(
        self,
        live: LivePlatform,
        holder: object,
        *,
        plugin: str,
        priority: int,
        memory: MemorySettings,
        copy_streams: int,
        is_host_memory: bool = False,
    ) -> None:
        self.device_type = live.tables.device_type
        self.platform = live.tables.name
        self.priority = priority
        self.plugin = plugin
        self.memory = memory
        self.is_host_memory = is_host_memory
        self.copy_streams = copy_streams
        self.tables: DeviceTables = live.tables
        self._live = live
        self._holder = holder
        self._closed = False
        self._released = False
        self._executors: dict[int, Executor] = {}
        self._inherited: list[object] = []
        self._viewed: set[int] = set()  # by ordinal, whose host memory keeps a closed platform
        self._lock = ForkLock()

    @property
    def warnings(self) -> tuple[Violation, ...]:
        """Rules that the plugin broke without being refused."""
        return self.tables.warnings

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def is_idle(self) -> bool:
        """Whether no streams, events, timers or memory of its devices are in use."""
        executors = list(self._executors.values())
        return all(executor.closed or executor.is_idle for executor in executors)

    def device_count(self) -> int:
        """Return the number of devices, from the plugin.

        Raises its own status (rule SE-040), InternalError for an impossible number (SE-041).
        """
        return self._open().device_count()

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Return what the plugin knows about a device, creating it if need be.

        Raises NotFoundError if there is no such ordinal, the plugin's own status (rule SE-042).
        """
        return self._open().device_details(ordinal)

    def executor(self, ordinal: int) -> Executor:
        """Return the stream executor of a device; creates the device if needed.

        Raises as `device_details`, the status of create_allocator (SE-046), and ClosedError where a
        parent process has set the platform up.
        """
        executor = self._executors.get(ordinal)
        if executor is not None and not executor.closed:
            return executor
        with self._lock:  # closing takes it too: what is made here is closed then, or refused now
            executor = self._executors.get(ordinal)
            if executor is None:
                executor = self._executors[ordinal] = self._new_executor(ordinal)
            return executor

    def _new_executor(self, ordinal: int) -> Executor:
        live = self._open()
        if not live.can_make_devices:
            raise ClosedError(
                f"platform {self.platform} was set up by the parent process, and its plugin cannot"
                " be used on both sides of a fork: start the process anew (multiprocessing's"
                " 'spawn' or 'forkserver'), or fork before the first service lists devices",
                plugin=self.plugin,
            )
        device = live.device_address(ordinal)
        allocator = live.allocator()
        # The host manages memory by the plugin's flag, or for the RFC's plain allocator.
        in_arenas = self.tables.use_bfc_allocator if allocator is None else not allocator.is_custom
        force_growth = self.tables.force_memory_growth
        arenas = partial(Arenas, settings=self.memory, force_growth=force_growth)
        return Executor(
            self.tables.executor.address,
            device,
            name=f"{self.device_type}:{ordinal}",
            plugin=self.plugin,
            timer=live.timer_nanoseconds,
            allocator=allocator,
            arenas=arenas if in_arenas else None,
            copy_streams=self.copy_streams,
            is_host=self.is_host_memory,
        )

    def close(self) -> None:
        """Wait for work in flight, destroy all objects of the devices, then the platform.

        All devices are done with their work before anything of one of them ends. Then devices and
        the platform's tables go in TensorFlow's order. Safe to call twice; a close that was
        interrupted is finished by the next. Host memory that is still viewed keeps the platform
        until its last view is gone; where that end was interrupted, the next close finishes it.

        Raises:
            InternalError: A destroy function threw (rule SE-032); all of them have been called.
            ModularTFError: Work in flight failed.
            FailedPreconditionError: Called by a host callback that this would wait for; nothing
                was closed.
        """
        for executor in list(self._executors.values()):
            executor.refuse_in_dependent_callback("close")
        _close_unviewed()
        with self._lock:
            self._closed = True
            executors = dict(self._executors)
        if self._released and not self._viewed:
            return
        failures = close_executors(list(executors.values())) + self._release(executors)
        self._released = True
        if failures:
            raise failures[0]

    def _release(self, executors: dict[int, Executor]) -> list[ModularTFError]:
        """Release the platform now, or when none of the executors has host memory left."""
        viewed = {n: executor for n, executor in executors.items() if executor.host_memories}
        if not viewed:
            return self._release_now()
        self._viewed = set(viewed)  # each is asked for below, also beside another close
        if self.is_host_memory:
            _still_viewed.add(self)
        # All at once: later the collector may have freed the native part of one.
        for ordinal, executor in viewed.items():
            executor.call_when_unused(partial(self._host_memory_ended, ordinal))
        return []

    def release_if_unviewed(self) -> None:
        """Release the closed platform if no memory of the host is in use any more."""
        if not any(executor.host_memories for executor in self._executors.values()):
            self._viewed.clear()
            self._release_now()

    def _host_memory_ended(self, ordinal: int) -> None:
        self._viewed.discard(ordinal)
        if not self._viewed:
            self._release_now()

    def _release_now(self) -> list[ModularTFError]:
        _still_viewed.discard(self)
        failures = release_platform(self._live, self._holder)
        if not failures:
            return []
        text = "; ".join(failure.message for failure in failures)
        return [
            InternalError(
                f"closing platform {self.platform}: {text}",
                plugin=self.plugin,
                rule=DESTROY_RETURNS,
            )
        ]

    def after_fork_in_child(self) -> None:
        """Drop the parent's objects without destroying them."""
        self._inherited.append(self._executors)  # nothing of it is freed here
        self._executors, self._viewed = {}, set()
        _still_viewed.discard(self)

    def _open(self) -> LivePlatform:
        if self._closed:
            raise ClosedError(f"platform {self.platform} was closed", plugin=self.plugin)
        return self._live

    def __enter__(self) -> DevicePlatform:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<DevicePlatform {self.platform} of {self.device_type} from {self.plugin}{state}>"
