"""The report that the child process writes while it tries a plugin: each call before it is made.

The entries are `{"enters": CALL, "memory": USE}`, then `{"stops": 1}`, `{"lost": STREAM}`,
`{"fault": TEXT, "scarce": 0|1}` or `{"finished": OUTCOME, "memory": USE}` as the last; the
entries of the native core are described in `native/core/crash_report.h`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.processes.memory_use import memory_use

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.first_contact.stopped_watchers import Watchers
    from modular_tf.processes.report import Report

IN_ORDER = 118
"""The exit status of a child that finished, and whose exit handlers and destructors returned."""


class Journal:
    """Writes each call to the report before it is made. Used by one thread.

    Attributes:
        device: The ordinal of the device that is under trial, None for none.

    Args:
        report: Where the entries are written.
        watchers: The processes that are continued if a plugin has stopped them.
    """

    def __init__(self, report: Report, watchers: Watchers | None = None) -> None:
        self.device: int | None = None
        self._report = report
        self._watchers = watchers

    def enter(self, call: str) -> None:
        """Report the next call; end the process if the last one harmed what that needs."""
        self._check_process()
        of_device = "" if self.device is None else f" of device {self.device}"
        self._report.write({"enters": f"{call}{of_device}", "memory": memory_use("self")})

    def finish(self, outcome: Mapping[str, object]) -> None:
        """Report that all calls returned, and the outcome."""
        self._check_process()
        self._report.write({"finished": outcome, "memory": memory_use("self")})

    def fail(self, text: str, *, is_scarce: bool) -> None:
        """Report that the host's own code failed.

        Args:
            text: The error.
            is_scarce: Whether a resource of the machine was used up.
        """
        self._check_process()
        self._report.write({"fault": text, "scarce": int(is_scarce)})

    def _check_process(self) -> None:
        if self._watchers is not None and self._watchers.wake():
            self._report.write({"stops": 1})
            os._exit(0)
        if lost := self._report.lost_streams():
            self._report.write({"lost": lost})
            os._exit(0)
