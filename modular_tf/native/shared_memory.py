"""Memory that a process and those that it forks see alike, also when one of them is gone."""

from __future__ import annotations

import mmap


def shared_memory(n_bytes: int) -> mmap.mmap:
    """Return zeroed bytes that forks of this process share; `close` gives them back.

    `OSError` if there are not so many.
    """
    return mmap.mmap(-1, n_bytes, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
