"""Doing things in several threads at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, TypeVar

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
