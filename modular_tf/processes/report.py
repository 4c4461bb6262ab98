"""The report of a child to its watcher, one JSON object a line.

It has a descriptor of its own since plugins may write to standard output. They may close any
descriptor; so nothing is written to what a plugin has opened under the number of the report's.
"""

from __future__ import annotations

import json
import os
from typing import Any

REPORT = 3
"""The descriptor of the report, the first after the standard streams."""
MUTE_STATUS = 119
"""The exit status of a child that can write nothing to its report any more."""

_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}


class Report:
    """Writes the report. Used by one thread."""

    def __init__(self, descriptor: int = REPORT) -> None:
        self._descriptor = descriptor
        self._own = {fd: _identity(fd) for fd in (descriptor, *_STREAMS)}

    def write(self, entry: dict[str, Any]) -> None:
        """Write an entry; the process ends where the report is closed or something else."""
        if self._is_lost(self._descriptor):
            os._exit(MUTE_STATUS)
        left = json.dumps(entry).encode() + b"\n"
        try:
            while left:
                left = left[os.write(self._descriptor, left) :]
        except OSError:  # the plugin has shut the socket down
            os._exit(MUTE_STATUS)

    def lost_streams(self) -> str:
        """Return the names of the streams that are closed or something else, "" for none."""
        return " and ".join(name for fd, name in _STREAMS.items() if self._is_lost(fd))

    def _is_lost(self, fd: int) -> bool:
        return _identity(fd) != self._own[fd]


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
