"""Many threads that load the same libraries at once, each in a service of its own."""

from __future__ import annotations

from tests.coexistence.conftest import WORK

_TOGETHER = (
    WORK
    + """
import threading
from concurrent.futures import ThreadPoolExecutor
def together(task, count):
    barrier = threading.Barrier(count)
    def begin(number):
        barrier.wait(60)
        return task(number)
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))
"""
)
