"""A line on a terminal that shows the progress of a long operation."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

from modular_tf.cli.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

_PATIENCE = 0.5  # seconds before the first sign; what is short stays silent
_PACE = 0.1  # seconds between signs
_TO_AN_EMPTY_LINE = "\r\x1b[K"


class ProgressLine:
    """One line that is overwritten, and cleared at the end of a `with` block or by `wipe`.

    Args:
        patience_s: Seconds before it first appears.
    """

    def __init__(self, patience_s: float = _PATIENCE) -> None:
        self._started = time.monotonic()
        self._next_sign = self._started + patience_s
        self._shown = False
        self._watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, text: Callable[[float], str]) -> None:
        """Show the progress if a terminal takes it and the last update is old enough.

        Args:
            text: What is shown, of the seconds since the start.
        """
        now = time.monotonic()
        if self._watched and now >= self._next_sign:
            self._next_sign = now + _PACE
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
