"""The service behind the functions that have TensorFlow's names."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LoadedOnce", "default_service"]


class LoadedOnce:
    """A service that whoever asks first makes and loads, and that all others get. [any thread]

    It is loaded without a lock, since that calls users' code: hooks and log handlers. Who asks
    meanwhile loads it as well, which does what is left to do. So a hook, log handler or signal
    handler that asks while the same thread loads the service gets that service, loaded as far as
    that is possible without the answer that the hook is about to give.

    Args:
        make: Makes the service.
        load: Loads it; does nothing where that is done.

    Attributes:
        loaded: The service, once it is loaded.
    """

    def __init__(
        self, make: Callable[[], PluginService], load: Callable[[PluginService], object]
    ) -> None:
        self.loaded: PluginService | None = None
        self._make = make
        self._load = load
        self._made: PluginService | None = None
        self._lock = ForkLock()
        self._thread = threading.local()  # whether the current one is loading

    def get(self) -> PluginService:
        """Return the service; another one where that is closed."""
        service = self.loaded
        if service is None or service.closed:
            service = self._making()
            # Who asks in the middle of loading returns from that with plugins still missing, and
            # an interrupt may keep them missing: only the outermost call has loaded all.
            is_inner = getattr(self._thread, "is_loading", False)
            try:
                self._thread.is_loading = True
                self._load(service)
            finally:
                self._thread.is_loading = is_inner
            if not is_inner:
                self.loaded = service
        return service

    def _making(self) -> PluginService:
        before = self._made
        if before is not None and not before.closed:
            return before
        made = self._make()
        with self._lock:
            if self._made is before:  # else somebody was faster
                self._made = made
        return self._making()


_default = LoadedOnce(PluginService, PluginService.load)


def default_service() -> PluginService:
    """Return the service behind `mtf.gfile` and the like, made and loaded at its first use."""
    service = _default.loaded
    return _default.get() if service is None or service.closed else service
