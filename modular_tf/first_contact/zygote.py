"""The zygote of first contact: has tried a plugin of our own, and forks watchers over trials."""

from __future__ import annotations

import os
import time
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.codec import decode, encode
from modular_tf.discovery.sources.search_paths import package_directories
from modular_tf.first_contact.child import Journal, Rehearsal, fork_handler_count, run
from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.process_state import ProcessState, changes, process_limits
from modular_tf.first_contact.verdict import Ending, cannot_try, finding_of
from modular_tf.loading.task import Task
from modular_tf.opening import warm_up
from modular_tf.processes.child import Report
from modular_tf.processes.descendants import children, living_descendants, memory_use
from modular_tf.processes.ending import MOST_OF_LAST_WORDS
from modular_tf.processes.watched_child import (
    CHECK_EVERY_S,
    AbandonedError,
    WatchedChild,
    watch_over,
)
from modular_tf.processes.zygote import serve_zygote
from modular_tf.rules.first_contact import CALLS_RETURN, MEMORY_BOUNDED, NO_PROCESSES_LEFT

if TYPE_CHECKING:
    from modular_tf.first_contact.finding import Finding
    from modular_tf.processes.watched_child import Send
    from modular_tf.rules import Rule

_IDLE_S = 30.0
_TIME_TO_LEAVE_S = 0.25  # for processes that are about to end by themselves
_OWN_PLUGIN = os.path.join("plugins", "libposix_filesystem.so")


def serve(*, limits: dict[str, Any], **own: Any) -> NoReturn:
    """Fork watchers over trials, then end the process; see `zygotes_of` for the arguments."""
    may = decode(Limits, limits)
    serve_zygote(
        **own,
        warm_up=_warm_up,
        watch=lambda descriptor: watch_over_trials(descriptor, may),
        idle_s=_IDLE_S,
    )


def watch_over_trials(descriptor: int, limits: Limits) -> None:
    """Try the tasks that arrive on a socket until its other end is closed; report each finding."""

    def work(job: dict[str, Any], send: Send, listener: int) -> None:
        task = decode(Task, job)
        try:
            finding = Trial(task, limits, listener).finding()
        except AbandonedError:
            task.mark_watcher_survived()
            raise
        except OSError as error:
            finding = cannot_try(f"no process can be started: {error}")
        send(encode(finding))

    watch_over(descriptor, work)


class Trial:
    """A child process that tries one plugin, and the processes that it started.

    The descriptor `listener` becomes readable when nobody waits for the finding any more. Raises
    `OSError` if no process can be started.
    """

    def __init__(self, task: Task, limits: Limits, listener: int) -> None:
        self._task = task
        self._limits = limits
        base = memory_use("self")
        self._ending = Ending(base=base, most_memory=limits.memory_mib << 20, files=base.files)
        self._printed = b""
        self._child = WatchedChild(
            partial(run, task, limits),
            listener,
            self._ending,
            seconds=limits.seconds,
            take_output=self._take_output,
            prompt=False,
        )
        self._next_check = time.monotonic() + CHECK_EVERY_S

    def finding(self) -> Finding:
        """Wait for the end, kill the processes that are left, and return the finding.

        Raises `AbandonedError` if nobody waits for the finding any more; all processes were killed.
        """
        try:
            while not self._child.is_over():
                self._child.listen()
                if time.monotonic() >= self._next_check:
                    self._check_memory()
                    self._check_processes()
                    self._next_check = time.monotonic() + CHECK_EVERY_S
            self._child.read_on()  # it may have reported and ended at once
            if self._ending.outcome is not None:
                self._wait_for_ending_processes()
        finally:
            peak = self._child.end((self._task.file, *self._task.companions))
        ending = self._ending
        ending.note_memory(peak - ending.files - ending.base.touched)
        ending.printed = self._printed.decode("utf-8", "replace")
        if self._child.is_late or ending.stopped_by is not None:
            ending.killed_for = CALLS_RETURN
        return finding_of(ending, self._limits)

    def _end_for(self, broken: Rule) -> None:
        if not self._child.was_asked:
            self._ending.killed_for = broken
            self._child.ask()

    def _check_memory(self) -> None:
        used = memory_use(self._child.pid)
        self._child.read_on()  # which has the call that took the memory
        self._ending.note_use(used)
        if self._ending.exceeded_in is not None and MEMORY_BOUNDED not in self._limits.accept:
            self._end_for(MEMORY_BOUNDED)

    def _check_processes(self) -> None:
        if self._child.was_asked:
            return
        running = self._other_processes()
        if len(running) > self._limits.processes:
            self._ending.processes = len(running)
            self._end_for(NO_PROCESSES_LEFT)
        for pid in running:
            self._ending.note_use(memory_use(pid))

    def _other_processes(self) -> list[int]:
        own = self._child.pid
        if self._child.has_ended() and children(os.getpid()) == [own]:
            return []
        most = self._limits.processes + 1
        return [pid for pid in living_descendants(os.getpid(), most) if pid != own]

    def _wait_for_ending_processes(self) -> None:
        deadline = time.monotonic() + _TIME_TO_LEAVE_S
        while not self._child.has_ended() and time.monotonic() < deadline:
            self._child.listen()
        while (left := self._other_processes()) and time.monotonic() < deadline:
            time.sleep(0.005)
        self._ending.processes = len(left)

    def _take_output(self, data: bytes) -> None:
        self._printed = (self._printed + data)[:MOST_OF_LAST_WORDS]


def _warm_up() -> None:
    """Do once what every trial would do again."""
    warm_up()
    # What opening a plugin of few kinds imports late, and the check of a young file.
    for module in ("modular_tf.device.platform", "modular_tf.loading.kernel_loader", "mmap"):
        import_module(module)
    for file in (os.path.join(folder, _OWN_PLUGIN) for folder in package_directories()):
        if os.path.exists(file):
            _rehearse(file)
    changes(ProcessState.now(), ProcessState.now(), process_limits())
    fork_handler_count()


def _rehearse(file: str) -> None:
    """Try a plugin of our own here, for all that its first trial imports, compiles and computes."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    Rehearsal(Task("own", file, kinds=("filesystem",)), Journal(Report(nowhere))).perform()
    os.close(nowhere)
