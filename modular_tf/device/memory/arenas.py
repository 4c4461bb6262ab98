"""The arenas of one device, for a plugin whose memory the host manages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.device.device_core import owned
from modular_tf.device.memory.allocator_stats import memory_usage
from modular_tf.device.memory.memory_settings import (
    device_bytes_limit,
    host_bytes_limit,
    memory_growth,
)
from modular_tf.errors import UnavailableError
from modular_tf.events import EventLog
from modular_tf.native.ffi import lib

if TYPE_CHECKING:
    from modular_tf.device.device_core import DeviceCore
    from modular_tf.device.memory.memory_settings import MemorySettings

_NO_LIMIT = (1 << 64) - 1

_log = EventLog("device")


class Arenas:
    """One arena for device memory, one for pinned memory of the host. [any thread]

    Each is made when memory of its kind is first needed: only then does the plugin's
    `device_memory_usage` tell how much there is. Unified memory has none, as in TensorFlow. The
    plugin is asked for regions only. Memory returns to the arena when nothing, a copy in flight
    included, uses it any more, and at the latest when the device is closed; the plugin gets its
    regions back when the arena is closed and nothing of it is in use.
    """

    __slots__ = ("_core", "_force_growth", "_made", "_settings")

    def __init__(
        self, core: DeviceCore, settings: MemorySettings, *, force_growth: bool = False
    ) -> None:
        """Create it without arenas; `force_growth` is the plugin's `force_memory_growth`."""
        self._core = core
        self._settings = settings
        self._force_growth = force_growth
        self._made: dict[int, Any] = {}

    def of(self, kind: int) -> Any:
        """Return the native arena of one of the `MTF_*_MEMORY`, None for unified memory.

        Raises InternalError if the plugin reports an impossible usage, the plugin's error if it
        threw when asked for it, and ClosedError if the device was closed.
        """
        arena = self._made.get(kind)
        if arena is not None or kind == lib.MTF_UNIFIED_MEMORY:
            return arena
        # Without a lock, since the plugin is asked: it may wait for a thread that needs memory too.
        limit: int | None
        if kind == lib.MTF_DEVICE_MEMORY:
            limit = self._device_limit()
            growth = memory_growth(self._settings, forced_by_plugin=self._force_growth)
            growth = growth or limit is None  # without a known size not all can be taken at once
        else:
            limit, growth = host_bytes_limit(self._settings), True
        arguments = (
            self._core.native,
            kind,
            _NO_LIMIT if limit is None else limit,
            growth,
            self._settings.garbage_collection is not False,
        )
        new, free = lib.mtf_executor_arena_new, lib.mtf_arena_release
        made = owned(new, free, arguments, self._core, "make an arena")
        return self._made.setdefault(kind, made)

    def _device_limit(self) -> int | None:
        """Return the limit in bytes; None if none is set and the plugin does not know its memory.

        TensorFlow has no such device; here it works until the plugin gives no more.
        """
        settings = self._settings
        if settings.limit_bytes is not None:
            return settings.limit_bytes
        try:
            free, total = memory_usage(self._core)
        except UnavailableError:
            _log.warning("memory_limit.unknown", device=self._core.name)
            return None
        return device_bytes_limit(free, total, settings.fraction)

    def close(self) -> None:
        """Free the unused regions; the others are freed after their last use."""
        for arena in list(self._made.values()):
            self._core.check(lib.mtf_arena_close(arena), "close")
