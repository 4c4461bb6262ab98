"""The process that watches over children in which plugins run: one job after the other."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.processes.child_pipes import AbandonedError
from modular_tf.processes.descendants import adopt_orphans, children

if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[dict[str, Any]], None]
    """Sends an entry to the application."""


def watch_over(descriptor: int, work: Callable[[dict[str, Any], Tell, int], None]) -> None:
    """Do the jobs that arrive on a socket until its other end is closed.

    Each line that arrives is a job, each line that is sent an entry, both JSON objects (`Lane`).
    This process is the reaper of all that plugins start.

    Args:
        descriptor: The socket's.
        work: Does a job; it is given the job, what sends an entry, and a descriptor that becomes
            readable when nobody waits any more. An `AbandonedError` ends the loop.
    """
    adopt_orphans()
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as lines:

        def tell(entry: dict[str, Any]) -> None:
            connection.sendall(json.dumps(entry).encode() + b"\n")

        with suppress(AbandonedError, OSError):  # nobody waits any more
            for line in lines:
                work(json.loads(line), tell, connection.fileno())
                if children(os.getpid()):
                    return  # one cannot be ended: the next job gets a watcher without it
