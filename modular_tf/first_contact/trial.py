"""The trial of one plugin, in the watcher: it starts the child and watches it."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from modular_tf.first_contact.child import run
from modular_tf.first_contact.child_entries import (
    Entered,
    Fault,
    Finished,
    Lost,
    Stops,
    read_entry,
)
from modular_tf.first_contact.journal import THREAD_END
from modular_tf.first_contact.verdict import Ending, finding_of
from modular_tf.processes.descendants import children, living_descendants
from modular_tf.processes.memory_use import MemoryUse, memory_use
from modular_tf.processes.plain_text import MOST_OF_LAST_WORDS
from modular_tf.processes.watched_child import LOOK_EVERY_S, WatchedChild
from modular_tf.rules.first_contact import CALLS_RETURN, MEMORY_BOUNDED, NO_PROCESSES_LEFT

if TYPE_CHECKING:
    from modular_tf.first_contact.finding import Finding
    from modular_tf.first_contact.limits import Limits
    from modular_tf.loading.task import Task
    from modular_tf.rules import Rule

_TIME_TO_LEAVE_S = 0.25  # for processes that are about to end by themselves


class Trial:
    """A child process that tries one plugin, and the processes that it started.

    The descriptor `listener` becomes readable when nobody waits for the finding any more. Raises
    `OSError` if no process can be started.
    """

    def __init__(self, task: Task, limits: Limits, listener: int) -> None:
        self._task = task
        self._limits = limits
        self._ending = Ending()
        self._printed = b""
        self._base = memory_use("self")
        self._files = self._base.files
        self._child = WatchedChild(
            partial(run, task, limits),
            self._take_entry,
            listener,
            self._ending,
            seconds=limits.seconds,
            most_said=MOST_OF_LAST_WORDS,
            take_output=self._take_output,
            prompt=False,
        )
        self._next_look = time.monotonic() + LOOK_EVERY_S

    # -- the watch ------------------------------------------------------------------------------

    def finding(self) -> Finding:
        """Wait for the end, kill the processes that are left, and return the finding.

        Raises `AbandonedError` if nobody waits for the finding any more; all processes were killed.
        """
        try:
            while not self._child.is_over():
                self._child.listen()
                if time.monotonic() >= self._next_look:
                    self._look_at_memory()
                    self._look_at_processes()
                    self._next_look = time.monotonic() + LOOK_EVERY_S
            self._child.read_on()  # it may have reported and ended at once
            if self._ending.outcome is not None:
                self._wait_for_ending_processes()
        finally:
            peak = self._child.end((self._task.file, *self._task.companions))
        self._note_memory(peak - self._files - self._base.touched)
        ending = self._ending
        ending.printed = self._printed.decode("utf-8", "replace")
        if self._child.is_late or ending.stopped_by is not None:
            ending.killed_for = CALLS_RETURN
        return finding_of(ending, self._limits)

    def _end_for(self, broken: Rule) -> None:
        if not self._child.was_asked:
            self._ending.killed_for = broken
            self._child.ask()

    def _look_at_memory(self) -> None:
        used = memory_use(self._child.pid)
        self._child.read_on()  # which has the call that took the memory
        self._note_use(used)
        if self._ending.exceeded_in is not None and MEMORY_BOUNDED not in self._limits.accept:
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
        if self._child.was_asked:
            return
        running = self._other_processes()
        if len(running) > self._limits.processes:
            self._ending.processes = len(running)
            self._end_for(NO_PROCESSES_LEFT)
        for pid in running:
            self._note_use(memory_use(pid))

    def _other_processes(self) -> list[int]:
        own = self._child.pid
        if self._child.has_ended() and children(os.getpid()) == [own]:
            return []
        most = self._limits.processes + 1
        return [pid for pid in living_descendants(os.getpid(), most) if pid != own]

    def _wait_for_ending_processes(self) -> None:
        patience = time.monotonic() + _TIME_TO_LEAVE_S
        while not self._child.has_ended() and time.monotonic() < patience:
            self._child.listen()
        while (left := self._other_processes()) and time.monotonic() < patience:
            time.sleep(0.005)
        self._ending.processes = len(left)

    # -- the report -----------------------------------------------------------------------------

    def _take_entry(self, entry: dict[str, Any]) -> None:
        ending = self._ending
        match read_entry(entry):
            case Entered(call, memory):
                self._note_use(memory)  # of the call before
                ending.entered = call
                ending.is_open |= call == THREAD_END
            case Finished(outcome, memory):
                ending.outcome = outcome
                self._note_use(memory)
            case Stops():
                ending.stops = True
            case Lost(streams):
                ending.lost = streams
            case Fault(text, is_scarce):
                ending.fault, ending.scarce = text, is_scarce

    def _take_output(self, data: bytes) -> None:
        self._printed = (self._printed + data)[:MOST_OF_LAST_WORDS]
