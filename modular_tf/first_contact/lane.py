"""The application's end of the way to one watcher."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from modular_tf.first_contact.finding import Finding

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from modular_tf.first_contact.task import Task

_AT_ONCE = 1 << 16
_LONGEST_FINDING = 4 << 20


class Lane:
    """A watcher, and the tasks that it has now.

    Attributes:
        connection: The socket to it.
        numbers: The tasks', none where it waits for some.
        deadline: When it should have answered, by the monotonic clock.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.numbers: tuple[int, ...] = ()
        self.deadline = 0.0
        self._received = b""

    def give(self, numbers: tuple[int, ...], tasks: Sequence[Task], seconds: float) -> None:
        """Hand tasks over, to be tried in one process.

        Raises:
            OSError: The watcher is gone.
        """
        self.numbers = numbers
        self.deadline = time.monotonic() + seconds
        self.connection.sendall(json.dumps([task.as_dict() for task in tasks]).encode() + b"\n")

    def receive(self) -> list[Finding] | None:
        """Return the findings if their last byte has come, None before that.

        There are none where something was amiss in a group.

        Raises:
            EOFError: The watcher is gone.
            ValueError: What came are no findings of its tasks.
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
        answer = json.loads(line)
        expected = {len(self.numbers)} | ({0} if len(self.numbers) > 1 else set())
        if not isinstance(answer, list) or len(answer) not in expected:
            raise ValueError(f"expected {len(self.numbers)} findings, found {answer!r:.200}")
        return [Finding.from_dict(finding) for finding in answer]
