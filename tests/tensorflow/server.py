"""Runs in a child: imports TensorFlow once, and runs each program in a fork of this process.

The import takes seconds and leaves no thread, so a fork is as good as a process that has just
imported it. Reads a JSON object per line and answers each with two lines: the number of the fork,
and its exit status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

import tensorflow as tf  # noqa: F401  (for the programs)


def _become(job: dict[str, Any]) -> None:
    """Make this fork the process of a job."""
    os.setsid()
    written = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    places = (os.devnull, os.O_RDONLY), (job["stdout"], written), (job["stderr"], written)
    for descriptor, (path, flags) in enumerate(places):
        opened = os.open(path, flags)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.path[0] = job["folder"]
    for place in reversed(job["environment"].get("PYTHONPATH", "").split(os.pathsep)):
        if place not in sys.path:
            sys.path.insert(1, place)
    sys.argv[:] = ["program", *job["arguments"]]


def _wait_for(fork: int) -> int:
    """Return the exit status of a fork that has ended; nothing that it started is left."""
    os.waitid(os.P_PID, fork, os.WEXITED | os.WNOWAIT)
    with suppress(ProcessLookupError):
        os.killpg(fork, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])


def _next_job() -> dict[str, Any]:
    """Answer until the input ends, but in a fork return what it has to do."""
    for line in sys.stdin:
        job: dict[str, Any] = json.loads(line)
        fork = os.fork()
        if fork == 0:
            _become(job)
            return job
        os.write(1, b"%d\n" % fork)
        os.write(1, b"%d\n" % _wait_for(fork))
    return {"program": ""}


_program = _next_job()["program"]
# It is the rest of this file, so that it ends as scripts do.
exec(compile(_program, "program", "exec", dont_inherit=True))
