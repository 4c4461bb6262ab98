"""The last calls to a plugin, in memory that outlives the process that made them.

A call costs a copy of its text and nothing else: a write to a pipe for each would slow down the
checks that call much, and the last words of a process that is killed would be lost in it.
"""

from __future__ import annotations

from itertools import count

from modular_tf.native.shared_memory import shared_memory

_CALLS = 32
_SLOT = 512
_LENGTH = 2
_MOST_BYTES = _SLOT - _LENGTH


class CallLog:
    """Holds the last calls; a fork writes them, and the process that made it reads them."""

    def __init__(self) -> None:
        self._memory = shared_memory((_CALLS + 1) * _SLOT)
        self._numbers = count(1)

    def add(self, call: str) -> None:
        """Write down a call that comes next. [any thread]"""
        data = call.encode("utf-8", "surrogateescape")[:_MOST_BYTES]
        number = next(self._numbers)
        start = _SLOT + number % _CALLS * _SLOT
        self._memory[start : start + _LENGTH] = len(data).to_bytes(_LENGTH, "little")
        self._memory[start + _LENGTH : start + _LENGTH + len(data)] = data
        self._memory[:8] = number.to_bytes(8, "little")

    def clear(self) -> None:
        """Forget all of them."""
        self._numbers = count(1)
        self._memory[:8] = bytes(8)

    def calls(self) -> tuple[str, ...]:
        """Return them, the last at the end; what a plugin has overwritten comes as it is."""
        last = int.from_bytes(self._memory[:8], "little")
        first = max(1, last - _CALLS + 1)
        return tuple(self._call(number) for number in range(first, last + 1)[:_CALLS])

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    def _call(self, number: int) -> str:
        start = _SLOT + number % _CALLS * _SLOT
        length = int.from_bytes(self._memory[start : start + _LENGTH], "little")
        return self._memory[start + _LENGTH : start + _LENGTH + length].decode("utf-8", "replace")
