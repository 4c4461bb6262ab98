"""How a check took its process down, in words: what happened, where, and what to do."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from modular_tf.check.outcome import Verdict
from modular_tf.discovery.linking.system_libraries import is_of_system
from modular_tf.processes.ending import sanitizer_report, signal_in_full

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modular_tf.check.outcome import Incident, Outcome

_LINES_SAID = 6
_LINES_REPORTED = 20
_SOURCE_LINE = re.compile(r" at (.+:[0-9]+)$")
_OF_THE_HOST = re.compile(r"^modular_tf: .* \[LD-130\]$")  # what it says is told anyway

_MEMORY = (
    "uses memory that it must not (through a NULL pointer, behind the end of a block, or after "
    "that was freed); a build with -fsanitize=address says which"
)
_REASONS: Mapping[int, str] = {
    signal.SIGSEGV: _MEMORY,
    signal.SIGBUS: _MEMORY,
    signal.SIGFPE: "divides by zero, or overflows in a division",
    signal.SIGILL: "runs into a trap of the compiler (undefined behaviour), or uses an instruction "
    "that this processor lacks",
    signal.SIGTRAP: "runs into a trap of the compiler (undefined behaviour)",
    signal.SIGABRT: "ends the process: by an assertion, by an exception that nobody catches, or "
    "for a heap that was damaged before; return a status instead",
    signal.SIGSYS: "makes a system call that is not allowed here",
}
_OTHER_SIGNAL = "ends the process; return a status instead"


def function_of(call: str | None) -> str | None:
    """Return the function of a call that a report shows: `read` of `read(file1, n=4)`."""
    return None if call is None else call.partition("(")[0].partition(" ")[0]


def own_frame(incident: Incident) -> str | None:
    """Return the innermost frame that is not the system's; any where all are; None for none."""
    own = [frame for frame in incident.backtrace if not is_of_system(frame.partition(" ")[0])]
    return next(iter((*own, *incident.backtrace)), None)


def incident_headline(outcome: Outcome, incident: Incident) -> str:
    """Return what happened, in one line."""
    place = f" in {incident.last_call}" if incident.last_call else ""
    if outcome.verdict is Verdict.HUNG:
        return f"did not return{place} within {outcome.seconds:.0f} s"
    report = sanitizer_report(incident.said)
    reported = "" if report is None else f": {report}"
    if outcome.verdict is Verdict.EXITED:
        if incident.exit_status is None and outcome.message:
            return f"{outcome.message}{reported}"
        return f"ended the process with exit status {incident.exit_status}{place}{reported}"
    ended_by = "no signal" if incident.signal is None else signal_in_full(incident.signal)
    return f"crashed with {ended_by}{place}{reported}"


def incident_remedy(outcome: Outcome, incident: Incident) -> str:
    """Return what to do; the remedy of the check's rule is about a wrong answer."""
    function = function_of(incident.last_call)
    what = "the plugin" if function is None else function
    if outcome.verdict is Verdict.HUNG:
        return (
            f"Find out what {what} waits for, or why it repeats; the frames say where it was. "
            "Where it is only slow: --patience 10."
        )
    if outcome.verdict is Verdict.EXITED:
        return f"Let {what} return a status: only the application may end its process."
    if sanitizer_report(incident.said) is not None:
        return f"Mend what the sanitizer reported, in {what} or before it."
    reason = _REASONS.get(incident.signal or 0, _OTHER_SIGNAL)
    return f"Mend {what}{_where(incident)}: it {reason}."


def _where(incident: Incident) -> str:
    if not incident.backtrace:
        return ""
    place = _SOURCE_LINE.search(own_frame(incident) or "")
    if place is not None:
        return f" at {place[1]}"
    return ", in the first frame (built with -g, and with the extra check installed, it has a line)"


def last_words(said: str) -> Sequence[str]:
    """Return the last lines that a process wrote; the first of a sanitizer's report."""
    report = sanitizer_report(said)
    if report is not None:
        return report.lines[:_LINES_REPORTED]
    lines = [line for line in said.strip().splitlines() if not _OF_THE_HOST.match(line)]
    return lines[-_LINES_SAID:]
