"""What calls to a plugin do to the heap, where the process runs with the checking allocator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.native.checking_allocator import checking_allocator

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_LOOKED_AT = 4096


class HeapWatch:
    """Tells of each misuse of the heap once. Without the allocator it sees nothing. [any thread]"""

    def __init__(self) -> None:
        self._allocator = checking_allocator()
        self._seen = self._allocator.inspect() if self._allocator is not None else 0

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

    def new_violation(self, *, deep: bool = False) -> str | None:
        """Return a sentence on what was found since the last time, None for nothing.

        Args:
            deep: Look also at memory that was freed, and at all blocks however many there are.
        """
        allocator = self._allocator
        if allocator is None:
            return None
        use = allocator.use()
        # To look at all blocks after each call must not take longer than the calls.
        look = deep or use.live_blocks <= _MOST_LOOKED_AT
        count = allocator.inspect(deep=deep) if look else use.violations
        if count <= self._seen:
            return None
        first, self._seen = self._seen, count
        told = (allocator.violation(index) for index in range(first, count))
        return "; ".join(text for text in told if text is not None) or "the heap was misused"

    def block_size(self, address: int) -> int | None:
        """Return the bytes of the heap block that begins there, None where that is not known."""
        return None if self._allocator is None else self._allocator.size_of(address)
