"""Trying checks in processes: what the application calls."""

from __future__ import annotations

import os
import selectors
from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.isolation.lane import Lane
from modular_tf.check.isolation.scratch import scratch_folder
from modular_tf.check.native.checking_allocator import preload_environment
from modular_tf.native.preloading import SIGNAL_STACKS, preload
from modular_tf.native.sanitizers import sanitizer_environment
from modular_tf.processes.interpreter import command_like_here
from modular_tf.processes.zygote_process import Zygotes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.check.isolation.job import Job
    from modular_tf.check.isolation.lane import CheckFaultError
    from modular_tf.check.limits import Limits
    from modular_tf.check.outcome import Outcome

_ZYGOTE = "modular_tf.check.isolation.zygote"


@dataclass(slots=True)
class JobResult:
    """What became of a job.

    Attributes:
        outcomes: Of its checks, in their order.
        faults: How the kit failed at some of them, which have no outcome.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    faults: list[CheckFaultError] = field(default_factory=list)

    @property
    def fault(self) -> CheckFaultError | None:
        """The first of the faults, None where there is none."""
        return self.faults[0] if self.faults else None


class CheckProcesses:
    """A zygote of checks and its watchers, which stay until `close`. Used by one thread.

    Args:
        limits: How long checks may take, and how many processes run at a time.

    Raises:
        OSError: No process can be started.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._most_lanes = limits.processes
        self._lanes: list[Lane] = []
        self._waiting: deque[int] = deque()
        self._jobs: list[Job] = []
        self._results: list[JobResult] = []
        self._dropped: set[int] = set()  # jobs whose watcher was gone before it said anything
        self._tell: Callable[[Outcome], None] = _ignore
        self._selector = selectors.DefaultSelector()
        with ExitStack() as made:
            self._scratch = made.enter_context(scratch_folder())
            self._zygotes = Zygotes(self._command, self._environment)
            self._zygotes.warm()
            made.callback(self._zygotes.end)
            self._exit = made.pop_all()

    def _command(self, python: str, own: dict[str, Any]) -> list[str]:
        job = {**own, "limits": asdict(self._limits), "scratch": self._scratch}
        return command_like_here(python, _ZYGOTE, job)

    def _environment(self) -> Mapping[str, str]:
        environment = preload(sanitizer_environment(os.environ), SIGNAL_STACKS)
        return preload_environment(environment) if self._limits.preload else environment

    def run(
        self, jobs: Sequence[Job], tell: Callable[[Outcome], None] | None = None
    ) -> list[JobResult]:
        """Try jobs side by side and return when all are done.

        Args:
            jobs: The jobs.
            tell: Is called with each outcome as soon as it is known.

        Returns:
            What became of each job.

        Raises:
            OSError: No process can be started any more.
        """
        self._jobs, self._results = list(jobs), [JobResult() for _ in jobs]
        self._waiting = deque(number for number, job in enumerate(jobs) if job.checks)
        self._dropped.clear()
        self._tell = tell or _ignore
        try:
            while self._waiting or any(lane.job for lane in self._lanes):
                self._hand_out()
                self._listen()
        except BaseException:
            self.close()
            raise
        return self._results

    def close(self) -> None:
        """End all processes. Safe to call twice."""
        for lane in self._lanes:
            lane.connection.close()
        self._lanes.clear()
        self._selector.close()
        self._exit.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- handing out ----------------------------------------------------------------------------

    def _hand_out(self) -> None:
        for number in self._ready():
            lane = self._free_lane()
            if lane is None:
                return
            self._waiting.remove(number)
            with suppress(OSError):  # the watcher is gone: its end is heard of
                lane.give(number, self._jobs[number])

    def _ready(self) -> Iterator[int]:
        """Yield the jobs that nothing keeps waiting, as long as that is so."""
        for number in list(self._waiting):
            alone = self._jobs[number].alone
            if alone is None or alone not in {lane.job.alone for lane in self._lanes if lane.job}:
                yield number

    def _free_lane(self) -> Lane | None:
        for lane in self._lanes:
            if lane.job is None:
                return lane
        return self._new_lane() if len(self._lanes) < self._most_lanes else None

    def _new_lane(self) -> Lane:
        try:
            connection = self._zygotes.warm().new_watcher()
        except OSError:  # a plugin has ended the zygote too
            self._zygotes.end()
            connection = self._zygotes.warm().new_watcher()
        lane = Lane(connection, self._tell_of)
        self._lanes.append(lane)
        self._selector.register(connection, selectors.EVENT_READ, lane)
        return lane

    def _tell_of(self, outcome: Outcome) -> None:
        self._tell(outcome)

    # -- hearing --------------------------------------------------------------------------------

    def _listen(self) -> None:
        for key, _ in self._selector.select():
            lane: Lane = key.data
            try:
                if lane.receive():
                    self._finish(lane)
            except EOFError:
                self._lose(lane)

    def _finish(self, lane: Lane) -> None:
        lane.finish()
        self._keep(lane)
        if lane.fault is not None and lane.number is not None and lane.outcomes:
            self._go_on_behind_fault(lane.number, lane.left())
        lane.job = lane.number = None

    def _go_on_behind_fault(self, number: int, left: Job | None) -> None:
        """Try what comes after a check of ours that failed by itself.

        Where nothing came of the job before it, the fault may be that of all.
        """
        if left is not None and left.checks[1:]:
            self._jobs[number] = replace(left, checks=left.checks[1:])
            self._waiting.appendleft(number)

    def _lose(self, lane: Lane) -> None:
        """Go on without a watcher that a plugin has ended."""
        self._selector.unregister(lane.connection)
        lane.connection.close()
        self._lanes.remove(lane)
        number = lane.number
        if number is None:
            return
        if lane.heard or number in self._dropped:
            lane.blame()
        self._dropped.add(number)
        self._keep(lane)
        if (left := lane.left()) is not None:
            self._jobs[number] = left
            self._waiting.appendleft(number)

    def _keep(self, lane: Lane) -> None:
        if lane.number is not None:
            result = self._results[lane.number]
            result.outcomes += lane.outcomes
            if lane.fault is not None:
                result.faults.append(lane.fault)


def _ignore(_: Outcome) -> None:
    pass
