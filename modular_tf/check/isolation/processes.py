"""Trying checks in processes: what the application calls."""

from __future__ import annotations

import os
from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.isolation.assumed_stores import AssumedStores
from modular_tf.check.isolation.job import note_lost_call
from modular_tf.check.isolation.running_job import RunningJob
from modular_tf.check.isolation.scratch import scratch_folder
from modular_tf.check.native.checking_allocator import preload_environment
from modular_tf.native.preloading import preload
from modular_tf.native.sanitizers import sanitizer_environment
from modular_tf.processes.interpreter import command_like_here
from modular_tf.processes.zygote_process import Lanes, Zygotes

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from modular_tf.check.isolation.job import Job
    from modular_tf.check.isolation.running_job import CheckFaultError
    from modular_tf.check.limits import Limits
    from modular_tf.check.outcome import Outcome
    from modular_tf.processes.zygote_process import Lane

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
        self._lanes: Lanes[RunningJob] = Lanes()
        self._waiting: deque[int] = deque()
        self._jobs: list[Job] = []
        self._results: list[JobResult] = []
        self._stores = AssumedStores()
        self._lost: dict[tuple[object, ...], dict[str, str]] = {}
        self._dropped: set[int] = set()  # jobs whose watcher was gone before it said anything
        self._tell: Callable[[Outcome], None] = _ignore
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
        environment = preload(sanitizer_environment(os.environ))
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
        self._stores = AssumedStores()
        self._lost.clear()
        self._tell = tell or _ignore
        try:
            while self._waiting or self._lanes.under_way():
                self._hand_out()
                self._listen()
        except BaseException:
            self.close()
            raise
        return self._results

    @property
    def absent_stores(self) -> list[str]:
        """Of the last run, the stores whose checks were stopped: a sentence on each."""
        return self._stores.absent

    def close(self) -> None:
        """End all processes. Safe to call twice."""
        self._lanes.close()
        self._exit.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    # -- handing out ----------------------------------------------------------------------------

    def _hand_out(self) -> None:
        for number in self._ready():
            lane = self._free_lane()
            if lane is None:
                return
            self._waiting.remove(number)
            with suppress(OSError):  # the watcher is gone: its end is heard of
                job = self._jobs[number].after(self._lost_calls(self._jobs[number]))
                lane.give(self._running(number), job.as_dict())

    def _lost_calls(self, job: Job) -> dict[str, str]:
        """Return the calls in which processes of the same subject were lost."""
        target, environment = job.target, tuple(job.environment.items())
        key = (target.path, job.subject, target.reached, environment)
        return self._lost.setdefault(key, {})

    def _running(self, number: int) -> RunningJob:
        job = self._jobs[number]

        def heard(outcome: Outcome) -> None:
            self._stores.count(_store_of(job), outcome)
            note_lost_call(self._lost_calls(job), outcome)
            self._tell(outcome)

        return RunningJob(number, job, heard)

    def _ready(self) -> Iterator[int]:
        """Yield the jobs that nothing keeps waiting, as long as that is so."""
        for number in list(self._waiting):
            alone = self._jobs[number].alone
            if alone is None or all(
                alone != running.job.alone for running in self._lanes.under_way()
            ):
                yield number

    def _free_lane(self) -> Lane[RunningJob] | None:
        return self._lanes.free(self._most_lanes, self._new_watcher)

    def _new_watcher(self) -> socket.socket:
        try:
            return self._zygotes.warm().new_watcher()
        except OSError:  # a plugin has ended the zygote too
            self._zygotes.end()
            return self._zygotes.warm().new_watcher()

    # -- hearing --------------------------------------------------------------------------------

    def _listen(self) -> None:
        for lane in self._lanes.ready():
            running = lane.work
            try:
                is_finished = [running is not None and running.take(e) for e in lane.receive()]
            except (EOFError, ValueError):
                self._lose(lane)
                continue
            if running is not None and any(is_finished):
                lane.work = None
                self._finish(running)
        for store in self._stores.to_stop():
            self._stop_checks_of(store)

    def _finish(self, running: RunningJob) -> None:
        running.finish()
        self._keep(running)
        if running.fault is not None and running.outcomes:
            self._go_on_behind_fault(running.number, running.left())

    def _go_on_behind_fault(self, number: int, left: Job | None) -> None:
        """Try what comes after a check of ours that failed by itself.

        Where nothing came of the job before it, the fault may be that of all.
        """
        if left is not None and left.checks[1:]:
            self._jobs[number] = replace(left, checks=left.checks[1:])
            self._waiting.appendleft(number)

    def _lose(self, lane: Lane[RunningJob]) -> None:
        """Go on without a watcher that a plugin has ended."""
        self._lanes.remove(lane)
        if (running := lane.work) is None:
            return
        if running.heard or running.number in self._dropped:
            running.blame()
        self._dropped.add(running.number)
        self._keep(running)
        if (left := running.left()) is not None:
            self._jobs[running.number] = left
            self._waiting.appendleft(running.number)

    def _stop_checks_of(self, store: str) -> None:
        lanes = [lane for lane in self._lanes if lane.work and _store_of(lane.work.job) == store]
        waiting = [number for number in self._waiting if _store_of(self._jobs[number]) == store]
        stopped = [lane.work for lane in lanes if lane.work] + [*map(self._running, waiting)]
        for lane in lanes:
            self._lanes.remove(lane)
        self._waiting = deque(number for number in self._waiting if number not in waiting)
        why = self._stores.stop(store, sum(running.number_left for running in stopped))
        for running in stopped:
            running.block(why)
            self._keep(running)

    def _keep(self, running: RunningJob) -> None:
        result = self._results[running.number]
        result.outcomes += running.outcomes
        if running.fault is not None:
            result.faults.append(running.fault)


def _store_of(job: Job) -> str | None:
    return job.target.assumed_store


def _ignore(_: Outcome) -> None:
    pass
