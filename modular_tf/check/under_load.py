"""Doing something so often that what rounds leave behind is seen, and in many threads at once."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from threading import Barrier
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.memory_watch import Breach
from modular_tf.check.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.check.calls import CallJournal
    from modular_tf.check.options import Options

T = TypeVar("T")

_ROUNDS = 2000
_QUARTERS = 4
_BETWEEN_LOOKS = 64
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Held(NamedTuple):
    """Something that a process may hold more and more of.

    Attributes:
        name: What it is, in the plural.
        now: Returns how much there is.
        unit: How much of it a round takes.
        least: So many units more are no leak: a plugin may open a log file of its own meanwhile.
        most: Past so many units more the rounds end, and so they do where every second one leaves
            something behind; None for what a process has enough of.
    """

    name: str
    now: Callable[[], int]
    unit: int = 1
    least: int = 4
    most: int | None = None

    def is_leak(self, held: Sequence[int]) -> bool:
        """Return whether it grows without end: in each quarter of the rounds, and by some units.

        What grows for a while and then stays, such as a pool or a cache, does not. However few of
        the rounds leave something behind, each quarter has some of them.
        """
        grew = held[-1] - held[0] > self.least * self.unit
        return grew and all(now > before for before, now in pairwise(held))


def rounds_of(options: Options, most: int = _ROUNDS) -> int:
    """Return how often things are done, by the option `repeat`, at most so often."""
    return min(options.repeat or _ROUNDS, most)


def must_not_grow(
    work: Callable[[], object], rounds: int, what: str, *, of: Sequence[Held] = ()
) -> None:
    """Do something again and again, and demand that nothing piles up.

    Args:
        work: One round; it is done once more before the first: what is made once is no leak.
        rounds: How often; it ends early where there is a leak, before nothing can be opened.
        what: It does, such as `opening and cleanup`.
        of: What is looked at; by default descriptors and mappings of the process, and with the
            checking allocator the plugin's memory.

    Raises:
        Deviation: Something does.
    """
    of = of or of_the_process()
    work()
    looks = [[held.now() for held in of]]
    for done in range(1, rounds + 1):
        work()
        for held, before in zip(of, looks[0], strict=True) if done % _BETWEEN_LOOKS == 0 else ():
            if held.most is not None:
                most = min(max(held.least, done // 2), held.most)
                if (now := held.now()) - before > most * held.unit:
                    raise _left_behind(what, held, before, now, done)
        if done * _QUARTERS // rounds > (done - 1) * _QUARTERS // rounds:
            looks.append([held.now() for held in of])
    for held, seen in zip(of, zip(*looks, strict=True), strict=True):
        if held.is_leak(seen):
            raise _left_behind(what, held, seen[0], seen[-1], rounds)


def _left_behind(what: str, held: Held, before: int, now: int, rounds: int) -> Deviation:
    return Deviation(
        f"{what} leaves {held.name} behind",
        expected=f"{before}, as before",
        found=f"{now}, after {rounds} rounds",
    )


def of_the_process() -> tuple[Held, ...]:
    """Return descriptors and mappings, and with the checking allocator the plugin's memory."""
    allocator = checking_allocator()
    # A system may allow 1024 descriptors in all; allocators map much at first.
    held = (
        Held("descriptors", lambda: len(os.listdir("/proc/self/fd")), most=256),
        Held("mappings", _mappings, least=32),
    )
    if allocator is None:
        return held
    return (*held, Held("heap blocks", lambda: allocator.use().live_blocks))


def _mappings() -> int:
    with open("/proc/self/maps", "rb") as maps:
        return sum(1 for _ in maps)


def resident_bytes() -> int:
    """Return how many bytes of memory this process has, without garbage of Python's."""
    gc.collect()
    with open("/proc/self/statm", "rb") as sizes:
        return int(sizes.read().split()[1]) * _PAGE


def at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """Run each function in a thread of its own; all start together.

    Returns what they returned, in their order, when all of them are done, or raises the first
    exception in their order.
    """
    start = Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        results = [threads.submit(run, work) for work in works]
    return [result.result() for result in results]


def expect_of_threads(
    works: Sequence[Callable[[], None]],
    alone: Sequence[Callable[[], None]],
    journal: CallJournal,
) -> None:
    """Demand of a plugin that each function works while the others run, in a thread of its own.

    Where one fails, those of `alone` are tried one after the other: where one of these fails too,
    the fault is none of threads, and the check is `Blocked`. Else the calls that the journal has
    are those of the thread that failed.
    """
    calls: dict[int, list[str]] = {}

    def watched(number: int, work: Callable[[], None]) -> None:
        try:
            work()
        except Deviation:
            calls[number] = [*journal.of_this_thread()]
            raise

    try:
        at_once([partial(watched, number, work) for number, work in enumerate(works)])
    except Deviation as deviation:
        if not isinstance(deviation, Breach):  # memory is damaged: nothing more can be tried
            _try_alone(alone)
        journal.calls[:] = calls[min(calls)]
        raise


def _try_alone(works: Sequence[Callable[[], None]]) -> None:
    try:
        for work in works:
            work()
    except Deviation as deviation:
        message = "without other threads it fails too, so see the checks of the operation"
        raise Blocked(f"{message}: {deviation.message}") from None
