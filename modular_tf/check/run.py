"""Trying what a plan says, in processes of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.check.isolation.job import Job
from modular_tf.check.isolation.processes import CheckProcesses
from modular_tf.check.planning import subject_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.isolation.running_job import CheckFaultError
    from modular_tf.check.limits import Limits
    from modular_tf.check.outcome import Outcome
    from modular_tf.check.planning import PluginPlan


@dataclass(frozen=True, slots=True)
class CheckRun:
    """The results of a plan.

    Attributes:
        outcomes: In the order of the plan.
        faults: How the kit itself failed, which left checks of a process without an outcome.
        absent_stores: A sentence on each store that nobody named and whose checks were stopped.
    """

    outcomes: tuple[Outcome, ...]
    faults: tuple[CheckFaultError, ...] = ()
    absent_stores: tuple[str, ...] = ()


class InterruptedRun(KeyboardInterrupt):
    """The user ended the run; no process of it is left.

    Attributes:
        run: What was known by then; the outcomes in the order in which they became known.
    """

    def __init__(self, run: CheckRun) -> None:
        super().__init__()
        self.run = run


def run_checks(
    plan: PluginPlan, limits: Limits, tell: Callable[[Outcome], None] | None = None
) -> CheckRun:
    """Try the checks of a plan; this process maps nothing of the plugin.

    Args:
        plan: The plan.
        limits: How long checks may take, and how many processes run at a time.
        tell: Is called with each outcome as soon as it is known.

    Raises:
        InterruptedRun: The user ended the run.
        OSError: No process can be started.
    """
    known: list[Outcome] = []

    def heard(outcome: Outcome) -> None:
        known.append(outcome)
        if tell is not None:
            tell(outcome)

    try:
        with CheckProcesses(limits) as processes:
            results = processes.run(jobs_of(plan), heard)
    except KeyboardInterrupt:
        raise InterruptedRun(CheckRun(tuple(known))) from None
    return CheckRun(
        tuple(outcome for result in results for outcome in result.outcomes),
        tuple(fault for result in results for fault in result.faults),
        tuple(processes.absent_stores),
    )


def jobs_of(plan: PluginPlan) -> list[Job]:
    """Return what processes are to do for a plan.

    Checks of a device have it to themselves: they fill its memory, and count what is used.
    """
    return [
        Job(
            target=target,
            subject=subject_of(target, plan.offered),
            checks=ids,
            alone="device" if target.ordinal is not None else None,
        )
        for target, ids in plan.steps
    ]
