"""The descriptors of a process in which a plugin runs: the standard streams, and one to report on.

The report has a descriptor of its own since plugins may write to standard output. They may close
any; so it is seen to that nothing is written to what a plugin has opened in the report's place.
"""

from __future__ import annotations

import fcntl
import os

REPORT = 3
"""The descriptor of the report, the first after the standard streams."""

_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}


def take_descriptors(streams: tuple[int, int, int]) -> None:
    """Keep the standard streams and the report, and nothing that others have opened.

    Args:
        streams: What become standard output, standard error, and the report.
    """
    nothing = os.open(os.devnull, os.O_RDONLY)
    above = [fcntl.fcntl(fd, fcntl.F_DUPFD, REPORT + 1) for fd in (nothing, *streams)]
    for fd, source in enumerate(above):
        os.dup2(source, fd)
    os.set_inheritable(REPORT, False)  # noqa: FBT003  (it has no name)
    os.closerange(REPORT + 1, os.sysconf("SC_OPEN_MAX"))


class OwnDescriptors:
    """What the standard streams and the report were when this was made.

    Args:
        report: The descriptor of the report.
    """

    def __init__(self, report: int) -> None:
        self._report = report
        self._own = {fd: _identity(fd) for fd in (report, *_STREAMS)}

    @property
    def has_report(self) -> bool:
        """Whether the report is still what it was."""
        return _identity(self._report) == self._own[self._report]

    def lost_streams(self) -> str:
        """Return the names of the streams that are closed or something else, "" for none."""
        return " and ".join(name for fd, name in _STREAMS.items() if _identity(fd) != self._own[fd])


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        status = os.fstat(fd)
    except OSError:
        return None
    return status.st_dev, status.st_ino
