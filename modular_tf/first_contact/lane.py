"""The application's end of the way to one watcher."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from modular_tf.first_contact.finding import Finding

if TYPE_CHECKING:
    import socket

    from modular_tf.first_contact.task import Task

_AT_ONCE = 1 << 16
_LONGEST_FINDING = 8 << 20  # more than what is in bounds takes in JSON


class Lane:
    """A watcher, and the task that it has now.

    Attributes:
        connection: The socket to it.
        number: The task's, None where it waits for one.
        deadline: When it should have answered, by the monotonic clock.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.number: int | None = None
        self.deadline = 0.0
        self._received = b""

    @property
    def is_busy(self) -> bool:
        """Whether it has a task."""
        return self.number is not None

    def give(self, number: int, task: Task, seconds: float) -> None:
        """Hand a task over.

        Raises:
            OSError: The watcher is gone.
        """
        self.number = number
        self.deadline = time.monotonic() + seconds
        self.connection.sendall(json.dumps(task.as_dict()).encode() + b"\n")

    def receive(self) -> Finding | None:
        """Return the finding if its last byte has come, None before that.

        Raises:
            EOFError: The watcher is gone.
            ValueError: What came is no finding, or nobody has asked for one.
        """
        try:
            data = self.connection.recv(_AT_ONCE)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        self._received += data
        if len(self._received) > _LONGEST_FINDING:
            raise ValueError("a finding without end")
        if not self._received.endswith(b"\n"):
            return None
        line, self._received = self._received, b""
        if not self.is_busy:
            raise ValueError("an answer to no question")
        return Finding.from_dict(json.loads(line))
