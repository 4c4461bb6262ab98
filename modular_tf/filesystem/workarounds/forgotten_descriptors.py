"""Descriptors that a plugin leaves open though it never uses them again."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from fcntl import F_GETFL, fcntl
from pathlib import Path

from modular_tf.concurrency.fork_lock import ForkLock

_OPEN = Path("/proc/self/fd")


class ForgottenDescriptors:
    """Those of deleted files with certain names; closes them [any thread].

    Only what was opened for reading and writing, as `mkstemp` opens it, is taken for forgotten: a
    plugin that writes to such a file has opened it once more, for writing.

    Args:
        files: The whole paths of the files, a regular expression that fits no others.
    """

    # Of all: a descriptor that somebody closes between another's look and close may be a new one.
    _lock = ForkLock()

    def __init__(self, files: str) -> None:
        self._target = re.compile(rf"(?:{files}) \(deleted\)")

    def close(self) -> None:
        """Close what is there now."""
        with self._lock:
            for entry in _OPEN.iterdir():
                # Of the listing itself, or of a thread that has closed it.
                with suppress(OSError):
                    if self._target.fullmatch(os.readlink(entry)):
                        _close_if_temporary(int(entry.name))


def _close_if_temporary(descriptor: int) -> None:
    if fcntl(descriptor, F_GETFL) & os.O_ACCMODE == os.O_RDWR:
        os.close(descriptor)
