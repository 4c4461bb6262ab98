"""The zygote of checks: has imported all of them, and forks watchers over groups of checks.

Its interpreter has the user's whole environment: a plugin is checked as the user runs it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.catalogue import all_checks
from modular_tf.check.isolation.job import Job, note_lost_call
from modular_tf.check.isolation.scratch import scratch_folder
from modular_tf.check.isolation.watched_group import WatchedGroup
from modular_tf.check.limits import Limits
from modular_tf.check.outcome import Outcome
from modular_tf.check.session import import_sessions
from modular_tf.processes.watched_child import watch_over
from modular_tf.processes.zygote import serve_zygote

if TYPE_CHECKING:
    from modular_tf.processes.watched_child import Tell


def serve(*, limits: dict[str, Any], scratch: str, **own: Any) -> NoReturn:
    """Fork watchers over groups of checks, then end the process.

    Args:
        limits: The fields of `Limits`.
        scratch: The directory in which processes get one of their own.
        own: What `Zygotes` adds.
    """
    may = Limits(**limits)

    def watch(descriptor: int) -> None:
        watch_over(
            descriptor,
            lambda job, tell, listener: try_job(Job.from_dict(job), may, scratch, tell, listener),
        )

    serve_zygote(**own, warm_up=_warm_up, watch=watch)


def _warm_up() -> None:
    all_checks()
    import_sessions()


def try_job(job: Job, limits: Limits, scratch: str, tell: Tell, listener: int) -> None:
    """Try all checks of a job, in as many processes as that takes.

    Args:
        job: The checks.
        limits: How long they may take.
        scratch: The directory in which processes get one of their own.
        tell: Is given what a `WatchedGroup` tells, and `{"finished": 1}` as the last.
        listener: A descriptor that becomes readable when nobody waits any more.
    """
    lost = dict(job.target.lost_calls)

    def heard(entry: dict[str, Any]) -> None:
        if "outcome" in entry:
            note_lost_call(lost, Outcome.from_dict(entry["outcome"]))
        tell(entry)

    left = job.checks
    while left:
        rest = replace(job.after(lost), checks=left)
        left = left[_one_process(rest, limits, scratch, heard, listener) :]
    tell({"finished": 1})


def _one_process(job: Job, limits: Limits, scratch: str, tell: Tell, listener: int) -> int:
    """Try checks in one process, and return of how many all is known."""
    with scratch_folder(scratch) as folder:
        own = replace(job, target=replace(job.target, scratch=folder))
        try:
            group = WatchedGroup(own, limits, tell, listener)
        except OSError as error:
            tell({"fault": f"no process can be started: {error}", "check": None})
            return len(job.checks)
        return group.run()
