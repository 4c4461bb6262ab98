"""The process that watches over one worker: forks it, hands over its socket, reports its end."""

from __future__ import annotations

import math
import os
import socket
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.isolation.child import run
from modular_tf.isolation.job import Job
from modular_tf.processes.child_pipes import AbandonedError
from modular_tf.processes.descendants import living_descendants
from modular_tf.processes.ending import ChildEnding
from modular_tf.processes.plain_text import MOST_OF_LAST_WORDS
from modular_tf.processes.signal_names import signal_in_full
from modular_tf.processes.watched_child import WatchedChild, watch_over

if TYPE_CHECKING:
    from modular_tf.processes.watched_child import Tell

READY, OFFER, ENDED = "ready", "offer", "ended"
"""What the application is told: the watcher waits for the socket; the worker's offer; its end."""
ASK = b"?"
"""What the application sends for the worker to be ended, and asked where it is."""
_WAKE_EVERY_S = 1.0
_MOST_PROCESSES = 512  # of a worker, with itself


def watch_over_worker(descriptor: int) -> None:
    """Run the worker whose job arrives on a socket until it ends, or the application is gone."""
    watch_over(descriptor, _work)


def _work(job: dict[str, Any], tell: Tell, listener: int) -> None:
    tell({READY: os.getpid()})
    control = _socket_from(listener)
    work = Job.from_dict(job)
    ending = ChildEnding()
    task = work.task
    offers: list[Any] = []

    def take(entry: dict[str, Any]) -> None:
        offer = entry[OFFER]
        if not offers:  # a plugin may write any number
            offers.append(offer)
            tell({OFFER: offer})

    try:
        child = WatchedChild(
            partial(run, work, control),
            take,
            listener,
            ending,
            seconds=math.inf,
            most_said=MOST_OF_LAST_WORDS,
        )
    except OSError as error:
        tell({ENDED: {"words": f"could not be started: {error}", "frames": [], "said": ""}})
        return
    finally:
        os.close(control)
    processes = 0
    try:
        processes = _watch(child, listener)
    finally:
        child.end((task.file, *task.companions))
    if processes:
        words = f"had more than {_MOST_PROCESSES} processes and was ended"
    elif ending.stopped_by is not None:
        words = f"was stopped by {signal_in_full(ending.stopped_by)} and ended"
    else:
        words = ending.in_words()
    told = {"words": words, "frames": list(ending.backtrace), "said": ending.said}
    tell({ENDED: {**told, "pid": child.pid}})


def _watch(child: WatchedChild, listener: int) -> int:
    """Wait until the worker is to be ended; return how many processes are too many, else 0."""
    next_look = 0.0
    while not child.is_over():
        try:
            child.listen(_WAKE_EVERY_S)
        except AbandonedError:
            if not _is_asked(listener):
                raise
            child.ask()
        if time.monotonic() >= next_look:  # not each time that it writes something
            processes = len(living_descendants(os.getpid(), _MOST_PROCESSES))
            if processes > _MOST_PROCESSES:
                return processes
            next_look = time.monotonic() + _WAKE_EVERY_S
    return 0


def _socket_from(listener: int) -> int:
    """Return the descriptor that the application sends now."""
    with socket.socket(fileno=os.dup(listener)) as connection:
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    if not descriptors:
        raise AbandonedError
    return descriptors[0]


def _is_asked(listener: int) -> bool:
    """Return whether the application asks for the worker's end; it is gone otherwise."""
    with socket.socket(fileno=os.dup(listener)) as connection, suppress(OSError):
        return connection.recv(1, socket.MSG_DONTWAIT) == ASK
    return False
