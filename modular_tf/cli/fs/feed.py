"""A supply of work that grows while it is worked on, such as a tree that is being listed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from modular_tf.concurrency.fork_lock import ForkLock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_Item = TypeVar("_Item")
_PACE_S = 0.1  # between two looks whether the work was given up


class Feed(Generic[_Item]):
    """An iterator over items, to which the work on an item may add others. [any thread]

    What was added last comes first, so that a tree is gone through in depth and few of its names
    are in memory. Where nothing is left and work is under way, the next item is waited for.

    Args:
        items: The first ones.
        check: Raises if the work was given up.
    """

    def __init__(self, items: Iterable[_Item], check: Callable[[], object]) -> None:
        self._stack = [iter(items)]
        self._check = check
        self._changed = threading.Condition(ForkLock())
        self._under_way = 0

    def __iter__(self) -> Feed[_Item]:
        return self

    def __next__(self) -> _Item:
        with self._changed:
            while True:
                while self._stack:
                    for item in self._stack[-1]:
                        self._under_way += 1
                        return item
                    self._stack.pop()
                if not self._under_way:
                    raise StopIteration
                self._changed.wait(_PACE_S)
                self._check()

    def add(self, items: Iterable[_Item]) -> None:
        """Add items, by the work on another one."""
        with self._changed:
            self._stack.append(iter(items))
            self._changed.notify_all()

    def end_one(self) -> None:
        """Say that the work on an item has ended, and adds nothing more."""
        with self._changed:
            self._under_way -= 1
            self._changed.notify_all()
