"""Names of `under_load`, until no module imports them from here."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from modular_tf.check.under_load import Held
from modular_tf.check.under_load import must_not_grow as expect_no_leak

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

__all__ = ["expect_no_leak", "is_leak", "looked_at"]


def looked_at(work: Callable[[], object], rounds: int, look: Callable[[], T]) -> list[T]:
    """Do something again and again; return what was seen before and after each quarter of it."""
    work()
    looks = [look()]
    for done in range(1, rounds + 1):
        work()
        if done * 4 // rounds > (done - 1) * 4 // rounds:
            looks.append(look())
    return looks


def is_leak(held: Sequence[int], least: int) -> bool:
    """Return whether something grows in each quarter, and by more than `least`."""
    return Held("", int, least, 1).is_leak(held)
