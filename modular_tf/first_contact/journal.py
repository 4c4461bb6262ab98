"""What the child process tells while it tries a plugin: each call before it is made.

One JSON object a line: `{"enters": CALL, "memory": USE}`, then `{"stops": 1}`, `{"lost": STREAM}`,
`{"fault": TEXT, "scarce": 0|1}` or `{"finished": OUTCOME}` as the last; what the native core adds
stands in `native/core/crash_report.h`. The pipe is not standard output, which plugins may write to.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from modular_tf.processes.descriptors import OwnDescriptors
from modular_tf.processes.memory_use import memory_use

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.first_contact.stopped_watchers import Watchers

MUTE_STATUS = 119
"""The child's exit status where nothing can be written to the report any more."""


class Journal:
    """Writes the report. Used by one thread.

    Attributes:
        device: The ordinal of the device that is being looked at, None for none.

    Args:
        report: The descriptor to write it on.
        watchers: The processes that are woken if a plugin has stopped them.
    """

    def __init__(self, report: int, watchers: Watchers | None = None) -> None:
        self.device: int | None = None
        self._report = report
        self._own = OwnDescriptors(report)
        self._watchers = watchers

    def enter(self, call: str) -> None:
        """Tell which call comes next; ends the process if the last one took what that needs."""
        self._check_process()
        of_device = "" if self.device is None else f" of device {self.device}"
        self._write({"enters": f"{call}{of_device}", "memory": memory_use("self")})

    def finish(self, outcome: Mapping[str, object]) -> None:
        """Tell that all calls came back, and with what."""
        self._check_process()
        self._write({"finished": outcome, "memory": memory_use("self")})

    def fail(self, text: str, *, is_scarce: bool) -> None:
        """Tell that the host's own code failed.

        Args:
            text: How.
            is_scarce: Whether the machine lacks what it needed.
        """
        self._check_process()
        self._write({"fault": text, "scarce": int(is_scarce)})

    def _check_process(self) -> None:
        stopped = self._watchers is not None and self._watchers.wake()
        if not self._own.has_report:
            os._exit(MUTE_STATUS)
        if stopped:
            self._write({"stops": 1})
            os._exit(0)
        if lost := self._own.lost_streams():
            self._write({"lost": lost})
            os._exit(0)

    def _write(self, entry: dict[str, object]) -> None:
        left = json.dumps(entry).encode() + b"\n"
        try:
            while left:
                left = left[os.write(self._report, left) :]
        except OSError:  # the plugin has shut the socket down
            os._exit(MUTE_STATUS)
