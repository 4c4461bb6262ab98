"""How a process of checks ended before it was done, in words and as an outcome."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from modular_tf.check.calls import once_each
from modular_tf.check.outcome import Incident, Outcome, Verdict
from modular_tf.processes.ending import MUTE_STATUS, ChildEnding, sanitizer_report, signal_in_full

if TYPE_CHECKING:
    from modular_tf.check.isolation.job import Job

_MOST_CALLS = 20


@dataclass(slots=True)
class Ending(ChildEnding):
    """What is known of the end of a process of checks.

    Attributes:
        hung: How long it had, in seconds, where it was ended for that.
        calls: The last calls, the last at the end.
    """

    hung: float | None = None
    calls: tuple[str, ...] = ()


def words_of(ending: Ending) -> str:
    """Return how a process ended, in words."""
    return _told(ending)[1]


def outcome_of(ending: Ending, job: Job, check_id: str, seconds: float, when: str = "") -> Outcome:
    """Return the outcome of the check that was under way when a process ended.

    Args:
        ending: How it ended.
        job: What it was to do.
        check_id: The check.
        seconds: How long the check had run.
        when: What the process did, where it was not the check: `while the plugin was loaded`.
    """
    verdict, message = _told(ending)
    return Outcome(
        check_id=check_id,
        subject=job.subject,
        reached=job.target.reached,
        verdict=verdict,
        message=f"{message} {when}".rstrip(),
        calls=tuple(once_each(ending.calls)[-_MOST_CALLS:]),
        seconds=seconds,
        incident=Incident(
            signal=ending.fatal_signal if verdict is Verdict.CRASHED else None,
            exit_status=ending.exit_status if verdict is Verdict.EXITED else None,
            last_call=ending.calls[-1] if ending.calls else None,
            backtrace=ending.backtrace,
            said=ending.said,
        ),
    )


def ended_watcher(job: Job, check_id: str) -> Outcome:
    """Return the outcome of a check after which the process that watched over it was gone."""
    message = "the process that watched over the check ended, which only the plugin can have done"
    return Outcome(
        check_id, job.subject, job.target.reached, Verdict.EXITED, message, incident=Incident()
    )


def blocked(job: Job, check_id: str, why: str) -> Outcome:
    """Return the outcome of a check whose subject is not there."""
    return Outcome(check_id, job.subject, job.target.reached, Verdict.BLOCKED, why)


def after_check(outcome: Outcome, before: Outcome) -> Outcome:
    """Return how the process ended behind a check, with what the check had found before."""
    if before.verdict is Verdict.PASSED:
        return outcome
    message = f"{outcome.message}; before that: {before.message}"
    return replace(outcome, message=message, expected=before.expected, found=before.found)


def _told(ending: Ending) -> tuple[Verdict, str]:
    if ending.stopped_by is not None:
        return Verdict.HUNG, f"the plugin was stopped by {signal_in_full(ending.stopped_by)}"
    if ending.hung is not None:
        return Verdict.HUNG, f"the plugin did not come back within {ending.hung:g} s"
    if ending.status == MUTE_STATUS and ending.exits is None:
        return Verdict.FAILED, "the plugin closed a descriptor that it had not opened"
    report = sanitizer_report(ending.said)
    reported = "" if report is None else f": {report}"
    if ending.exits is None and ending.fatal_signal is not None:
        return Verdict.CRASHED, f"the process {ending.in_words()}{reported}"
    return Verdict.EXITED, f"the plugin {ending.in_words()}{reported}"
