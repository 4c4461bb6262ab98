"""The process of a group: loads the plugin, tries the checks, and ends.

What it reports to its watcher is `{"begins": 1}`; `{"ready": 1}` or `{"blocked": WHY, "see": IDS}`
about the plugin; `{"enters": ID}` and `{"outcome": OUTCOME}` for each check; `{"closes": 1}`,
`{"harm": OUTCOME}` where the last outcome became another while the plugin was taken down, and
`{"done": 1}` as the last; or `{"fault": TEXT}` where the kit itself failed. What the native core
adds stands in `native/core/process_end.h`.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import time
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.calls import listen, once_each
from modular_tf.check.catalogue import all_checks
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.memory_watch import (
    MEMORY_RULES,
    Breach,
    Depth,
    is_damaged,
    loading,
    new_violation,
    note_damage,
    raise_harm_to_heap,
)
from modular_tf.check.outcome import Outcome, Pass, Verdict
from modular_tf.check.sequences import session_of_group
from modular_tf.codec import encode
from modular_tf.errors import ModularTFError
from modular_tf.native.crash_report import report_crashes
from modular_tf.processes.child import REPORT, Report, become_child, close_streams, dump_no_core
from modular_tf.rules import Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from modular_tf.check.call_log import CallLog
    from modular_tf.check.check import Check
    from modular_tf.check.job import Job
    from modular_tf.check.session import Session

FRESH_STATUS = 118
"""The exit status where checks are left that need another process."""

MOST_CALLS = 20
"""How many calls an outcome names, the last."""

_VERDICTS: Mapping[Severity, Verdict] = {
    Severity.NOTE: Verdict.NOTED,
    Severity.WARNING: Verdict.WARNED,
    Severity.ERROR: Verdict.FAILED,
}
"""The mildest first."""


def run(job: Job, log: CallLog, ends: Sequence[int], parent: int) -> NoReturn:
    """Try the checks of a job, with its calls in the log, and end the process.

    The arguments `ends` and `parent` are those of `become_child`.
    """
    try:
        become_child(ends, parent)
        report = _OwnReport()
    except BaseException:  # noqa: BLE001  (there is no report yet; the parent sees it end)
        os._exit(1)
    try:
        dump_no_core()
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nobody but the plugin sends it here
        faulthandler.disable()  # the environment may ask for it, and it would take our signals
        gc.enable()
        os.environ.update(job.environment)
        listen(log.add)
        report_crashes(REPORT)
        _try_all(job, log, report)
        close_streams()
    except BaseException:  # noqa: BLE001  (none of ours may count as the plugin's)
        report.write({"fault": traceback.format_exc()})
    os._exit(0)


class _OwnReport(Report):
    """The report of the process that made it alone: a plugin may fork, and come back twice."""

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()

    def write(self, entry: dict[str, Any]) -> None:
        """Write an entry, or end a process that is another."""
        if os.getpid() != self._process:
            os._exit(0)
        super().write(entry)


def _try_all(job: Job, log: CallLog, report: Report) -> None:
    report.write({"begins": 1})
    try:
        with loading():
            session = session_of_group(job.target, all_checks()[job.checks[0]].group)
            rule_id = MEMORY_RULES.get(job.target.kind)
            if rule_id is not None:  # a library is not loaded yet
                raise_harm_to_heap("the plugin was loaded", rule_id, Depth.ALL)
    except (Blocked, ModularTFError) as error:
        report.write(Blocked.by(error).as_entry())
        return
    report.write({"ready": 1})
    for check in [all_checks()[check_id] for check_id in job.checks]:
        log.clear()
        report.write({"enters": check.id})
        outcome = tried(check, session, subject=job.subject, reached=job.target.reached)
        if lost := report.lost_streams():
            message = f"the plugin closed or replaced {lost}"
            outcome = replace(
                outcome, verdict=Verdict.FAILED, message=message, see=(), wants_root=False
            )
        report.write({"outcome": encode(outcome)})
        if lost or is_damaged():  # what comes next could not be trusted
            os._exit(FRESH_STATUS)
    log.clear()
    report.write({"closes": 1})
    session.calls.clear()
    harmed = taken_down(session, outcome)
    if harmed is not outcome:
        report.write({"harm": encode(harmed)})
    report.write({"done": 1})


def taken_down(session: Session, last: Outcome) -> Outcome:
    """Take the plugin down, and return the outcome of the last check.

    It has failed where the plugin did harm to memory meanwhile: what the check left open, and how
    the plugin ends, is part of it.
    """
    try:
        session.close()
    except Breach as breach:
        note_damage()
        message = f"{breach.message}, while the plugin was taken down"
        if last.verdict is not Verdict.PASSED:
            message = f"{message}; before that: {last.message}"
        calls = (*last.calls, *once_each(session.calls))[-MOST_CALLS:]
        return replace(
            last,
            verdict=Verdict.FAILED,
            message=message,
            expected=breach.expected,
            found=breach.found,
            calls=calls,
            broken_rule=breach.rule_id,
        )
    return last


def tried(check: Check, session: Session, *, subject: str, reached: Pass) -> Outcome:
    """Try a check in this process, and return its outcome.

    What the check raises that is no finding is a fault of the check's, and goes on to the caller.
    """
    session.calls.clear()
    begun = time.monotonic()
    found: dict[str, Any] = {"verdict": Verdict.PASSED}
    try:
        _run_watched(check, session, reached)
    except Deviation as deviation:
        found = {
            "verdict": _verdict(check, deviation),
            "message": deviation.message,
            "expected": deviation.expected,
            "found": deviation.found,
            "broken_rule": deviation.rule_id if isinstance(deviation, Breach) else "",
        }
    except Unsupported as unsupported:
        found = {"verdict": Verdict.SKIPPED, "message": str(unsupported)}
    except Blocked as blocked:
        found = {
            "verdict": Verdict.BLOCKED,
            "message": str(blocked),
            "found": blocked.found,
            "see": blocked.see,
            "wants_root": blocked.wants_root,
        }
    return Outcome(
        check_id=check.id,
        subject=subject,
        reached=reached,
        calls=tuple(once_each(session.calls)[-MOST_CALLS:]),
        seconds=time.monotonic() - begun,
        **found,
    )


def _run_watched(check: Check, session: Session, reached: Pass) -> None:
    try:
        # Through the host, defaults may replace what the plugin lacks.
        lacking = session.lacks(check.needs) if reached is Pass.RAW else None
        if lacking is not None:
            raise Unsupported(f"the plugin has no {lacking}")
        with session.workspace(check) as workspace:
            check.run(workspace)
    finally:  # whatever else is found: it may come of this
        if reached is Pass.LIBRARY:  # what loading does to the heap is the finding of one check
            new_violation(Depth.ALL)
        else:
            raise_harm_to_heap("the check", MEMORY_RULES[check.kind], Depth.ALL)


def _verdict(check: Check, deviation: Deviation) -> Verdict:
    if isinstance(deviation, Breach):
        note_damage()
        return Verdict.FAILED
    by_rule = check.rule.severity
    severities = list(_VERDICTS)
    return _VERDICTS[min(by_rule, deviation.severity or by_rule, key=severities.index)]
