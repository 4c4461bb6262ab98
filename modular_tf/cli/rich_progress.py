"""The progress of work on many files, by rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from modular_tf.cli.transfer_progress import phase

if TYPE_CHECKING:
    from modular_tf.filesystem.jobs import Totals


class RichProgress:
    """A bar with files, bytes, rate and the time that is left."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._progress = Progress(
            TextColumn("{task.fields[files]} files", markup=False),
            BarColumn(bar_width=None),
            DownloadColumn(binary_units=True),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[phase]}", markup=False),
            console=Console(stderr=True),
            auto_refresh=False,  # else by a thread; the thread that waits does it
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, files="", phase="")
        self._is_shown = False

    def update(self) -> None:
        """Show what the totals are now."""
        if not self._is_shown:
            self._is_shown = True
            self._progress.start()
        totals = self._totals
        known = max(totals.known, totals.files)
        self._progress.update(
            self._task,
            completed=totals.bytes,
            total=totals.expected_bytes(),
            files=f"{totals.files} of {known}",
            phase=phase(totals),
            refresh=True,
        )

    def clear(self) -> None:
        """Take it away."""
        if self._is_shown:
            self._is_shown = False
            self._progress.stop()
