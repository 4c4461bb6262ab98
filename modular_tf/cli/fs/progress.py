"""How far a long copy has come."""

from __future__ import annotations

from modular_tf.cli.progress_line import ProgressLine
from modular_tf.cli.text import size


class Progress:
    """Counts bytes, and shows them to a person who is watching.

    Args:
        name: What is being copied.
        total: Its size in bytes.
    """

    def __init__(self, name: str, total: int) -> None:
        self._name = name
        self._total = total
        self._done = 0
        self._line = ProgressLine()

    def advance(self, n_bytes: int) -> None:
        """Add `n_bytes` to the count and update the line."""
        self._done += n_bytes
        self._line.show(self._text)

    def _text(self, seconds: float) -> str:
        percent = 100 * self._done / self._total if self._total else 100
        return (
            f"{self._name}  {percent:.0f}% of {size(self._total)}, {size(self._done / seconds)}/s"
        )

    def close(self) -> None:
        """Wipe what is shown."""
        self._line.wipe()
