"""The process that watches over groups of checks: one after the other, as it is told on a socket.

Each line that it is sent is a `Job` in JSON. It answers with what a `Passage` tells, one JSON
object a line, and `{"finished": 1}` as the last. It is the reaper of all that plugins start.
"""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.isolation.job import Job
from modular_tf.check.isolation.passage import Passage
from modular_tf.check.isolation.scratch import scratch_folder
from modular_tf.first_contact.child_pipes import AbandonedError
from modular_tf.first_contact.descendants import adopt_orphans, children

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.limits import Limits


def watch_over_checks(descriptor: int, *, limits: Limits, scratch: str) -> None:
    """Try what is asked for on a socket until the other end is closed.

    Args:
        descriptor: The socket's.
        limits: How long checks may take.
        scratch: The directory in which processes get one of their own.
    """
    adopt_orphans()
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as lines:

        def tell(entry: dict[str, Any]) -> None:
            connection.sendall(json.dumps(entry).encode() + b"\n")

        watch = _Watch(limits, scratch, tell, connection.fileno())
        with suppress(AbandonedError, OSError):  # nobody waits any more
            for line in lines:
                watch.over(Job.from_dict(json.loads(line)))
                tell({"finished": 1})
                if children(os.getpid()):
                    return  # somebody would not end: whoever comes next gets another watcher


class _Watch:
    def __init__(
        self, limits: Limits, scratch: str, tell: Callable[[dict[str, Any]], None], listener: int
    ) -> None:
        self._limits = limits
        self._scratch = scratch
        self._tell = tell
        self._listener = listener

    def over(self, job: Job) -> None:
        """Try all checks of a job, in as many processes as that takes."""
        left = job.checks
        while left:
            left = left[self._one_process(replace(job, checks=left)) :]

    def _one_process(self, job: Job) -> int:
        with scratch_folder(self._scratch) as folder:
            own = replace(job, target=replace(job.target, scratch=folder))
            try:
                passage = Passage(own, self._limits, self._tell, self._listener)
            except OSError as error:
                self._tell({"fault": f"no process can be started: {error}", "check": None})
                return len(job.checks)
            return passage.run()
