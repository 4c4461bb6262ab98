"""Doing something so often that what each round leaves behind is seen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import expect
from modular_tf.check.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ROUNDS = 2000
_BETWEEN_LOOKS = 64
_NO_LEAKED_MAPPINGS = 32  # allocators grow by many at first
_NO_LEAK = 4  # a plugin may open something of its own in the meantime, such as a log file


def rounds_of(options: Mapping[str, Any], most: int = _ROUNDS) -> int:
    """Return how often things are done, by the option `repeat`, at most so often."""
    return min(int(options.get("repeat", _ROUNDS)), most)


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
    work()  # what is made once and kept is no leak
    before = _held()
    for done in range(1, rounds + 1):
        work()
        if done % _BETWEEN_LOOKS == 0 or done == rounds:
            _compare(before, done, what)


def _held() -> dict[str, int]:
    held = {"descriptors": descriptors(), "mappings": mappings()}
    allocator = checking_allocator()
    if allocator is not None:
        held["heap blocks"] = allocator.use().live_blocks
    return held


def _compare(before: dict[str, int], rounds: int, what: str) -> None:
    for name, now in _held().items():
        # Memory is mapped for other reasons too, at times.
        least = _NO_LEAKED_MAPPINGS if name == "mappings" else _NO_LEAK
        expect(
            now - before[name] <= max(least, rounds // 2),
            f"{what} leaves {name} behind",
            expected=f"{before[name]}, as before",
            found=f"{now}, after {rounds} rounds",
        )


def descriptors() -> int:
    """Return how many file descriptors of this process are open."""
    return len(os.listdir("/proc/self/fd"))


def mappings() -> int:
    """Return how many areas of memory this process has mapped."""
    with open("/proc/self/maps", "rb") as maps:
        return sum(1 for _ in maps)
