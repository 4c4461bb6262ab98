"""The process of a group: makes its subject, tries the checks, and ends."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import traceback
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from modular_tf.check.calls import listen
from modular_tf.check.catalogue import all_checks
from modular_tf.check.expectation import Blocked
from modular_tf.check.isolation.progress import FRESH_STATUS, Progress
from modular_tf.check.judgement import tried
from modular_tf.check.memory_watch import (
    MEMORY_RULES,
    Depth,
    HeapWatch,
    is_damaged,
    loading,
    raise_harm_to_heap,
)
from modular_tf.check.outcome import Verdict
from modular_tf.check.sequences.stage import GROUP, SequenceStage
from modular_tf.check.session import session_of
from modular_tf.errors import ModularTFError
from modular_tf.native.crash_report import report_crashes
from modular_tf.processes.child import REPORT, become_child, close_streams, dump_no_core

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.check import Check
    from modular_tf.check.isolation.call_log import CallLog
    from modular_tf.check.isolation.job import Job
    from modular_tf.check.outcome import Outcome
    from modular_tf.check.session import Session


def run(job: Job, log: CallLog, ends: Sequence[int], parent: int) -> NoReturn:
    """Try the checks of a job and end the process.

    Args:
        job: The checks, and their subject.
        log: Takes the calls.
        ends: What become standard output, standard error, and the report.
        parent: The process that watches over this one, and whose end is this one's.
    """
    try:
        become_child(ends, parent)
        progress = Progress()
    except BaseException:  # noqa: BLE001  (nobody can be told; the parent sees it end)
        os._exit(1)
    try:
        _settle_in(job, log)
        _go_through(job, log, progress)
        close_streams()
    except BaseException:  # noqa: BLE001  (none of ours may count as the plugin's)
        progress.fail(traceback.format_exc())
    os._exit(0)


def _settle_in(job: Job, log: CallLog) -> None:
    dump_no_core()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # nobody but the plugin sends it here
    faulthandler.disable()  # the environment may ask for it, and it would take our signals
    gc.enable()
    os.environ.update(job.environment)
    listen(log.add)
    report_crashes(REPORT)


def _go_through(job: Job, log: CallLog, progress: Progress) -> None:
    progress.begin()
    try:
        stage = _loaded(job)
    except (Blocked, ModularTFError) as error:
        progress.block(str(error))
        return
    progress.ready()
    checks = [all_checks()[check_id] for check_id in job.checks]
    for check in checks:
        log.clear()
        progress.enter(check.id)
        _try(check, stage, job, progress)
    log.clear()
    progress.close()
    stage.close()
    progress.finish()


def _loaded(job: Job) -> Session:
    with loading():
        searches = all_checks()[job.checks[0]].group == GROUP
        stage = SequenceStage(job.target) if searches else session_of(job.target)
        rule_id = MEMORY_RULES.get(job.target.kind)
        if rule_id is not None:  # a library is not loaded yet
            raise_harm_to_heap(HeapWatch(), "the plugin was loaded", rule_id, Depth.ALL)
    return stage


def _try(check: Check, stage: Session, job: Job, progress: Progress) -> None:
    outcome = tried(check, stage, subject=job.subject, reached=job.target.reached)
    lost = progress.lost_streams()
    progress.leave(_without_streams(outcome, lost) if lost else outcome)
    if lost or is_damaged():  # what comes next could not be trusted
        os._exit(FRESH_STATUS)


def _without_streams(outcome: Outcome, lost: str) -> Outcome:
    return replace(outcome, verdict=Verdict.FAILED, message=f"the plugin closed or replaced {lost}")
