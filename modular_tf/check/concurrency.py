"""Doing things in several threads at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, TypeVar

from modular_tf.check.breach import Breach
from modular_tf.check.expectation import Blocked, Deviation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


def run_at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """Run each function in a thread of its own; all start together.

    Args:
        works: The functions.

    Returns:
        What they returned, in their order, when all of them are done.

    Raises:
        Exception: The first in their order that one of them raised.
    """
    start = Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        results = [threads.submit(run, work) for work in works]
    return [result.result() for result in results]


def expect_of_threads(
    works: Sequence[Callable[[], None]], alone: Sequence[Callable[[], None]]
) -> None:
    """Demand of a plugin that each function works while the others run.

    Args:
        works: The functions, each for a thread of its own.
        alone: The same, to be tried one after the other where one fails.

    Raises:
        Deviation: One failed that works where no other thread runs.
        Blocked: One fails there too: the fault is none of threads.
    """
    try:
        run_at_once(works)
    except Breach:  # memory is damaged: nothing more can be tried
        raise
    except Deviation:
        for work in alone:
            _expect_alone(work)
        raise


def _expect_alone(work: Callable[[], None]) -> None:
    try:
        work()
    except Deviation as deviation:
        message = "without other threads it fails too, so see the checks of the operation"
        raise Blocked(f"{message}: {deviation.message}") from None
