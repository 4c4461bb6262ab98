"""What the process of a group tells while it tries its checks.

The entries are `{"begins": 1}`; `{"ready": 1}` or `{"blocked": WHY}` about its subject;
`{"enters": ID}` and `{"outcome": OUTCOME}` for each check; `{"closes": 1}`, and `{"done": 1}` as
the last; or `{"fault": TEXT}` where the kit itself failed. What the native core adds stands in
`native/core/process_end.h`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from modular_tf.processes.child import Report

if TYPE_CHECKING:
    from modular_tf.check.outcome import Outcome

FRESH_STATUS = 118
"""The exit status where checks are left that need another process."""


class Progress:
    """Writes the report. Used by one thread, of the process that made it alone."""

    def __init__(self) -> None:
        self._report = Report()
        self._process = os.getpid()

    def begin(self) -> None:
        """Report that the plugin comes next."""
        self._write({"begins": 1})

    def ready(self) -> None:
        """Report that the subject is there."""
        self._write({"ready": 1})

    def block(self, why: str) -> None:
        """Report that there is no subject."""
        self._write({"blocked": why})

    def enter(self, check_id: str) -> None:
        """Report which check comes next."""
        self._write({"enters": check_id})

    def leave(self, outcome: Outcome) -> None:
        """Report what became of it."""
        self._write({"outcome": outcome.as_dict()})

    def close(self) -> None:
        """Report that the subject is taken down now."""
        self._write({"closes": 1})

    def finish(self) -> None:
        """Report that all is done."""
        self._write({"done": 1})

    def fail(self, text: str) -> None:
        """Report that the kit itself failed."""
        self._write({"fault": text})

    def lost_streams(self) -> str:
        """Return the names of the standard streams that the plugin took away, "" for none."""
        return self._report.lost_streams()

    def _write(self, entry: dict[str, Any]) -> None:
        if os.getpid() != self._process:  # a plugin has forked, and came back twice
            os._exit(0)
        self._report.write(entry)
