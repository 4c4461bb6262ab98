"""The application's end of the way to one watcher."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.isolation.ending import ended_watcher
from modular_tf.check.outcome import Outcome

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from modular_tf.check.isolation.job import Job

_AT_ONCE = 1 << 16


class CheckFaultError(RuntimeError):
    """A check, or the kit, failed by itself, so nothing can be said of the plugin.

    Attributes:
        check_id: The check, None where it was none.
        subject: What it was tried on.
        text: What happened, mostly a traceback.
    """

    def __init__(self, check_id: str | None, subject: str, text: str) -> None:
        super().__init__(f"check {check_id or 'of none'} on {subject or 'the library'}: {text}")
        self.check_id = check_id
        self.subject = subject
        self.text = text


class Lane:
    """A watcher, and the job that it has now.

    Attributes:
        connection: The socket to it.
        number: The job's among all, None where it waits for one.
        job: The job, as far as it was given.
        outcomes: What has become of its checks so far.
        heard: Whether the watcher has said anything of the job.
        fault: How the kit failed at it, None where it did not.

    Args:
        connection: The socket.
        tell: Is given each outcome of a job.
    """

    def __init__(self, connection: socket.socket, tell: Callable[[Outcome], None]) -> None:
        self.connection = connection
        self.number: int | None = None
        self.job: Job | None = None
        self.outcomes: list[Outcome] = []
        self.heard = False
        self.fault: CheckFaultError | None = None
        self._tell = tell
        self._received = b""

    def give(self, number: int, job: Job) -> None:
        """Hand a job over.

        Raises:
            OSError: The watcher is gone.
        """
        self.number, self.job, self.outcomes = number, job, []
        self.heard, self.fault = False, None
        self.connection.sendall(json.dumps(job.as_dict()).encode() + b"\n")

    def receive(self) -> bool:
        """Take what has come; tell whether the job is finished.

        Raises:
            EOFError: The watcher is gone.
        """
        try:
            data = self.connection.recv(_AT_ONCE)
        except ConnectionError:
            data = b""
        if not data:
            raise EOFError
        *lines, self._received = (self._received + data).split(b"\n")
        taken = [self._take(json.loads(line)) for line in lines]
        self.heard = self.heard or bool(taken)
        return any(taken)

    def blame(self) -> None:
        """Hold the loss of the watcher against the check that was under way."""
        if (left := self.left()) is not None:
            self._add(ended_watcher(left, left.checks[0]))

    def finish(self) -> None:
        """See to it that no check of the job, which is finished, is forgotten."""
        if (left := self.left()) is not None and self.fault is None:
            self.fault = CheckFaultError(left.checks[0], left.subject, "nothing became of it")

    def left(self) -> Job | None:
        """Return the job with the checks that nothing is known of, None where there are none."""
        if self.job is None or len(self.outcomes) == len(self.job.checks):
            return None
        return replace(self.job, checks=self.job.checks[len(self.outcomes) :])

    def _take(self, entry: dict[str, Any]) -> bool:
        match entry:
            case {"outcome": dict(value)}:
                self._add(Outcome.from_dict(value))
            case {"fault": str(text)}:
                subject = "" if self.job is None else self.job.subject
                self.fault = CheckFaultError(entry["check"], subject, text)
        return "finished" in entry

    def _add(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        self._tell(outcome)
