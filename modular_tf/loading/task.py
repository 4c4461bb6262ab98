"""A plugin to open, as it is sent to the process that opens it."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

from modular_tf.discovery.file_identity import SeenFile  # noqa: TC001  (for the codec)

WATCHER_SURVIVED = ".witnessed"
"""The suffix that `Task.mark_watcher_survived` adds to the name of a mark."""


class Task(NamedTuple):
    """One plugin to open (`modular_tf.opening`)."""

    plugin: str  # its name for users
    file: str  # its library
    companions: tuple[str, ...] = ()  # files that it brings along (`LoadFacts.companions`)
    absent: tuple[str, ...] = ()  # functions that nobody has (`LoadFacts.absent`)
    # What to open of it: `filesystem`, `device`, `kernel`, as `discovery.candidate.Kind` has them.
    kinds: tuple[str, ...] = ("device",)
    # The files as they were when they were checked (`TrustVerdict.checked`); only these are mapped.
    # None where they were not checked.
    checked: tuple[SeenFile, ...] | None = None
    mark: str = ""  # the file by which later processes know that it is under trial, "" for none

    def mark_watcher_survived(self) -> None:
        """Rename the mark: the watcher still runs, so the plugin did not end the application.

        A plugin that kills all processes of its user kills the watcher too.
        """
        if self.mark:
            with suppress(OSError):  # the application goes on, and has removed it
                os.rename(self.mark, f"{self.mark}{WATCHER_SURVIVED}")
