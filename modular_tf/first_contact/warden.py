"""The process that watches over trials: one after the other, as it is told on a socket.

Each line that it is sent is a list of tasks for one process, each line that it answers a list of
their findings, both in JSON; of a group in which something is amiss there are none. It is the
reaper of all that plugins start, and ends with the process that made it.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.first_contact.child_pipes import AbandonedError
from modular_tf.first_contact.descendants import adopt_orphans, children
from modular_tf.first_contact.task import Task
from modular_tf.first_contact.trial import Trial
from modular_tf.first_contact.verdict import cannot_try

if TYPE_CHECKING:
    from modular_tf.first_contact.finding import Finding
    from modular_tf.first_contact.limits import Limits

_SECONDS_OF_A_GROUP = 5.0


def watch_over_trials(descriptor: int, limits: Limits) -> None:
    """Try what is asked for on a socket until the other end is closed."""
    adopt_orphans()
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as lines:
        for line in lines:
            try:
                tasks = [Task.from_dict(task) for task in json.loads(line)]
                findings = _try(tasks, limits, connection.fileno())
            except AbandonedError:
                return
            answer = [finding.as_dict() for finding in findings]
            connection.sendall(json.dumps(answer).encode() + b"\n")
            if children(os.getpid()):
                return  # somebody would not end: whoever comes next gets a watcher without them


def _try(tasks: list[Task], limits: Limits, listener: int) -> list[Finding]:
    if len(tasks) > 1:
        # Who takes longer has its own time afterwards, and the others do not wait for that.
        limits = replace(limits, seconds=min(limits.seconds, _SECONDS_OF_A_GROUP))
    try:
        trial = Trial(tasks, limits, listener)
    except OSError as error:
        return [cannot_try(f"no process can be started: {error}") for _ in tasks]
    return [trial.finding()] if len(tasks) == 1 else trial.findings_of_group()
