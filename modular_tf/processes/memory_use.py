"""How much memory a process has touched, and how much it has allocated.

Neither address space that is reserved without access (PROT_NONE), as drivers of large devices do,
nor the pages of files count, nor the stacks of threads, of which a pool may have one per processor.
"""

from __future__ import annotations

import os
import resource
from typing import Annotated, NamedTuple

from modular_tf.codec import between, row
from modular_tf.processes.descendants import stat_of

_PAGE = os.sysconf("SC_PAGE_SIZE")
_RESIDENT, _SHARED, _DATA = 1, 2, 5  # fields of statm, in pages
_THREADS = 17  # of `stat_of`
_STACK_WITHOUT_LIMIT = 2 << 20  # what glibc gives a thread then
_SIGNAL_STACK = 64 << 10  # as native/signal_stacks has it


_Bytes = Annotated[int, between(-(1 << 62), 1 << 62)]


@row
class MemoryUse(NamedTuple):
    """Of one process, in bytes."""

    touched: _Bytes  # its own memory that exists
    allocated: _Bytes  # private and writable, touched or not
    files: _Bytes  # of files, and shared with others

    def beyond(self, other: MemoryUse) -> int:
        """Return how much more it is, by what differs most, without files."""
        return max(self.touched - other.touched, self.allocated - other.allocated)


def memory_use(pid: int | str) -> MemoryUse:
    """Return what a process (`self` for this one) has now; nothing where it has ended."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            fields = [int(field) * _PAGE for field in statm.read().split()]
        threads = int(stat_of(pid)[_THREADS])
    except (OSError, IndexError):
        return MemoryUse(0, 0, 0)
    # The C library keeps the stack of a thread that ended, as of the one that opened a plugin.
    stacks = max(threads - 1, 1) * stack_size() + (threads - 1) * _SIGNAL_STACK
    files = fields[_SHARED]
    return MemoryUse(fields[_RESIDENT] - files, fields[_DATA] - stacks, files)


def stack_size() -> int:
    """Return how much address space a thread's stack takes, unless its maker says otherwise."""
    limit, _ = resource.getrlimit(resource.RLIMIT_STACK)
    return _STACK_WITHOUT_LIMIT if limit == resource.RLIM_INFINITY else limit
