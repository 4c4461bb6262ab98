"""The lock of a service, and whether the service is open."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from modular_tf.errors import ClosedError

if TYPE_CHECKING:
    from collections.abc import Iterator


class ServiceLock:
    """Lets one thread at a time have what a service knows, as often as it asks. [any thread]

    What runs under it may load plugins, whose code may hang.

    Attributes:
        closed: Whether the service is. Set under the lock.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.closed = False

    def check_open(self) -> None:
        """Refuse work for a service that has ended.

        Raises:
            ClosedError: It has.
        """
        if self.closed:
            raise ClosedError("the plugin service is closed")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it, whether the service is open or not."""
        with self._lock:
            yield

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Hold it, with the service open.

        Raises:
            ClosedError: The service is closed.
        """
        with self._lock:
            self.check_open()
            yield

    @contextmanager
    def held_in_time(self, timeout_s: float) -> Iterator[bool]:
        """Hold it if it can be had soon, and tell whether it could."""
        lock = self._lock
        is_held = lock.acquire(timeout=timeout_s)
        try:
            yield is_held
        finally:
            if is_held:
                lock.release()

    def after_fork_in_child(self) -> None:
        """Be free: the thread that held it in the parent is not here, or lets go of the old one."""
        self._lock = threading.RLock()
