"""Doing something so often that what rounds leave behind is seen."""

from __future__ import annotations

import os
from itertools import count, pairwise
from typing import TYPE_CHECKING, TypeVar

from modular_tf.check.expectation import Deviation
from modular_tf.check.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.check.options import Options

T = TypeVar("T")

_ROUNDS = 2000
_QUARTERS = 4
_BETWEEN_LOOKS = 64
_MOST_DESCRIPTORS = 256  # a system may allow 1024 in all, and the check is to end before
_NO_LEAKED_MAPPINGS = 32  # allocators grow by many at first
_NO_LEAK = 4  # a plugin may open something of its own in the meantime, such as a log file


def rounds_of(options: Options, most: int = _ROUNDS) -> int:
    """Return how often things are done, by the option `repeat`, at most so often."""
    return min(options.repeat or _ROUNDS, most)


def looked_at(work: Callable[[], object], rounds: int, look: Callable[[], T]) -> list[T]:
    """Do something again and again; return what was seen before and after each quarter of it.

    Args:
        work: One round; it is done once more before the first look.
        rounds: How often.
        look: Looks at what is held.
    """
    work()  # what is made once and kept is no leak
    looks = [look()]
    for done in range(1, rounds + 1):
        work()
        if done * _QUARTERS // rounds > (done - 1) * _QUARTERS // rounds:
            looks.append(look())
    return looks


def is_leak(held: Sequence[int], least: int) -> bool:
    """Return whether something grows without end: in each quarter, and by more than `least`.

    What grows for a while and then stays, such as a pool or a cache, does not. However few of the
    rounds leave something behind, each quarter has some of them.
    """
    return held[-1] - held[0] > least and all(now > before for before, now in pairwise(held))


def expect_no_leak(work: Callable[[], None], rounds: int, what: str) -> None:
    """Do something again and again, and demand that nothing of the system's piles up.

    Descriptors and mappings are looked at, and with the checking allocator the plugin's memory.

    Args:
        work: One round.
        rounds: How often; it ends early where there is a leak, before nothing can be opened.
        what: It does, such as `opening and cleanup`.

    Raises:
        Deviation: They do.
    """
    work()
    before, numbers = _held(), count(1)

    def watched() -> None:
        work()
        done = next(numbers)
        if done % _BETWEEN_LOOKS == 0:
            for name, now in _held().items():
                if now - before[name] > _most_after(done, name):
                    raise _left_behind(what, name, before[name], now, done)

    looks = looked_at(watched, rounds, _held)
    for name in before:
        held = [look[name] for look in looks]
        if is_leak(held, _least(name)):
            raise _left_behind(what, name, held[0], held[-1], rounds)


def _most_after(rounds: int, name: str) -> int:
    """Return how many more of something there may be while the rounds go on."""
    most = max(_least(name), rounds // 2)
    return min(most, _MOST_DESCRIPTORS) if name == "descriptors" else most


def _held() -> dict[str, int]:
    held = {"descriptors": descriptors(), "mappings": mappings()}
    allocator = checking_allocator()
    if allocator is not None:
        held["heap blocks"] = allocator.use().live_blocks
    return held


def _least(name: str) -> int:
    """Return how many more of something are no leak: memory is mapped for other reasons too."""
    return _NO_LEAKED_MAPPINGS if name == "mappings" else _NO_LEAK


def _left_behind(what: str, name: str, before: int, now: int, rounds: int) -> Deviation:
    return Deviation(
        f"{what} leaves {name} behind",
        expected=f"{before}, as before",
        found=f"{now}, after {rounds} rounds",
    )


def descriptors() -> int:
    """Return how many file descriptors of this process are open."""
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    """Return how many areas of memory this process has mapped."""
    with open("/proc/self/maps", "rb") as maps:
        return sum(1 for _ in maps)
