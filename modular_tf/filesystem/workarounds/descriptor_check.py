"""A check that enough file descriptors are free before a plugin is called that leaks them.

It stops the plugin while the rest of the process can still open files.
"""

from __future__ import annotations

import resource
from pathlib import Path

from modular_tf.errors import ResourceExhaustedError


class DescriptorCheck:
    """Counts the process's file descriptors before each call [any thread]

    Args:
        min_free: How many must be free.
        plugin: The plugin's name for messages.
    """

    def __init__(self, min_free: int, plugin: str) -> None:
        self._min_free = min_free
        self._plugin = plugin

    def require(self, operation: str, path: str) -> None:
        """Return if enough descriptors are free.

        Raises:
            ResourceExhaustedError: The plugin has leaked too many.
        """
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        used = sum(1 for _ in Path("/proc/self/fd").iterdir())
        if limit in {-1, resource.RLIM_INFINITY} or used + self._min_free <= limit:
            return
        raise ResourceExhaustedError(
            f"{operation} {path!r}: {used} of {limit} file descriptors are open, and"
            f" {self._plugin} loses some at every call; raise the limit (ulimit -n) or do this in"
            " another process",
            plugin=self._plugin,
            path=path,
            operation=operation,
        )
