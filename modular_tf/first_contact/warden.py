"""The process that watches over trials: one after the other, as it is told on a socket.

Each line that it is sent is a task, each line that it answers the finding, both in JSON. It is the
reaper of all that plugins start, and ends with the process that made it.
"""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

from modular_tf.first_contact.child_pipes import AbandonedError
from modular_tf.first_contact.descendants import adopt_orphans, children
from modular_tf.first_contact.task import Task
from modular_tf.first_contact.trial import Trial
from modular_tf.first_contact.verdict import cannot_try

if TYPE_CHECKING:
    from modular_tf.first_contact.finding import Finding
    from modular_tf.first_contact.limits import Limits


def watch_over_trials(descriptor: int, limits: Limits) -> None:
    """Try what is asked for on a socket until the other end is closed."""
    adopt_orphans()
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rb") as lines:
        for line in lines:
            task = Task.from_dict(json.loads(line))
            try:
                finding = _try(task, limits, connection.fileno())
            except AbandonedError:
                task.witness()
                return
            connection.sendall(json.dumps(finding.as_dict()).encode() + b"\n")
            if children(os.getpid()):
                return  # somebody would not end: whoever comes next gets a watcher without them


def _try(task: Task, limits: Limits, listener: int) -> Finding:
    try:
        trial = Trial(task, limits, listener)
    except OSError as error:
        return cannot_try(f"no process can be started: {error}")
    return trial.finding()
