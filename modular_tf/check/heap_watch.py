"""What calls to a plugin do to the heap, where the process runs with the checking allocator."""

from __future__ import annotations

from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Any

from modular_tf.check.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.native.checking_allocator import CheckingAllocator

_MOST_LOOKED_AT = 2048

_told = 0
"""How many violations were reported."""
_telling = Lock()


class Depth(Enum):
    """How closely the heap is looked at."""

    TOLD = "told"
    """At nothing: only what the allocator has seen by itself."""
    LIVE = "live"
    """At the blocks that the plugin has now, where they are not too many."""
    ALL = "all"
    """At all of them, and at memory that was freed."""


class HeapWatch:
    """Reports each misuse of the heap; without the allocator it sees nothing. [any thread]

    What one watch has reported, no other one reports again.
    """

    def __init__(self) -> None:
        self._allocator = checking_allocator()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the plugin; what it allocates is counted as its own."""
        allocator = self._allocator
        if allocator is None:
            return function(*arguments)
        allocator.enter()
        try:
            return function(*arguments)
        finally:
            allocator.leave()

    def new_violation(self, depth: Depth = Depth.LIVE) -> str | None:
        """Return a sentence on what was found since the last time, None for nothing."""
        allocator = self._allocator
        if allocator is None:
            return None
        global _told
        count = self._count(allocator, depth)
        with _telling:  # each violation is one thread's to report
            if count <= _told:
                return None
            first, _told = _told, count
        told = (allocator.violation(index) for index in range(first, count))
        return "; ".join(text for text in told if text is not None) or "the heap was misused"

    def _count(self, allocator: CheckingAllocator, depth: Depth) -> int:
        if depth is Depth.ALL:
            return allocator.inspect(deep=True)
        use = allocator.use()
        # To look at all blocks after each call must not take longer than the calls.
        if depth is Depth.TOLD or use.live_blocks > _MOST_LOOKED_AT:
            return use.violations
        return allocator.inspect()

    def block_size(self, address: int) -> int | None:
        """Return the bytes of the heap block that begins there, None where that is not known."""
        return None if self._allocator is None else self._allocator.size_of(address)
