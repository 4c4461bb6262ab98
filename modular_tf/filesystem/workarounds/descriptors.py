"""Workarounds for plugins that leak file descriptors: a check before calls, and closing them."""

from __future__ import annotations

import errno
import os
import re
import resource
from contextlib import suppress
from fcntl import F_GETFL, fcntl
from pathlib import Path
from typing import TYPE_CHECKING

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Iterable

_OPEN = Path("/proc/self/fd")
_MOST_TRIED = 1 << 16


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
            ResourceExhaustedError: The plugin has leaked too many, or none is left.
        """
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        try:
            used = sum(1 for _ in _OPEN.iterdir())
        except OSError as error:
            if error.errno not in {errno.EMFILE, errno.ENFILE}:  # nobody can count them
                return
            used = limit
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


class LeakedDescriptors:
    """Finds and closes the descriptors of deleted files with certain names [any thread]

    Only a descriptor that is open for reading and writing, as `mkstemp` opens it, counts as leaked:
    to write to such a file, the plugin opens it again for writing only.

    Args:
        files: A regular expression that matches the whole paths of these files and of no others.
    """

    # Shared: a descriptor that one instance closes between another's look and close may be reused.
    _lock = ForkLock()

    def __init__(self, files: str) -> None:
        self._target = re.compile(rf"(?:{files}) \(deleted\)")

    def close(self) -> None:
        """Close the descriptors that are leaked now."""
        with self._lock:
            for descriptor in _may_be_open():
                # The descriptor of the listing itself, or one that another thread has closed.
                with suppress(OSError):
                    if self._target.fullmatch(os.readlink(_OPEN / str(descriptor))):
                        _close_if_temporary(descriptor)


def _may_be_open() -> Iterable[int]:
    try:
        return [int(entry.name) for entry in _OPEN.iterdir()]
    except OSError:  # as where none is left to list them with
        return range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _MOST_TRIED))


def _close_if_temporary(descriptor: int) -> None:
    if fcntl(descriptor, F_GETFL) & os.O_ACCMODE == os.O_RDWR:
        os.close(descriptor)
