"""A child in which a plugin runs, as its watcher sees it; and the jobs of a watcher."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.native.crash_report import QUESTION
from modular_tf.processes.backtrace import readable_frames
from modular_tf.processes.child_pipes import (
    AbandonedError,
    ChildPipes,
    EntryReader,
    has_ended,
    stop_of,
)
from modular_tf.processes.descendants import adopt_orphans, children, end_all, signal_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from modular_tf.processes.ending import ChildEnding

    Tell = Callable[[dict[str, Any]], None]
    """Sends an entry to the application."""

LOOK_EVERY_S = 0.01
_TIME_TO_ANSWER_S = 2.0  # with its stack, when it was asked or has crashed


class WatchedChild:
    """A child, its time, its report, and all that it started.

    The process is to be the reaper of its descendants (`adopt_orphans`). `ending` is complete when
    `end` has returned. `was_asked` means that the child was asked for its stack and is to be ended,
    `is_late` that this happened as its time was up.

    Args:
        live: What the child does, given the descriptors of standard output, of standard error and
            of its report, and the number of this process.
        take: Is given each entry of the report but those of the native core; refuses what is no
            entry by a ValueError, TypeError or KeyError.
        listener: A descriptor that becomes readable when nobody waits any more.
        ending: Is filled.
        seconds: The time that it has.
        most_said: How many bytes of what it writes are stored, the last.
        take_output: Is given what it writes to standard output.
        prompt: As of `ChildPipes`.
    """

    def __init__(
        self,
        live: Callable[[Sequence[int], int], NoReturn],
        take: Callable[[dict[str, Any]], None],
        listener: int,
        ending: ChildEnding,
        *,
        seconds: float,
        most_said: int,
        take_output: Callable[[bytes], None] | None = None,
        prompt: bool = True,
    ) -> None:
        self.ending = ending
        self.was_asked = self.is_late = False
        self._take = take
        self._take_output = take_output
        self._said = b""
        self._most_said = most_said
        self._hurries = False
        self.give_time(seconds)
        streams = (self._take_from_output, self._take_words)
        report = EntryReader(self._take_entry)
        self._pipes = ChildPipes(streams, report, listener, prompt=prompt)
        self.pid = self._pipes.fork(live)

    def give_time(self, seconds: float) -> None:
        """Let it have some seconds from now on, unless it is ending."""
        if not self._hurries:
            self._deadline = time.monotonic() + seconds

    def listen(self, seconds: float = LOOK_EVERY_S) -> None:
        """Wait for a moment, and take what has come; raises as `ChildPipes.listen`."""
        self._pipes.listen(seconds)

    def read_on(self) -> None:
        """Take what has come, without waiting."""
        self._pipes.read_on()

    def has_ended(self) -> bool:
        """Return whether it has ended; its number stays its own until `end`."""
        return has_ended(self.pid)

    def is_over(self) -> bool:
        """Return whether to wait no longer: it has ended, was stopped, or has had its time.

        Where its time is up, it is asked first for its stack, and gets a moment to answer.
        """
        if self.has_ended():
            return True
        if not self.was_asked and (stop := stop_of(self.pid)) is not None:
            self.ending.stopped_by, self.ending.has_tracer = stop
            return True
        if time.monotonic() < self._deadline:
            return self.was_asked and self.ending.is_traced
        if self.was_asked or self.ending.is_told:
            return True
        self.is_late = True
        self.ask()
        return False

    def ask(self) -> None:
        """Ask it for its stack; it is over when it has answered, or soon."""
        self.was_asked = True
        self._hurry()
        signal_child(self.pid, QUESTION)  # nobody has waited for it, so the number is still its own

    def _hurry(self) -> None:
        """Limit the time for its last output, once: a plugin might write for ever."""
        if not self._hurries:
            self._deadline = min(time.monotonic(), self._deadline) + _TIME_TO_ANSWER_S
            self._hurries = True

    def end(self, files: Iterable[str]) -> int:
        """End it and all that it has started; return the most memory that it touched."""
        ended = end_all(self.pid)
        self._pipes.read_on()
        self._pipes.close()
        self.ending.status = ended.status
        self.ending.said = self._said.decode("utf-8", "replace")
        self.ending.backtrace = readable_frames(self.ending.frames, files)
        return ended.peak

    def _take_from_output(self, data: bytes) -> None:
        if self._take_output is not None:
            self._take_output(data)
        self._take_words(data)

    def _take_words(self, data: bytes) -> None:
        self._said = (self._said + data)[-self._most_said :]

    def _take_entry(self, entry: dict[str, Any]) -> None:
        if not self.ending.take(entry):
            self._take(entry)
        elif self.ending.is_told:
            self._hurry()


def watch_over(descriptor: int, work: Callable[[dict[str, Any], Tell, int], None]) -> None:
    """Do the jobs that arrive on a socket until its other end is closed.

    Each line that arrives is a job, each line that is sent an entry, both JSON objects (`Lane`).
    This process is the reaper of all that plugins start. `work` is given the job, a function that
    sends an entry, and a descriptor that becomes readable when nobody waits any more.
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
