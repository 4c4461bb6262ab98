"""What a plugin does to the process of its checks is the verdict of one, and the others go on."""

from __future__ import annotations

import json
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from modular_tf.check.job import Job, Limits
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from modular_tf.codec import encode
from modular_tf.processes.ending import signal_in_full
from tests.check.isolation.conftest import GROUP, READS, READS_AGAIN, RENAMES, job_of
from tests.first_contact.conftest import processes_with

_PATIENCE = 0.2


def _middle(outcomes):
    """Return the outcome in the middle, after a look at those around it."""
    assert [outcome.check_id for outcome in outcomes] == list(GROUP)
    before, middle, after = outcomes
    assert (before.verdict, after.verdict) == (Verdict.PASSED, Verdict.PASSED), outcomes
    return middle


@pytest.mark.parametrize(
    ("deed", "number", "words"),
    [
        ("CRASH", signal.SIGSEGV, "crashed with SIGSEGV"),
        ("THROW", signal.SIGABRT, "aborted with SIGABRT"),
    ],
)
def test_a_signal_is_a_crash(deed, number, words, outcomes_with):
    """Of each other end of a process tests/first_contact/test_verdicts.py shows the words."""
    crashed = _middle(outcomes_with(deed))
    incident = crashed.incident

    assert crashed.verdict is Verdict.CRASHED
    assert words in crashed.message
    assert incident.signal == number
    assert incident.last_call.startswith("rename_file(")
    assert crashed.calls[-1] == incident.last_call
    if deed == "CRASH":  # the backtrace begins in the plugin
        assert "libcrash_at_rename.so" in incident.backtrace[0]
        assert not any("python" in frame for frame in incident.backtrace)
    if deed == "THROW":  # an exception that nobody catches is named
        assert "no such driver" in incident.last_output


def test_an_end_of_the_process_is_an_exit(outcomes_with):
    exited = _middle(outcomes_with("LEAVE_3"))

    assert exited.verdict is Verdict.EXITED
    assert (exited.incident.exit_status, exited.incident.signal) == (3, None)
    assert exited.message == "the plugin ended the process with exit status 3"


def test_a_call_that_does_not_come_back_hangs():
    with CheckProcesses(Limits(jobs=1, patience=_PATIENCE)) as processes:
        (result,) = processes.run([job_of("SPIN")])

    hung = _middle(result.outcomes)
    assert (hung.verdict, hung.incident.signal) == (Verdict.HUNG, None)
    assert hung.incident.last_call.startswith("rename_file(")
    assert any("libspin" in frame for frame in hung.incident.backtrace)


@pytest.mark.parametrize(
    ("deed", "words"),
    [("CLOSE_ALL", "closed a descriptor"), ("CLOSE_OUTPUT", "closed or replaced standard output")],
)
def test_descriptors_of_others_are_not_the_plugins_to_close(deed, words, outcomes_with):
    failed = _middle(outcomes_with(deed))

    assert failed.verdict is Verdict.FAILED
    assert words in failed.message


def test_a_signal_that_stops_the_process_is_named(processes, tmp_path):
    job = job_of("RAISE")
    number = signal.SIGTSTP  # which the name of the library asks for
    library = shutil.copy(job.target.path, tmp_path / f"libraise_{int(number)}.so")
    (result,) = processes.run([replace(job, target=replace(job.target, path=str(library)))])

    stopped = _middle(result.outcomes)
    assert stopped.verdict is Verdict.HUNG
    assert stopped.message == f"the plugin was stopped by {signal_in_full(number)}"


def test_no_process_of_a_plugin_is_left(processes, tmp_path):
    job = job_of("DAEMON")
    library = shutil.copy(job.target.path, tmp_path / "libown.so")  # which no other test maps
    (result,) = processes.run([replace(job, target=replace(job.target, path=str(library)))])

    assert _middle(result.outcomes).verdict is Verdict.PASSED
    deadline = time.monotonic() + 30  # those that were killed may still be about to end
    while (left := processes_with(library)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []


# The application has process numbers of its own, so that nothing beyond it can be reached.
_BESIDE_AN_APPLICATION = """
    import json, sys
    from modular_tf.check.job import Job, Limits
    from modular_tf.check.run import CheckProcesses
    from modular_tf.codec import decode
    from modular_tf.processes.seclusion import run_secluded

    def attempt():
        with CheckProcesses(Limits(jobs=1)) as processes:
            (result,) = processes.run([decode(Job, json.loads(sys.argv[1]))])
        for outcome in result.outcomes:
            print(outcome.verdict.value, "watched over" in outcome.message, flush=True)

    run_secluded(attempt)
"""


def test_a_plugin_that_ends_all_processes_reaches_only_its_own(run_python):
    found = run_python(_BESIDE_AN_APPLICATION, json.dumps(encode(job_of("KILL_ALL"))))

    # The check before is blamed too where the watcher had not passed its result on yet.
    _, *others = found.stdout.splitlines()
    assert others == ["exited True", "passed False"]


def test_a_crash_while_loading_is_the_first_checks_and_one_at_the_end_the_last_ones(outcomes_with):
    first, *others = outcomes_with("CRASH", "CONSTRUCTOR")

    assert (first.check_id, first.verdict) == (READS, Verdict.CRASHED)
    assert "while the plugin was loaded" in first.message
    assert [(other.verdict, other.see) for other in others] == [(Verdict.BLOCKED, (READS,))] * 2
    *others, last = outcomes_with("CRASH", "CLEANUP")

    assert {other.verdict for other in others} == {Verdict.PASSED}
    assert (last.check_id, last.verdict) == (READS_AGAIN, Verdict.CRASHED)
    assert "taken down" in last.message


def test_what_cannot_be_loaded_blocks_all(processes, fixture_plugin):
    path = str(fixture_plugin("needed-missing"))
    job = Job(Target(path, "filesystem", Pass.RAW, scheme="fixture"), "fixture://", GROUP)
    (result,) = processes.run([job])

    assert [outcome.verdict for outcome in result.outcomes] == [Verdict.BLOCKED] * len(GROUP)
    assert all("libnobody_has_this" in outcome.message for outcome in result.outcomes)


def test_a_plugin_that_takes_every_process_down_is_judged_and_leaves_no_directories():
    job = job_of("CRASH", checks=(RENAMES, RENAMES, READS))
    with CheckProcesses(Limits(jobs=1)) as processes:
        (result,) = processes.run([job])
        assert list(Path(processes._scratch).iterdir()) == []

    verdicts = [outcome.verdict for outcome in result.outcomes]
    assert verdicts == [Verdict.CRASHED, Verdict.CRASHED, Verdict.PASSED]
