"""Searching for a program that fails, and reducing it to the smallest one."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.check.expectation import Unsupported
from modular_tf.check.sequences.program import Program
from modular_tf.check.sequences.reduction import reduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

    from modular_tf.check.sequences.program import Step
    from modular_tf.check.sequences.worker import Failure


class _Found(Exception):  # noqa: N818  (no error: what the search is for)
    pass


class Search:
    """A search for the smallest program that fails.

    Attributes:
        best: The smallest program that failed, and how it failed; None for none.
        tried: How many programs were tried.

    Args:
        attempt: Performs a program and returns what was wrong.
        shrink_seconds: How long it may take to make steps simpler, and again to leave steps out.
    """

    def __init__(
        self, attempt: Callable[[Program], Failure | None], *, shrink_seconds: float
    ) -> None:
        self.best: tuple[Program, Failure] | None = None
        self.tried = 0
        self._attempt = attempt
        self._shrink_seconds = shrink_seconds
        self._deadline = float("inf")

    def run(self, steps: SearchStrategy[Step], *, programs: int, longest: int, seed: int) -> None:
        """Try random programs until one fails, then smaller ones.

        Args:
            steps: Where steps come from.
            programs: How many programs to try.
            longest: How many steps a program may have.
            seed: The same seed tries the same programs.

        Raises:
            Unsupported: Hypothesis is not installed (the extra `check`).
        """
        try:
            import hypothesis  # noqa: PLC0415  (an extra)
            from hypothesis import strategies  # noqa: PLC0415
        except ImportError:
            raise Unsupported("Hypothesis is not installed: modular_tf[check] brings it") from None

        # Lists of lists: Hypothesis makes single lists of some six elements, however long they
        # might be, and little happens in so few steps.
        root = math.isqrt(longest)
        pieces = strategies.lists(strategies.lists(steps, max_size=root), max_size=root)

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=programs,
            database=None,
            deadline=None,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
            report_multiple_bugs=False,
            suppress_health_check=list(hypothesis.HealthCheck),
            verbosity=hypothesis.Verbosity.quiet,
        )
        @hypothesis.given(pieces)
        def attempt(drawn: list[list[Step]]) -> None:
            self._try(Program(tuple(step for piece in drawn for step in piece)))

        # What does not fail every time has failed at least once: `best` has it.
        with suppress(_Found, hypothesis.errors.Flaky):
            attempt()
        if self.best is not None:
            deadline = time.monotonic() + self._shrink_seconds
            self.best = reduced(*self.best, self._attempt, deadline=deadline)

    def _try(self, program: Program) -> None:
        if self.best is not None and time.monotonic() > self._deadline:
            if program == self.best[0]:
                raise _Found
            return  # small enough: nothing else is tried any more
        self.tried += 1
        failure = self._attempt(program)
        if failure is None:
            return
        if self.best is None:
            self._deadline = time.monotonic() + self._shrink_seconds
        self.best = program, failure
        raise _Found
