"""The last calls to a plugin, in memory that outlives the process that made them.

A call costs a copy of its text and nothing else: a write to a pipe for each would slow down the
checks that call much, and the last words of a process that is killed would be lost in it.
"""

from __future__ import annotations

import struct
import threading
from itertools import count
from typing import NamedTuple

from modular_tf.native.shared_memory import shared_memory

_CALLS = 32
_THREADS = 64
_SLOT = 512
_NUMBER = struct.Struct("<Q")
_ABOUT = struct.Struct("<QQH")  # number, thread, bytes of text
_MOST_BYTES = _SLOT - _ABOUT.size


class _Call(NamedTuple):
    number: int
    thread: int
    text: str


class CallLog:
    """Holds the last calls; a fork writes them, and the process that made it reads them.

    Each call has a slot with its number in it, which it shares with no call of another thread. The
    last call of each thread has one more, which lasts while others go on calling.
    """

    def __init__(self) -> None:
        self._memory = shared_memory((_CALLS + _THREADS) * _SLOT)
        self._numbers = count(1)
        self._threads: dict[int, int] = {}
        self._slots = count()

    def add(self, call: str) -> None:
        """Write down a call that the calling thread makes next. [any thread]"""
        data = call.encode("utf-8", "surrogateescape")[:_MOST_BYTES]
        number, thread = next(self._numbers), threading.get_native_id()
        if thread not in self._threads:
            self._threads[thread] = _CALLS + next(self._slots) % _THREADS
        about = _ABOUT.pack(number, thread, len(data))
        for slot in (self._threads[thread], number % _CALLS):
            start = slot * _SLOT
            text = start + _ABOUT.size
            self._memory[start : start + _NUMBER.size] = bytes(_NUMBER.size)
            self._memory[text : text + len(data)] = data
            self._memory[start : start + _ABOUT.size] = about

    def clear(self) -> None:
        """Forget all of them."""
        self._numbers = count(1)
        for start in range(0, len(self._memory), _SLOT):
            self._memory[start : start + _NUMBER.size] = bytes(_NUMBER.size)

    def calls(self, thread: int | None = None) -> tuple[str, ...]:
        """Return them, the last at the end; what a plugin has overwritten comes as it is.

        Args:
            thread: The thread that was lost, as the kernel counts threads: its last call comes
                last, whatever other threads have called since. None where that is not known.
        """
        calls = sorted(filter(None, map(self._call, range(_CALLS))))
        of_threads = filter(None, map(self._call, range(_CALLS, _CALLS + _THREADS)))
        for lost in sorted(call for call in of_threads if call.thread == thread)[-1:]:
            calls = [*(call for call in calls if call != lost), lost]
        return tuple(call.text for call in calls[-_CALLS:])

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()

    def _call(self, slot: int) -> _Call | None:
        start = slot * _SLOT
        number, thread, length = _ABOUT.unpack(self._memory[start : start + _ABOUT.size])
        if number == 0:
            return None
        text = start + _ABOUT.size
        data = self._memory[text : text + min(length, _MOST_BYTES)]
        return _Call(number, thread, data.decode("utf-8", "replace"))
