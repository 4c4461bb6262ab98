"""`PluginService`, and the one behind the functions that have TensorFlow's names."""

from __future__ import annotations

from modular_tf.fork_lock import ForkLock
from modular_tf.plugin_service import PluginService

__all__ = ["PluginService", "default_service"]

_default: PluginService | None = None
_default_lock = ForkLock()


def default_service() -> PluginService:
    """Return the service behind `mtf.gfile` and the like, made and loaded at its first use."""
    global _default  # noqa: PLW0603  (the one service of TensorFlow's habits)
    service = _default
    if service is not None and not service.closed:
        return service
    with _default_lock:
        if _default is None or _default.closed:
            service = PluginService()
            service.load()
            _default = service
        return _default
