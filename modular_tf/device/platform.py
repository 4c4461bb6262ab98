"""The platform of a loaded C plugin: a device factory that can be closed."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, final

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.device.executor import Executor
from modular_tf.device.executor_close import close_executors
from modular_tf.device.factory import PLUGIN_PRIORITY
from modular_tf.device.live_platform import hold_platform, release_platform
from modular_tf.device.memory.executor_arenas import ExecutorArenas
from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.errors import ClosedError, InternalError
from modular_tf.loading.device_loader import RefusedDeviceTables
from modular_tf.rules.device import DESTROY_RETURNS

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from modular_tf.device.details import DeviceDetails
    from modular_tf.device.live_platform import LivePlatform
    from modular_tf.errors import ModularTFError
    from modular_tf.loading.device_loader import ExportingLibrary
    from modular_tf.loading.device_tables import DeviceTables
    from modular_tf.loading.plugin_allocator import PluginAllocator
    from modular_tf.rules import Violation


_still_viewed: set[DevicePlatform] = set()
"""Closed platforms of host devices whose memory was in use then.

Memory that native code frees, as that of a kernel's output, tells nobody: the next platform that is
loaded or closed looks."""


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

    Args:
        library: The plugin.
        plugin_name: Its name for users.
        priority: Of its factory, where the configuration does not say otherwise.
        memory: Returns what the user decided about the memory of a device type.
        copy_streams: How many streams of a device share its copies to other devices, 1 to 4.
        survives_fork: Whether a forked child can make devices of its own with the plugin.
        is_host_memory: Whether its memory is the host's, used by address.

    Raises:
        RefusedDevicePluginError: The plugin broke rules (SE-001 to SE-032), or
            one of its functions failed, whose `code` it then has. What it had set up is torn down.
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
    device that fails is tried again the next time and does not touch the others.

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

        Raises:
            ModularTFError: The plugin's own status (rule SE-040), or an impossible number (SE-041).
            ClosedError: The platform was closed.
        """
        return self._open().device_count()

    def device_details(self, ordinal: int) -> DeviceDetails:
        """Return what the plugin knows about a device, creating it if need be.

        Raises:
            NotFoundError: There is no such ordinal.
            ModularTFError: create_device failed with this code (rule SE-042).
            ClosedError: The platform was closed.
        """
        return self._open().device_details(ordinal)

    def executor(self, ordinal: int) -> Executor:
        """Return the stream executor of a device; creates the device if needed.

        Raises:
            NotFoundError: There is no such ordinal.
            ModularTFError: create_device failed with this code (rule SE-042), or create_allocator
                (SE-046).
            ClosedError: The platform was closed before the first call for this device, or set up
                by a parent process.
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
        return Executor(
            self.tables.executor.address,
            device,
            name=f"{self.device_type}:{ordinal}",
            plugin=self.plugin,
            timer=live.timer_nanoseconds,
            allocator=allocator,
            arenas=self._arenas() if self._wants_arenas(allocator) else None,
            copy_streams=self.copy_streams,
            is_host=self.is_host_memory,
        )

    def _wants_arenas(self, allocator: PluginAllocator | None) -> bool:
        """Return whether the host manages memory: by the plugin's flag or the RFC's allocator."""
        if allocator is not None:
            return not allocator.is_custom
        return self.tables.use_bfc_allocator

    def _arenas(self) -> Callable[[Executor], ExecutorArenas]:
        return partial(
            ExecutorArenas, settings=self.memory, force_growth=self.tables.force_memory_growth
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
