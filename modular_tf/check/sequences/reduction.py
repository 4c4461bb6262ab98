"""Leaving steps of a program out, as long as it still shows what it shows.

Hypothesis makes single steps simpler; where each try is slow, as after a crash, it comes to few of
them in long programs, and this one comes first to what matters: which steps there must be.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modular_tf.check.sequences.program import Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.sequences.worker import Failure


def reduced(
    program: Program,
    failure: Failure,
    attempt: Callable[[Program], Failure | None],
    *,
    deadline: float,
) -> tuple[Program, Failure]:
    """Return a program with as few steps as possible, and what it shows.

    Args:
        program: One that fails.
        failure: What it shows.
        attempt: Performs a program and returns what was wrong.
        deadline: When to stop, by the monotonic clock.
    """
    size = max(1, len(program.steps) // 2)
    while True:
        smaller = _without_a_piece(program, size, attempt, deadline)
        if smaller is not None:
            program, failure = smaller
        elif size == 1 or time.monotonic() > deadline:
            return program, failure
        size = max(1, min(size if smaller is not None else size // 2, len(program.steps) // 2))


def _without_a_piece(
    program: Program,
    size: int,
    attempt: Callable[[Program], Failure | None],
    deadline: float,
) -> tuple[Program, Failure] | None:
    """Return the program with pieces of one size left out, None where each is needed."""
    at, last = 0, None
    while at < len(program.steps) and time.monotonic() < deadline:
        steps = program.steps[:at] + program.steps[at + size :]
        failure = attempt(Program(steps)) if steps else None
        if failure is None:
            at += size
        else:
            program = Program(steps)
            last = program, failure
    return last
