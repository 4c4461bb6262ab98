"""The processes themselves: order, faults of the kit, interruption, and their end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

from modular_tf.check.job import Limits
from modular_tf.check.outcome import Verdict
from modular_tf.check.run import CheckProcesses, JobResult, run_checks
from modular_tf.codec import encode
from tests.check.isolation.conftest import GROUP, READS, READS_AGAIN, RENAMES, job_of, misbehaving
from tests.first_contact.conftest import processes_with

_START = "modular_tf.processes.interpreter._LIKE_HERE"
_FAULTY_START = """\
import json, sys
path, _, job = json.loads(sys.argv[1])
sys.path[:] = path
from dataclasses import replace
from modular_tf.check.catalogue import all_checks
def divide(ground): 1 / 0
checks = all_checks()
checks["FS-235"] = replace(checks["FS-235"], run=divide)
from modular_tf.check.watcher import serve
serve(**job)
"""


def test_outcomes_come_in_the_order_of_the_plan():
    first, second = job_of("NOTHING"), job_of("NOTHING", checks=(READS_AGAIN, READS))
    reported = []
    outcomes = run_checks([first, second], Limits(jobs=2), reported.append).outcomes

    assert [outcome.check_id for outcome in outcomes] == [*GROUP, READS_AGAIN, READS]
    assert {outcome.subject for outcome in outcomes} == {"misdeed://"}
    assert sorted(reported, key=str) == sorted(outcomes, key=str)


def test_a_fault_of_the_kit_is_no_verdict(monkeypatch):
    monkeypatch.setattr(_START, _FAULTY_START)

    run = run_checks([job_of("NOTHING")], Limits(jobs=1))
    (fault,) = run.faults

    assert fault.check_id == RENAMES
    assert re.search(r"(?s)FS-235 on misdeed://.*ZeroDivisionError", str(fault))
    assert [outcome.check_id for outcome in run.outcomes] == [i for i in GROUP if i != RENAMES]


def test_a_check_of_which_nothing_came_is_a_fault():
    job = job_of("NOTHING")
    result = JobResult(job, job.checks)
    result.take({"outcome": encode(job.outcome(READS, Verdict.PASSED, ""))})
    result.take({"finished": 1})

    assert [outcome.check_id for outcome in result.outcomes] == [READS]
    assert result.fault.check_id == RENAMES


def test_processes_can_be_used_again_and_end():
    """Jobs that want to be alone have one watcher; a zygote that a plugin ends is replaced."""
    job = replace(job_of("NOTHING", checks=(READS,)), alone="device")
    with CheckProcesses(Limits(jobs=2)) as processes:
        results = processes.run([job, job])
        assert len(processes._lanes) == 1
        zygote = processes._zygotes.warm()._process.pid
        os.kill(zygote, signal.SIGKILL)
        os.waitid(os.P_PID, zygote, os.WEXITED | os.WNOWAIT)  # its watcher does nothing from now on
        results += processes.run([job])
        scratch = processes._scratch

    assert [[o.verdict for o in result.outcomes] for result in results] == [[Verdict.PASSED]] * 3
    assert not Path(scratch).exists()
    processes.close()


_INTERRUPTED = """
    import sys
    from modular_tf.check.job import Job, Limits
    from modular_tf.check.outcome import Pass
    from modular_tf.check.run import InterruptedRun, run_checks
    from modular_tf.check.target import Target
    target = Target(sys.argv[1], "filesystem", Pass.RAW, scheme="misdeed")
    job = Job(target, "misdeed://", ("FS-156", "FS-235"))
    def report(outcome):
        print(outcome.check_id, outcome.verdict.value, flush=True)
    try:
        run_checks([job], Limits(patience=100), report)
    except InterruptedRun as cut:
        print("kept", *(outcome.check_id for outcome in cut.run.outcomes))
"""


def test_an_interrupted_run_has_what_is_known_and_leaves_nothing(tmp_path):
    note = tmp_path / "pid"
    hanging = shutil.copy(misbehaving("HANG"), tmp_path / "libhang.so")
    with subprocess.Popen(
        [sys.executable, "-c", dedent(_INTERRUPTED), hanging],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "MISDEED_PID": str(note)},
        start_new_session=True,
    ) as child:
        assert child.stdout.readline() == "FS-156 passed\n"
        while not (note.exists() and note.read_text().endswith("\n")):
            time.sleep(0.01)
        # The plugin has a process number of its own, and so can name no process out here.
        assert note.read_text().strip() not in processes_with(hanging)
        child.send_signal(signal.SIGINT)
        assert child.stdout.read() == "kept FS-156\n"

    assert child.returncode == 0
    assert processes_with(hanging) == []
