"""The progress of work on many files, on a terminal: by rich where it is installed."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Protocol

from modular_tf.cli.progress_line import ProgressLine
from modular_tf.cli.text import counted, size

if TYPE_CHECKING:
    from modular_tf.filesystem.jobs import Totals

_PATIENCE_S = 0.5  # before the first sign; what is short stays silent
_MINUTE_S = 60


class _Display(Protocol):
    def update(self) -> None:
        """Show what the totals are now."""

    def clear(self) -> None:
        """Take it away; the next update shows it again."""


class TransferProgress:
    """Shows totals to a person who waits longer than half a second. [main thread]

    Args:
        totals: What is shown.
        is_wanted: Whether anything may be shown.
    """

    def __init__(self, totals: Totals, *, is_wanted: bool) -> None:
        self._totals = totals
        is_watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._is_shown = is_wanted and is_watched
        self._display: _Display | None = None

    def show(self) -> None:
        """Update what is shown."""
        if not self._is_shown or self._totals.seconds < _PATIENCE_S:
            return
        if self._display is None:
            self._display = _display(self._totals)
        self._display.update()

    def clear(self) -> None:
        """Leave the terminal as it was, for a message or the end."""
        if self._display is not None:
            self._display.clear()


def _display(totals: Totals) -> _Display:
    try:
        from modular_tf.cli.rich_progress import RichProgress  # noqa: PLC0415  (an extra, and slow to load)
    except ImportError:
        return LineProgress(totals)
    return RichProgress(totals)


def phase(totals: Totals) -> str:
    """Return what is waited for: "storing" where every byte was accepted, else "copying"."""
    storing = totals.storing
    if not storing:
        return ""
    seconds = time.monotonic() - min(storing.values())
    return f"storing {counted(len(storing), 'file')} for {seconds:.0f} s"


class LineProgress:
    """One line of text, for a terminal without rich."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._line = ProgressLine(patience_s=0)

    def update(self) -> None:
        """Show what the totals are now."""
        self._line.show(lambda _: self.text())

    def text(self) -> str:
        """Return the line."""
        totals = self._totals
        parts = [f"{totals.files} of {counted(max(totals.known, totals.files), 'file')}"]
        if totals.bytes:
            rate = totals.bytes / totals.seconds
            expected = totals.expected_bytes()
            of = f" of {size(expected)}" if expected else ""
            parts.append(f"{size(totals.bytes)}{of}, {size(rate)}/s")
            if expected and expected > totals.bytes:
                parts.append(f"{_clock((expected - totals.bytes) / rate)} left")
        return ", ".join(filter(None, (*parts, phase(totals))))

    def clear(self) -> None:
        """Clear the line."""
        self._line.wipe()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds + 0.5), _MINUTE_S)
    return f"{minutes}:{rest:02}"
