"""Progress on a terminal: silent while the work is short, cleared at the end."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from modular_tf.cli.output import counted, printable, size

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from modular_tf.filesystem.jobs import Totals

_PATIENCE_S = 0.5  # before the first sign
_PACE_S = 0.1  # between signs
_TO_AN_EMPTY_LINE = "\r\x1b[K"


def _is_watched() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class ProgressLine:
    """One line that is overwritten, and cleared at the end of a `with` block or by `wipe`."""

    def __init__(self, patience_s: float = _PATIENCE_S) -> None:
        self._started = time.monotonic()
        self._next_sign = self._started + patience_s
        self._shown = False
        self._watched = _is_watched()

    def show(self, text: Callable[[float], str]) -> None:
        """Show the text of the seconds since the start, if the last update is old enough."""
        now = time.monotonic()
        if self._watched and now >= self._next_sign:
            self._next_sign = now + _PACE_S
            self._shown = True
            self._write(printable(text(now - self._started)))

    def wipe(self) -> None:
        """Clear the line, if anything was shown."""
        if self._shown:
            self._shown = False
            self._write("")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.wipe()

    def _write(self, text: str) -> None:
        sys.stderr.write(_TO_AN_EMPTY_LINE + text)
        sys.stderr.flush()


class TransferProgress:
    """Shows totals of work on many files, by rich where it is installed. [main thread]"""

    def __init__(self, totals: Totals, *, is_wanted: bool) -> None:
        self._totals = totals
        self._is_shown = is_wanted and _is_watched()
        self._display: _Bar | ProgressLine | None = None

    def show(self) -> None:
        """Update what is shown."""
        if not self._is_shown or self._totals.seconds < _PATIENCE_S:
            return
        if self._display is None:
            try:
                self._display = _Bar()
            except ImportError:
                self._display = ProgressLine(patience_s=0)
        if isinstance(self._display, _Bar):
            self._display.update(self._totals)
        else:
            self._display.show(lambda _: _line(self._totals))

    def clear(self) -> None:
        """Leave the terminal as it was, until the next update."""
        if self._display is not None:
            self._display.wipe()


def phase(totals: Totals) -> str:
    """Return for how long files are being stored whose every byte was accepted."""
    if not totals.storing:
        return ""
    seconds = time.monotonic() - min(totals.storing.values())
    return f"storing {counted(len(totals.storing), 'file')} for {seconds:.0f} s"


def _line(totals: Totals) -> str:
    """Return the totals in one line, for a terminal without rich."""
    parts = [f"{totals.files} of {counted(max(totals.known, totals.files), 'file')}"]
    if totals.bytes:
        rate = totals.bytes / totals.seconds
        expected = totals.expected_bytes()
        of = f" of {size(expected)}" if expected else ""
        parts.append(f"{size(totals.bytes)}{of}, {size(rate)}/s")
        if expected and expected > totals.bytes:
            minutes, seconds = divmod(int((expected - totals.bytes) / rate + 0.5), 60)
            parts.append(f"{minutes}:{seconds:02} left")
    return ", ".join(filter(None, (*parts, phase(totals))))


class _Bar:
    """A bar by rich, with files, bytes, rate and the time that is left."""

    def __init__(self) -> None:
        from rich import progress  # noqa: PLC0415  (an extra, and slow to load)
        from rich.console import Console  # noqa: PLC0415

        self._progress = progress.Progress(
            progress.TextColumn("{task.fields[files]} files", markup=False),
            progress.BarColumn(bar_width=None),
            progress.DownloadColumn(binary_units=True),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[phase]}", markup=False),
            console=Console(stderr=True),
            auto_refresh=False,  # else by a thread; the thread that waits does it
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, files="", phase="")

    def update(self, totals: Totals) -> None:
        self._progress.start()  # does nothing where it is shown
        self._progress.update(
            self._task,
            completed=totals.bytes,
            total=totals.expected_bytes(),
            files=f"{totals.files} of {max(totals.known, totals.files)}",
            phase=phase(totals),
            refresh=True,
        )

    def wipe(self) -> None:
        self._progress.stop()
