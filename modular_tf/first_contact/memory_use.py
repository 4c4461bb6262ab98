"""How much memory a process has: what it has touched, and what it may write to without asking.

Address space that is reserved without access (PROT_NONE), as drivers of large devices do, is
neither.
"""

from __future__ import annotations

import os
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGE_SIZE")
_RESIDENT, _DATA = 1, 5  # fields of statm, in pages


class MemoryUse(NamedTuple):
    """Of one process, in bytes.

    Attributes:
        resident: Touched, of whatever kind.
        data: Private and writable, touched or not.
    """

    resident: int
    data: int

    @property
    def most(self) -> int:
        """The larger of the two."""
        return max(self)


def memory_use(pid: int | str) -> MemoryUse:
    """Return what a process has now; nothing where it has ended.

    Args:
        pid: Its id, or `self`.
    """
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            fields = statm.read().split()
    except OSError:
        return MemoryUse(0, 0)
    return MemoryUse(*(int(fields[index]) * _PAGE for index in (_RESIDENT, _DATA)))


def own_data() -> int:
    """Return the `data` of this process."""
    return memory_use("self").data
