"""The lock of a service, and whether the service is open."""

from __future__ import annotations

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import ClosedError


class ServiceLock(ForkLock):  # type: ignore[misc]
    """Lets one thread at a time have what a service knows, as often as it asks. [any thread]

    What runs under it may load plugins, whose code may hang.

    Attributes:
        closed: Whether the service is. Set under the lock.
    """

    __slots__ = ("closed",)

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def check_open(self) -> None:
        """Refuse work for a service that has ended.

        Raises:
            ClosedError: It has.
        """
        if self.closed:
            raise ClosedError("the plugin service is closed")
