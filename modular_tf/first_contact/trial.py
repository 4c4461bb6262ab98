"""Plugins in a child process, mostly one, as the process that watches over it sees it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.first_contact.backtrace import MOST_FRAMES, readable_frames
from modular_tf.first_contact.child import run
from modular_tf.first_contact.child_pipes import ChildPipes, EntryReader, has_ended
from modular_tf.first_contact.descendants import end_all, living_descendants
from modular_tf.first_contact.memory_use import MemoryUse, memory_use
from modular_tf.first_contact.plain_text import plain
from modular_tf.first_contact.verdict import Ending, finding_of, finding_of_outcome
from modular_tf.native.crash_report import QUESTION
from modular_tf.rules import loader_rules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.first_contact.finding import Finding
    from modular_tf.first_contact.limits import Limits
    from modular_tf.first_contact.task import Task

_MOST_SAID = 4096
_LOOK_EVERY_S = 0.01
_TIME_TO_ANSWER_S = 2.0  # where it is, or where it crashed
_TIME_TO_LEAVE_S = 0.25  # for processes that are about to end by themselves


class Trial:
    """A child process that tries one plugin, or a group, and all that it started.

    Args:
        tasks: What to try.
        limits: What it may take.
        listener: A descriptor that becomes readable when nobody waits any more.

    Raises:
        OSError: No process can be started.
    """

    def __init__(self, tasks: Sequence[Task], limits: Limits, listener: int) -> None:
        self._tasks = tasks
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
        takers = (self._take_output, self._take_complaint, EntryReader(self._take_entry))
        self._pipes = ChildPipes(takers, listener)
        self._next_look = time.monotonic() + _LOOK_EVERY_S
        self._pid = self._pipes.fork(self._live)

    def _live(self, ends: Sequence[int], parent: int) -> NoReturn:
        """Be the child."""
        output, complaint, report = ends
        run(self._tasks, self._limits, streams=(output, complaint, report), parent=parent)

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
            if self._ending.outcome is not None:
                self._wait_for_leavers()
        finally:
            ended = end_all(self._pid)
            self._pipes.read_the_rest()
            self._pipes.close()
        self._ending.status = ended.status
        self._note_memory(ended.peak - self._files - self._base.touched)
        return self._conclude()

    def findings_of_group(self) -> list[Finding]:
        """Wait as `finding` does; return a finding for each task, none where anything is amiss.

        Raises:
            AbandonedError: Nobody waits any more; all has been ended.
        """
        first, outcome = self.finding(), self._ending.outcome
        if outcome is None or first.incident is not None or first.notes_of_trial:
            return []
        findings = [first, *(finding_of_outcome(other) for other in outcome["others"])]
        # What one has opened, another may have wanted to open too.
        is_amiss = any(found.opened or not found.lasting for found in findings)
        return findings if len(findings) == len(self._tasks) and not is_amiss else []

    def _is_over(self) -> bool:
        ending = self._ending
        if ending.outcome is not None or has_ended(self._pid):
            return True
        if time.monotonic() < self._deadline:
            return ending.killed_for is not None and self._traced
        if ending.killed_for is None and ending.signal is None and ending.exits is None:
            self._end_for("LD-061")
            return False
        return True

    def _end_for(self, rule_id: str) -> None:
        """Ask the process where it is; it is ended when it has answered, or soon."""
        self._ending.killed_for = rule_id
        self._hurry()
        os.kill(self._pid, QUESTION)  # nobody has waited for it, so the number is still its own

    def _hurry(self) -> None:
        """Set the time for its last words, once: a plugin might write them for ever."""
        if not self._hurries:
            self._deadline = min(time.monotonic(), self._deadline) + _TIME_TO_ANSWER_S
            self._hurries = True

    def _look_at_memory(self) -> None:
        used = memory_use(self._pid)
        self._pipes.listen(0)  # in which call it took that was told before
        self._note_use(used)
        if self._ending.exceeded_in is None or "LD-064" in self._limits.accept:
            return
        if self._ending.killed_for is None:
            self._end_for("LD-064")

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
            self._end_for("LD-068")
        for pid in running:
            self._note_use(memory_use(pid))

    def _strays(self) -> list[int]:
        most = self._limits.processes + 1
        return [pid for pid in living_descendants(os.getpid(), most) if pid != self._pid]

    def _wait_for_leavers(self) -> None:
        patience = time.monotonic() + _TIME_TO_LEAVE_S
        while (left := self._strays()) and time.monotonic() < patience:
            time.sleep(0.005)
        self._ending.processes = len(left)

    # -- the report -----------------------------------------------------------------------------

    def _take_entry(self, entry: dict[str, Any]) -> None:
        ending = self._ending
        match entry:
            case {"enters": str(call), "memory": [int(), int(), int()]}:
                self._note_use(MemoryUse(*entry["memory"]))  # of the call before
                ending.entered = plain(call)
            case {"finished": dict(outcome), "memory": [int(), int(), int()]}:
                ending.outcome = _checked(outcome)
                self._note_use(MemoryUse(*entry["memory"]))
            case {"signal": int(number), "errno": int(found), "overflow": int(overflow)}:
                ending.signal, ending.errno, ending.overflow = number, found, bool(overflow)
                self._hurry()
            case {"exits": int(status)}:
                ending.exits = status
                self._hurry()
            case {"frame": list(frame)} if len(self._frames) < MOST_FRAMES:
                self._frames.append(frame)
            case {"traced": _}:
                self._traced = True
            case {"lost": str(streams)}:
                ending.lost = plain(streams)
            case {"fault": str(text)}:
                ending.fault = plain(text)

    def _take_output(self, data: bytes) -> None:
        self._printed = (self._printed + data)[:_MOST_SAID]
        self._take_complaint(data)

    def _take_complaint(self, data: bytes) -> None:
        self._said = (self._said + data)[-_MOST_SAID:]

    # -- the end --------------------------------------------------------------------------------

    def _conclude(self) -> Finding:
        ending = self._ending
        ending.said = self._said.decode("utf-8", "replace")
        ending.printed = self._printed.decode("utf-8", "replace")
        files = [file for task in self._tasks for file in (task.file, *task.companions)]
        ending.backtrace = readable_frames(self._frames, files)
        return finding_of(ending, self._limits)


def _checked(outcome: dict[str, Any]) -> dict[str, Any]:
    """Return what the child found, where it has the shape that the child gives it.

    Raises:
        ValueError: It has another: somebody else wrote it.
    """
    for each in (outcome, *outcome["others"]):
        finding_of_outcome(each)
    for rule_id, what in outcome["changes"]:
        if rule_id not in loader_rules() or not isinstance(what, str):
            raise ValueError(f"expected a change, found {what!r:.200}")
    return outcome
