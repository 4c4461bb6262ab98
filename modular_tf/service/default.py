"""The default service, and functions on it under the names that TensorFlow's users know."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.discovery.file_identity import real_path
from modular_tf.errors import NotFoundError, PluginError
from modular_tf.service.service import PluginService

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "LoadedOnce",
    "default_service",
    "load_pluggable_device_library",
    "register_filesystem_plugin",
]


class LoadedOnce:
    """A service that is made and loaded at the first call, and shared by all. [any thread]

    It is made and loaded without a lock, since that calls users' code: hooks and log handlers. A
    second caller meanwhile loads it as well, which does what is left to do; for a hook it is loaded
    as far as that is possible without the answer that the hook is about to give.
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
            # Loading from within a hook returns with plugins still missing, and an interrupt may
            # leave them missing: only the outermost call has loaded all.
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
            if self._made is before:  # else another thread was faster
                self._made = made
        return self._making()


_default = LoadedOnce(PluginService, PluginService.load)


def default_service() -> PluginService:
    """Return the service behind `mtf.gfile` and the like, made and loaded at its first use."""
    service = _default.loaded
    return _default.get() if service is None or service.closed else service


def register_filesystem_plugin(plugin_location: str | os.PathLike[str]) -> None:
    """Load a filesystem plugin (`tf.experimental.register_filesystem_plugin`).

    Args:
        plugin_location: The library's file.

    Raises:
        NotFoundError: There is no such file.
        PluginError: It was refused, or one of its schemes was; the others are registered.
    """
    _load(os.fspath(plugin_location))


def load_pluggable_device_library(library_location: str | os.PathLike[str]) -> None:
    """Load one device plugin, or all libraries of a directory.

    Args:
        library_location: A library's file, or a directory with some.

    Raises:
        NotFoundError: There is nothing at that place, or no library in the directory.
        PluginError: A library was refused; the others are loaded.
    """
    _load(os.fspath(library_location))


def _load(path: str) -> None:
    """Load a library, or those of a directory; raise PluginError for the first that was refused.

    NotFoundError: there is nothing at the path, or no library in the directory.
    """
    if not os.path.exists(path):
        raise NotFoundError(f"the file {path!r} does not exist", path=path, operation="load")
    real = real_path(path)
    for record in default_service().load(path).plugins:
        if record.path is None or record.reason is None:
            continue
        if real in (real_path(record.path), real_path(os.path.dirname(record.path))):
            reason = record.reason
            remedy = f". {reason.remedy}" if reason.remedy else ""
            raise PluginError(
                f"{record.path}: {reason.message}{remedy}", plugin=record.name, rule=reason.rule
            )
