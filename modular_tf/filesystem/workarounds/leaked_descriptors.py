"""Descriptors of temporary files that a plugin leaks, and that the host closes."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from fcntl import F_GETFL, fcntl
from pathlib import Path

from modular_tf.concurrency.fork_lock import ForkLock

_OPEN = Path("/proc/self/fd")


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
            for entry in _OPEN.iterdir():
                # The descriptor of the listing itself, or one that another thread has closed.
                with suppress(OSError):
                    if self._target.fullmatch(os.readlink(entry)):
                        _close_if_temporary(int(entry.name))


def _close_if_temporary(descriptor: int) -> None:
    if fcntl(descriptor, F_GETFL) & os.O_ACCMODE == os.O_RDWR:
        os.close(descriptor)
