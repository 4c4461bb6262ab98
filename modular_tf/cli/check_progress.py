"""How far a run of checks has come, on standard error, for a person who is watching."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from modular_tf.check.outcome import BAD
from modular_tf.check.planning import number_of_checks
from modular_tf.cli.text import harmless

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.check.outcome import Outcome
    from modular_tf.check.planning import PluginPlan

_PATIENCE = 0.5  # seconds before the first sign; short runs stay silent
_PACE = 0.1  # seconds between signs


class CheckProgress:
    """One line that is written over and over, and wiped at the end."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._bad = 0
        self._next_sign = time.monotonic() + _PATIENCE
        self._shown = False
        self._watched = sys.stderr.isatty()

    def tell(self, plan: PluginPlan, outcome: Outcome) -> None:
        """Count an outcome."""
        done = self._done[plan.path] = self._done.get(plan.path, 0) + 1
        self._bad += outcome.verdict in BAD
        now = time.monotonic()
        if self._watched and now >= self._next_sign:
            self._next_sign = now + _PACE
            self._shown = True
            text = f"{plan.name}: {done} of {number_of_checks(plan)}, {self._bad} bad"
            sys.stderr.write(f"\r\x1b[K{harmless(text)}, last {outcome.check_id}")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
