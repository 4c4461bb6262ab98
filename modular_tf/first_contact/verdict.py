"""From how a child process ended to the rule that the plugin broke in it, if it did."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from modular_tf.first_contact.journal import MUTE_STATUS
from modular_tf.rules import Violation

_MOST_CHARACTERS = 200


@dataclass(slots=True)
class Ending:
    """How a child process ended; the fields are filled as they become known.

    Attributes:
        entered: The last call that was begun, None where it came to none.
        finished: Whether all calls came back.
        lost: The standard streams that the plugin closed or replaced.
        fault: How the host's own code failed.
        timed_out: The limit in seconds, where the process was ended for it.
        status: The exit status, negative for a signal; None where somebody else took it.
        said: The last that was written to standard output and standard error.
    """

    entered: str | None = None
    finished: bool = False
    lost: str | None = None
    fault: str | None = None
    timed_out: float | None = None
    status: int | None = None
    said: str = ""


def violation_of(ending: Ending) -> Violation | None:
    """Return what the plugin did to the process, None where it did nothing."""
    if ending.finished:
        return None
    if ending.fault is not None:
        return cannot_try(f"the child process failed: {ending.fault}")
    if ending.entered is None:
        how = "hung" if ending.timed_out else _how_ended(ending.status)
        return cannot_try(f"the child process {how} before it began{_said(ending)}")
    rule_id, what = _deed(ending)
    where = f"in {ending.entered}, at first contact in a child process"
    return Violation(rule_id, f"{what} {where}{_said(ending)}")


def cannot_try(why: str) -> Violation:
    """Return the violation where it is not the plugin that failed."""
    return Violation("LD-063", f"not tried: {why}")


def _deed(ending: Ending) -> tuple[str, str]:
    if ending.lost is not None:
        return "LD-062", f"closed or replaced {ending.lost}"
    if ending.timed_out is not None:
        return "LD-061", f"did not return within {ending.timed_out:g} s"
    if ending.status == MUTE_STATUS:
        return "LD-062", "closed a descriptor that it had not opened"
    return "LD-060", _how_ended(ending.status)


def _how_ended(status: int | None) -> str:
    if status is None:
        return "ended the process"
    if status >= 0:
        return f"ended the process with exit status {status}"
    if -status == signal.SIGKILL:
        return "was killed with SIGKILL (signal 9, perhaps for want of memory)"
    verb = "aborted with" if -status == signal.SIGABRT else "crashed with"
    return f"{verb} {_signal_name(-status)} (signal {-status})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return "a signal"


def _said(ending: Ending) -> str:
    """Return the last words: for one, the C++ runtime names an exception that nobody caught."""
    lines = [line.strip() for line in ending.said.splitlines() if line.strip()]
    words = " / ".join(lines[-2:])
    shown = "".join(c if c.isprintable() else "?" for c in words)[:_MOST_CHARACTERS]
    return f"; it last wrote: {shown}" if shown else ""
