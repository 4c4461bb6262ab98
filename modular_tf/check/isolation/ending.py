"""How a process of checks ended before it was done, in words and as an outcome."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.isolation.progress import MUTE_STATUS
from modular_tf.check.outcome import Incident, Outcome, Verdict
from modular_tf.processes.backtrace import MOST_FRAMES, readable_frames
from modular_tf.processes.sanitizer_report import sanitizer_report
from modular_tf.processes.signal_names import signal_in_full

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.check.isolation.job import Job

_MOST_CALLS = 20
_CRASHES = frozenset({signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP})


@dataclass
class Ending:
    """What is known of the end of a process.

    Attributes:
        status: Its exit status, negative for a signal; None where it would not end.
        signal: The signal that its crash handler saw.
        overflow: Whether the stack overflowed.
        exits: The status that it called `exit` with.
        hung: How long it had, in seconds, where it was ended for that.
        calls: The last calls, the last at the end.
        backtrace: The native frames, innermost first.
        said: The last that it wrote to the standard streams.
    """

    status: int | None = None
    signal: int | None = None
    overflow: bool = False
    exits: int | None = None
    hung: float | None = None
    calls: tuple[str, ...] = ()
    backtrace: tuple[str, ...] = ()
    said: str = ""


class LastWords:
    """What a process tells of its end (`native/core/crash_report.h` has the form).

    Attributes:
        ending: What is known of its end.
        is_traced: Whether it has told where it was, as it was asked.
    """

    def __init__(self) -> None:
        self.ending = Ending()
        self.is_traced = False
        self._frames: list[Any] = []

    def take(self, entry: dict[str, Any]) -> bool:
        """Take an entry of its report; tell whether it is dying of a signal."""
        ending = self.ending
        match entry:
            case {"signal": int(number), "overflow": int(overflow)}:
                ending.signal, ending.overflow = number, bool(overflow)
                return True
            case {"exits": int(status)}:
                ending.exits = status
            case {"frame": list(frame)} if len(self._frames) < MOST_FRAMES:
                self._frames.append(frame)
            case {"traced": _}:
                self.is_traced = True
        return False

    def look_back(self, files: Iterable[str]) -> None:
        """Take note of where it was, once it has ended.

        Args:
            files: The plugin's.
        """
        self.ending.backtrace = readable_frames(self._frames, files)


def words_of(ending: Ending) -> str:
    """Return how a process ended, in words."""
    return _told(ending, _signal(ending))[1]


def outcome_of(ending: Ending, job: Job, check_id: str, seconds: float, when: str = "") -> Outcome:
    """Return the outcome of the check that was under way when a process ended.

    Args:
        ending: How it ended.
        job: What it was to do.
        check_id: The check.
        seconds: How long the check had run.
        when: What the process did, where it was not the check: `while the plugin was loaded`.
    """
    number = _signal(ending)
    verdict, message = _told(ending, number)
    return Outcome(
        check_id=check_id,
        subject=job.subject,
        reached=job.target.reached,
        verdict=verdict,
        message=f"{message} {when}".rstrip(),
        calls=ending.calls[-_MOST_CALLS:],
        seconds=seconds,
        incident=Incident(
            signal=None if verdict is Verdict.HUNG else number,
            exit_status=_exit_status(ending) if verdict is Verdict.EXITED else None,
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


def _told(ending: Ending, number: int | None) -> tuple[Verdict, str]:
    if ending.hung is not None:
        return Verdict.HUNG, f"the plugin did not come back within {ending.hung:g} s"
    if ending.status == MUTE_STATUS and ending.exits is None:
        return Verdict.FAILED, "the plugin closed a descriptor that it had not opened"
    report = sanitizer_report(ending.said)
    reported = "" if report is None else f": {report}"
    if number is not None:
        return Verdict.CRASHED, f"the process {_how(ending, number)}{reported}"
    status = _exit_status(ending)
    return Verdict.EXITED, f"the plugin ended the process with exit status {status}{reported}"


def _how(ending: Ending, number: int) -> str:
    name = signal_in_full(number)
    if number == signal.SIGABRT:
        return f"aborted with {name}"
    if number == signal.SIGKILL:
        return f"was killed with {name}, perhaps for want of memory"
    if number not in _CRASHES:
        return f"was ended by {name}"
    overflow = "overflowed the stack and " if ending.overflow else ""
    return f"{overflow}crashed with {name}"


def _signal(ending: Ending) -> int | None:
    """Return the signal that ended it, None where it called `exit` before."""
    if ending.exits is not None:
        return None
    if ending.signal is not None:
        return ending.signal
    return -ending.status if ending.status is not None and ending.status < 0 else None


def _exit_status(ending: Ending) -> int | None:
    return ending.status if ending.exits is None else ending.exits
