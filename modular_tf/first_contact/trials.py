"""Trying plugins in child processes: what the application calls."""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from modular_tf.codec import decode, encode
from modular_tf.first_contact.finding import Finding
from modular_tf.first_contact.verdict import cannot_try, watcher_lost
from modular_tf.processes.zygote_process import Lanes, isolated_zygotes
from modular_tf.rules.shortage import ShortageError, raise_shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from typing_extensions import Self

    from modular_tf.first_contact.finding import Limits
    from modular_tf.loading.task import Task
    from modular_tf.processes.zygote_process import Lane, ZygoteProcess, Zygotes


_ZYGOTE = "modular_tf.first_contact.zygote"
_MORE_FOR_WATCHERS_S = 60.0  # beyond the limit that a watcher itself keeps
_POLL_EVERY_S = 0.5
_EXTRA_STARTS = 2


class Trials:
    """Tries plugins, batch after batch, in children of one zygote.

    The first batch starts the zygote, which runs until `close`, or until it has been idle for a
    while; the next batch then starts another. It ends with the application. Used by one thread at a
    time. After a fork the child starts a zygote of its own.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._zygotes = zygotes_of(limits)

    def try_plugins(
        self,
        tasks: Sequence[Task],
        report: Callable[[int, Finding], None] | None = None,
        mark: Callable[[int], AbstractContextManager[str]] | None = None,
    ) -> list[Finding]:
        """Try plugins and return their findings, when all children have ended or been killed.

        A finding is LD-063 where a plugin could not be tried. `report` is called with the index of
        a task and its finding as soon as that is known. `mark` marks a task, by its index, while
        its trial may end this process; it yields the mark's path. Raises `ShortageError` if this
        process has too few descriptors, or can start no process now.
        """
        batch = _Batch(tasks, self._limits, self._zygotes, report, mark)
        batch.run()
        return [batch.findings[number] for number in range(len(tasks))]

    def close(self) -> None:
        """End the zygote and the processes that it started. Safe to call twice."""
        self._zygotes.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def try_plugins(
    tasks: Sequence[Task],
    limits: Limits,
    report: Callable[[int, Finding], None] | None = None,
    mark: Callable[[int], AbstractContextManager[str]] | None = None,
) -> list[Finding]:
    """Try one batch of plugins; see `Trials.try_plugins`. No process is left when it returns."""
    with Trials(limits) as trials:
        return trials.try_plugins(tasks, report, mark)


def zygotes_of(limits: Limits) -> Zygotes:
    """Return what starts zygotes that try plugins within limits."""
    return isolated_zygotes(_ZYGOTE, limits=encode(limits))


class _Batch:
    """Runs all tasks: those that wait, those that watchers have, and those whose watcher ended.

    Each is tried in a process of its own, since a plugin may forge what its process reports. A task
    whose watcher ended is tried once more, alone; if its watcher ends again, it is to blame. Where
    trials may end this process, one task is tried at a time: so a mark that is left names the
    plugin that ended it. See `Trials.try_plugins` for the arguments.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        limits: Limits,
        zygotes: Zygotes,
        report: Callable[[int, Finding], None] | None,
        mark: Callable[[int], AbstractContextManager[str]] | None = None,
    ) -> None:
        self.findings: dict[int, Finding] = {}
        self._tasks = tasks
        self._limits = limits
        self._zygotes = zygotes
        self._most_lanes = len(os.sched_getaffinity(0)) + 1  # while one hangs, others go on
        self._waiting = deque(range(len(tasks)))
        self._suspects: deque[int] = deque()
        self._alone: int | None = None
        self._lanes: Lanes[int] = Lanes()
        self._zygote: ZygoteProcess | None = None
        # A task may end the zygote twice: beside others, and alone.
        self._starts_left = 2 * len(tasks) + _EXTRA_STARTS
        self._report = report
        self._mark = mark
        self._marked = ExitStack()  # the mark of the one that is tried, if it has one

    def run(self) -> None:
        """Try all tasks; an interrupt ends the trials that run."""
        try:
            while len(self.findings) < len(self._tasks):
                self._hand_out()
                self._listen()
        except BaseException:
            self._lanes.close()  # which ends the watchers, for whom the zygote waits
            self._zygotes.end()
            raise
        finally:
            self._marked.close()
            self._lanes.close()

    def _found(self, number: int, finding: Finding) -> None:
        self.findings[number] = finding
        if number == self._alone:
            self._alone = None
        if self._report is not None:
            self._report(number, finding)

    # -- handing out ----------------------------------------------------------------------------

    def _hand_out(self) -> None:
        if self._zygote is None and not self._begin():
            return
        while (number := self._next()) is not None:
            lane = self._free_lane()
            if lane is None:
                self._put_back(number)
                return
            task = self._begun(number)  # outside: a shortage of the mark is not the watcher's
            try:
                lane.give(number, encode(task), self._limits.seconds + _MORE_FOR_WATCHERS_S)
            except OSError:  # it had ended before
                lane.work = None
                self._put_back(number)
                self._lose(lane)

    def _begun(self, number: int) -> Task:
        """Return a task that is about to start, with its mark if it may end this process."""
        if self._mark is None or self._is_secluded:
            return self._tasks[number]
        self._marked.close()  # of the one before
        return self._tasks[number]._replace(mark=self._marked.enter_context(self._mark(number)))

    @property
    def _is_secluded(self) -> bool:
        return self._zygote is not None and self._zygote.is_secluded

    def _next(self) -> int | None:
        if self._waiting:
            return self._waiting.popleft()
        if not self._suspects or self._lanes.under_way():
            return None
        # A new zygote: another task may have damaged the old one.
        self._end_zygote()
        if not self._begin():
            return None
        self._alone = self._suspects.popleft()
        return self._alone

    def _put_back(self, number: int) -> None:
        if number == self._alone:
            self._alone = None
            self._suspects.appendleft(number)
        else:
            self._waiting.appendleft(number)

    def _free_lane(self) -> Lane[int] | None:
        """Return a lane for one more task, None where no more may run at the same time."""
        if self._zygote is None:
            return None
        most = self._most_lanes if self._is_secluded or self._mark is None else 1
        try:
            return self._lanes.free(most, self._zygote.new_watcher)
        except ConnectionError:
            self._end_zygote()
        except OSError as error:  # no descriptors left: the lanes that exist go on
            if not self._lanes:
                raise_shortage(error)
                self._give_up(f"no process can be started: {error}")
        return None

    # -- listening ------------------------------------------------------------------------------

    def _listen(self) -> None:
        for lane in self._lanes.ready(_POLL_EVERY_S):
            self._hear(lane)
        if any(lane.is_late for lane in self._lanes):
            self._end_zygote()

    def _hear(self, lane: Lane[int]) -> None:
        number = lane.work
        try:
            findings = [decode(Finding, entry) for entry in lane.receive()]
        except (EOFError, ValueError):
            self._lose(lane)
            return
        if findings and number is not None:
            lane.work = None
            self._found(number, findings[0])

    def _lose(self, lane: Lane[int]) -> None:
        """Remove a lane whose watcher ended; its task is tried alone, unless it was already."""
        self._lanes.remove(lane)
        if lane.work is not None and lane.work == self._alone:
            self._found(lane.work, watcher_lost())
        elif lane.work is not None:
            self._suspects.append(lane.work)

    # -- the zygote -----------------------------------------------------------------------------

    def _begin(self) -> bool:
        """Start a zygote and return whether it runs; else the tasks that are left fail."""
        self._starts_left -= 1
        try:
            if self._starts_left < 0:
                raise OSError("no process can be started: all have ended too early")  # noqa: TRY301
            self._zygote = self._zygotes.warm()
        except ShortageError:  # this process is short of something, which is no verdict
            raise
        except OSError as error:
            self._give_up(str(error))
            return False
        return True

    def _end_zygote(self) -> None:
        """End the zygote with its watchers, after reading the findings that were sent."""
        if self._zygote is None:
            return
        self._zygote = None
        for lane in self._lanes:
            with suppress(OSError):  # closed, since a signal handler has forked
                lane.connection.settimeout(0)
            with suppress(BlockingIOError):
                self._hear(lane)
        for lane in self._lanes:
            self._lose(lane)
        self._zygotes.end()

    def _give_up(self, why: str) -> None:
        for number in range(len(self._tasks)):
            if number not in self.findings:
                self._found(number, cannot_try(why))
