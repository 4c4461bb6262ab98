"""How far a long copy has come, on standard error, for a person who is watching."""

from __future__ import annotations

import sys
import time

from modular_tf.cli.text import harmless, size

_PATIENCE = 0.5  # seconds before the first sign; short copies stay silent
_PACE = 0.1  # seconds between signs


class Progress:
    """One line that is written over and over, and wiped at the end.

    Args:
        name: What is being copied.
        total: Its size in bytes.
    """

    def __init__(self, name: str, total: int) -> None:
        self._name = harmless(name)
        self._total = total
        self._done = 0
        self._started = time.monotonic()
        self._next_sign = self._started + _PATIENCE
        self._shown = False
        self._watched = sys.stderr.isatty()

    def advance(self, n_bytes: int) -> None:
        """Count `n_bytes` more."""
        self._done += n_bytes
        now = time.monotonic()
        if self._watched and now >= self._next_sign:
            self._next_sign = now + _PACE
            self._show(now - self._started)

    def _show(self, elapsed: float) -> None:
        self._shown = True
        percent = 100 * self._done / self._total if self._total else 100
        rate = size(self._done / elapsed)
        sys.stderr.write(f"\r\x1b[K{self._name}  {percent:.0f}% of {size(self._total)}, {rate}/s")
        sys.stderr.flush()

    def close(self) -> None:
        """Wipe the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
