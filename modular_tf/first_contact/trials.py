"""Several plugins, each in a child process of its own, side by side."""

from __future__ import annotations

import os
import selectors
from typing import TYPE_CHECKING

from modular_tf.first_contact.task import find_interpreter
from modular_tf.first_contact.trial import Trial
from modular_tf.first_contact.verdict import cannot_try

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.first_contact.task import Task
    from modular_tf.rules import Violation

# The end of a process is no event of a pipe: what it started may hold the pipe open.
_LOOK_EVERY_S = 0.01


def try_plugins(tasks: Sequence[Task], *, seconds: float) -> list[Violation | None]:
    """Try plugins in child processes; returns when all of them have ended or been killed.

    Args:
        tasks: What to try.
        seconds: How long each may take.

    Returns:
        For each task what the plugin did to its process, None where it did nothing; LD-063 where
        it could not be tried.
    """
    python = find_interpreter()
    if python is None:
        why = "this process is no Python command, and names none"
        return [cannot_try(why) for _ in tasks]
    with selectors.DefaultSelector() as selector:
        return _Trials(tasks, python, seconds, selector).run()


class _Trials:
    """The trials that run, and those that wait for a processor."""

    def __init__(
        self,
        tasks: Sequence[Task],
        python: str,
        seconds: float,
        selector: selectors.BaseSelector,
    ) -> None:
        self._tasks = tasks
        self._python = python
        self._seconds = seconds
        self._selector = selector
        self._waiting = list(reversed(range(len(tasks))))
        self._running: dict[int, Trial] = {}
        self._verdicts: list[Violation | None] = [None] * len(tasks)

    def run(self) -> list[Violation | None]:
        at_once = len(os.sched_getaffinity(0)) + 1  # while one hangs, others go on
        try:
            while self._waiting or self._running:
                while self._waiting and len(self._running) < at_once:
                    self._start(self._waiting.pop())
                self._listen()
                for number in [n for n, trial in self._running.items() if trial.is_over]:
                    self._conclude(number)
        finally:
            for number in list(self._running):  # interrupted
                self._conclude(number)
        return self._verdicts

    def _start(self, number: int) -> None:
        task = self._tasks[number]
        try:
            trial = Trial(task, python=self._python, seconds=self._seconds)
        except (OSError, ValueError) as error:
            self._verdicts[number] = cannot_try(f"no process can be started: {error}")
            return
        self._running[number] = trial
        for fd in trial.readers:
            self._selector.register(fd, selectors.EVENT_READ, trial)

    def _listen(self) -> None:
        for key, _ in self._selector.select(_LOOK_EVERY_S):
            trial: Trial = key.data
            if not trial.read(key.fd):
                self._selector.unregister(key.fd)
                trial.close(key.fd)

    def _conclude(self, number: int) -> None:
        trial = self._running.pop(number)
        for fd in trial.readers:
            self._selector.unregister(fd)
        self._verdicts[number] = trial.conclude()
