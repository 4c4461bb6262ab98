"""The arenas of one executor, for a plugin whose memory the host manages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.device.memory.executor_arena import ExecutorArena
from modular_tf.device.memory.memory_limit import (
    device_bytes_limit,
    garbage_collection,
    host_bytes_limit,
    memory_growth,
)
from modular_tf.errors import UnavailableError
from modular_tf.events import EventLog
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from modular_tf.device.executor import Executor
    from modular_tf.device.memory.memory_settings import MemorySettings

_log = EventLog("device")


class ExecutorArenas:
    """One arena for device memory, one for pinned memory of the host. [any thread]

    Each is made when memory of its kind is first needed: only then does the plugin's
    `device_memory_usage` tell how much there is. Unified memory has none, as in TensorFlow.
    """

    __slots__ = ("_executor", "_force_growth", "_made", "_settings")

    def __init__(
        self, executor: Executor, settings: MemorySettings, *, force_growth: bool = False
    ) -> None:
        """Create it without arenas; `force_growth` is the plugin's `force_memory_growth`."""
        self._executor = executor
        self._settings = settings
        self._force_growth = force_growth
        self._made: dict[int, ExecutorArena] = {}

    def of(self, kind: int) -> ExecutorArena | None:
        """Return the arena of one of the `MTF_*_MEMORY`, None for unified memory.

        Raises InternalError if the plugin reports an impossible usage, the plugin's error if it
        threw when asked for it, and ClosedError if the device was closed.
        """
        arena = self._made.get(kind)
        if arena is not None or kind == lib.MTF_UNIFIED_MEMORY:
            return arena
        # Without a lock, since the plugin is asked: it may wait for a thread that needs memory too.
        made = self._of_device() if kind == lib.MTF_DEVICE_MEMORY else self._of_host()
        return self._made.setdefault(kind, made)

    def _of_device(self) -> ExecutorArena:
        limit = self._device_limit()
        growth = memory_growth(self._settings, forced_by_plugin=self._force_growth)
        return ExecutorArena(
            self._executor,
            lib.MTF_DEVICE_MEMORY,
            limit,
            growth=growth or limit is None,  # without a known size not all can be taken at once
            garbage_collection=garbage_collection(self._settings),
        )

    def _of_host(self) -> ExecutorArena:
        return ExecutorArena(
            self._executor,
            lib.MTF_HOST_MEMORY,
            host_bytes_limit(self._settings),
            garbage_collection=garbage_collection(self._settings),
        )

    def _device_limit(self) -> int | None:
        """Return the limit in bytes; None if none is set and the plugin does not know its memory.

        TensorFlow has no such device; here it works until the plugin gives no more.
        """
        settings = self._settings
        if settings.limit_bytes is not None:
            return settings.limit_bytes
        try:
            free, total = self._executor.memory_usage()
        except UnavailableError:
            _log.warning("memory_limit.unknown", device=self._executor.name)
            return None
        return device_bytes_limit(free, total, fraction=settings.fraction or 0.0)

    def close(self) -> None:
        """Free the unused regions; the others are freed after their last use."""
        for arena in list(self._made.values()):
            arena.close()
