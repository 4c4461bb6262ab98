"""Whether enough file descriptors are left for a plugin that leaks them.

It stops such a plugin while the rest of the process still can open files.
"""

from __future__ import annotations

import resource
from pathlib import Path

from modular_tf.errors import ResourceExhaustedError


class DescriptorCheck:
    """Counts the process's file descriptors [any thread].

    Args:
        spare: How many must be left.
        plugin: For messages.
    """

    def __init__(self, spare: int, plugin: str) -> None:
        self._spare = spare
        self._plugin = plugin

    def require(self, operation: str, path: str) -> None:
        """Return if enough are left.

        Raises:
            ResourceExhaustedError: The plugin has leaked too many.
        """
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        used = sum(1 for _ in Path("/proc/self/fd").iterdir())
        if limit in {-1, resource.RLIM_INFINITY} or used + self._spare <= limit:
            return
        raise ResourceExhaustedError(
            f"{operation} {path!r}: {used} of {limit} file descriptors are open, and"
            f" {self._plugin} loses some at every call; raise the limit (ulimit -n) or do this in"
            " another process",
            plugin=self._plugin,
            path=path,
            operation=operation,
        )
