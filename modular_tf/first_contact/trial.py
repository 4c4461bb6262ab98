"""A plugin in a child process, as the process that watches over it sees it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.first_contact.backtrace import readable_frames
from modular_tf.first_contact.child import run
from modular_tf.first_contact.child_entries import (
    Entered,
    Exits,
    Fault,
    Finished,
    Frame,
    Lost,
    Signalled,
    Stops,
    Traced,
    read_entry,
)
from modular_tf.first_contact.child_pipes import ChildPipes, EntryReader, has_ended, stopped_by
from modular_tf.first_contact.descendants import children, end_all, living_descendants
from modular_tf.first_contact.finding import MOST_FRAMES
from modular_tf.first_contact.memory_use import MemoryUse, memory_use
from modular_tf.first_contact.plain_text import MOST_OF_LAST_WORDS
from modular_tf.first_contact.verdict import Ending, finding_of
from modular_tf.native.crash_report import QUESTION
from modular_tf.rules.first_contact import CALLS_RETURN, MEMORY_BOUNDED, NO_PROCESSES_LEFT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.first_contact.finding import Finding
    from modular_tf.first_contact.limits import Limits
    from modular_tf.first_contact.task import Task
    from modular_tf.rules import Rule

_LOOK_EVERY_S = 0.01
_TIME_TO_ANSWER_S = 2.0  # where it is, or where it crashed
_TIME_TO_LEAVE_S = 0.25  # for processes that are about to end by themselves


class Trial:
    """A child process that tries one plugin, and all that it started.

    Args:
        task: What to try.
        limits: What it may take.
        listener: A descriptor that becomes readable when nobody waits any more.

    Raises:
        OSError: No process can be started.
    """

    def __init__(self, task: Task, limits: Limits, listener: int) -> None:
        self._task = task
        self._limits = limits
        self._ending = Ending()
        self._deadline = time.monotonic() + limits.seconds
        self._said = b""
        self._printed = b""
        self._frames: list[Any] = []
        self._traced = False
        self._hurries = False
        self._base = memory_use("self")
        self._files = self._base.files
        streams = (self._take_output, self._take_complaint)
        report = EntryReader(self._take_entry)
        self._pipes = ChildPipes(streams, report, listener, prompt=False)
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        self._pid = self._pipes.fork(self._live)

    def _live(self, ends: Sequence[int], parent: int) -> NoReturn:
        """Be the child."""
        output, complaint, report = ends
        run(self._task, self._limits, streams=(output, complaint, report), parent=parent)

    # -- the watch ------------------------------------------------------------------------------

    def finding(self) -> Finding:
        """Wait for the end, end what is left, and return what was found.

        Raises:
            AbandonedError: Nobody waits any more; all has been ended.
        """
        try:
            while not self._is_over():
                self._pipes.listen(_LOOK_EVERY_S)
                if time.monotonic() >= self._next_look:
                    self._look_at_memory()
                    self._look_at_processes()
                    self._next_look = time.monotonic() + _LOOK_EVERY_S
            self._pipes.read_on()  # it may have reported and ended at once
            if self._ending.outcome is not None:
                self._wait_for_leavers()
        finally:
            ended = end_all(self._pid)
            self._pipes.read_on()
            self._pipes.close()
        self._ending.status = ended.status
        self._note_memory(ended.peak - self._files - self._base.touched)
        return self._conclude()

    def _is_over(self) -> bool:
        ending = self._ending
        if ending.outcome is not None or has_ended(self._pid):
            return True
        if ending.killed_for is None and (number := stopped_by(self._pid)) is not None:
            ending.killed_for, ending.stopped_by = CALLS_RETURN, number
            return True
        if time.monotonic() < self._deadline:
            return ending.killed_for is not None and self._traced
        if ending.killed_for is None and ending.signal is None and ending.exits is None:
            self._end_for(CALLS_RETURN)
            return False
        return True

    def _end_for(self, broken: Rule) -> None:
        """Ask the process where it is; it is ended when it has answered, or soon."""
        self._ending.killed_for = broken
        self._hurry()
        os.kill(self._pid, QUESTION)  # nobody has waited for it, so the number is still its own

    def _hurry(self) -> None:
        """Set the time for its last words, once: a plugin might write them for ever."""
        if not self._hurries:
            self._deadline = min(time.monotonic(), self._deadline) + _TIME_TO_ANSWER_S
            self._hurries = True

    def _look_at_memory(self) -> None:
        used = memory_use(self._pid)
        self._pipes.read_on()  # in which call it took that was told before
        self._note_use(used)
        if self._ending.exceeded_in is None or MEMORY_BOUNDED in self._limits.accept:
            return
        if self._ending.killed_for is None:
            self._end_for(MEMORY_BOUNDED)

    def _note_use(self, used: MemoryUse) -> None:
        self._files = max(self._files, used.files)
        self._note_memory(used.beyond(self._base))

    def _note_memory(self, size: int) -> None:
        ending = self._ending
        ending.memory = max(ending.memory, size)
        if ending.exceeded_in is None and ending.memory > self._limits.memory_mib << 20:
            ending.exceeded_in = ending.entered

    def _look_at_processes(self) -> None:
        if self._ending.killed_for is not None:
            return
        running = self._strays()
        if len(running) > self._limits.processes:
            self._ending.processes = len(running)
            self._end_for(NO_PROCESSES_LEFT)
        for pid in running:
            self._note_use(memory_use(pid))

    def _strays(self) -> list[int]:
        if has_ended(self._pid) and children(os.getpid()) == [self._pid]:
            return []
        most = self._limits.processes + 1
        return [pid for pid in living_descendants(os.getpid(), most) if pid != self._pid]

    def _wait_for_leavers(self) -> None:
        patience = time.monotonic() + _TIME_TO_LEAVE_S
        while not has_ended(self._pid) and time.monotonic() < patience:
            self._pipes.listen(_LOOK_EVERY_S)
        while (left := self._strays()) and time.monotonic() < patience:
            time.sleep(0.005)
        self._ending.processes = len(left)

    # -- the report -----------------------------------------------------------------------------

    def _take_entry(self, entry: dict[str, Any]) -> None:
        ending = self._ending
        match read_entry(entry):
            case Entered(call, memory):
                self._note_use(memory)  # of the call before
                ending.entered = call
            case Finished(outcome, memory):
                ending.outcome = outcome
                self._note_use(memory)
            case Signalled(number, errno, is_overflow):
                ending.signal, ending.errno, ending.overflow = number, errno, is_overflow
                self._hurry()
            case Exits(status):
                ending.exits = status
                self._hurry()
            case Frame(told) if len(self._frames) < MOST_FRAMES:
                self._frames.append(told)
            case Traced():
                self._traced = True
            case Stops():
                ending.stops = True
            case Lost(streams):
                ending.lost = streams
            case Fault(text, is_scarce):
                ending.fault, ending.scarce = text, is_scarce

    def _take_output(self, data: bytes) -> None:
        self._printed = (self._printed + data)[:MOST_OF_LAST_WORDS]
        self._take_complaint(data)

    def _take_complaint(self, data: bytes) -> None:
        self._said = (self._said + data)[-MOST_OF_LAST_WORDS:]

    # -- the end --------------------------------------------------------------------------------

    def _conclude(self) -> Finding:
        ending = self._ending
        ending.said = self._said.decode("utf-8", "replace")
        ending.printed = self._printed.decode("utf-8", "replace")
        files = (self._task.file, *self._task.companions)
        ending.backtrace = readable_frames(self._frames, files)
        return finding_of(ending, self._limits)
