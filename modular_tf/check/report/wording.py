"""One outcome in words, the same in every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Verdict
from modular_tf.processes.sanitizer_report import sanitizer_report
from modular_tf.processes.signal_names import signal_in_full

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from modular_tf.check.outcome import Incident, Outcome

_CALLS_SHOWN = 16
_LINES_SAID = 6
_LINES_REPORTED = 20


def headline(outcome: Outcome) -> str:
    """Return what was found, in one line, without the check's name."""
    if outcome.verdict is Verdict.KNOWN:
        return f"known deviation: {outcome.reason}"
    if outcome.incident is not None:
        return _of_incident(outcome)
    return outcome.message or outcome.verdict.value


def _of_incident(outcome: Outcome) -> str:
    incident = outcome.incident
    assert incident is not None  # noqa: S101  (asked for by the caller)
    place = f" in {incident.last_call}" if incident.last_call else ""
    if outcome.verdict is Verdict.HUNG:
        return f"did not return{place} within {outcome.seconds:.0f} s"
    report = sanitizer_report(incident.said)
    reported = "" if report is None else f": {report}"
    if outcome.verdict is Verdict.EXITED:
        return f"ended the process with exit status {incident.exit_status}{place}{reported}"
    ended_by = "no signal" if incident.signal is None else signal_in_full(incident.signal)
    return f"crashed with {ended_by}{place}{reported}"


def details(outcome: Outcome) -> Iterator[str]:
    """Yield lines: what the rule asks, what was found, the calls before, and what to do."""
    rule = all_checks()[outcome.check_id].rule
    yield f"required: {rule.requirement} [{rule.source}]"
    if outcome.expected:
        yield f"expected: {outcome.expected}"
    if outcome.found:
        yield f"found:    {outcome.found}"
    for number, call in enumerate(outcome.calls[-_CALLS_SHOWN:]):
        yield f"{'calls:   ' if number == 0 else '         '} {call}"
    if outcome.incident is not None:
        yield from _of_process(outcome.incident)
    yield f"remedy:   {rule.remedy}"


def _of_process(incident: Incident) -> Iterator[str]:
    for number, frame in enumerate(incident.backtrace):
        yield f"{'frames:  ' if number == 0 else '         '} {frame}"
    for number, line in enumerate(_last_words(incident.said)):
        yield f"{'said:    ' if number == 0 else '         '} {line}"


def _last_words(said: str) -> Sequence[str]:
    """Return the last lines, or the first of a sanitizer's report, which is long."""
    report = sanitizer_report(said)
    if report is not None:
        return report.lines[:_LINES_REPORTED]
    return said.strip().splitlines()[-_LINES_SAID:]
