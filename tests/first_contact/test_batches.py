"""One warm process serves batch after batch, and comes again when it is gone."""

import os
import signal
from pathlib import Path

from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import Trials, try_plugins
from modular_tf.loading.task import Task
from tests.first_contact.conftest import PATIENT, build_misdeed


def task(deed):
    return Task(deed, str(build_misdeed(deed)))


def children():
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


def messages(found):
    return [f.incident and f.incident.violation.message for f in found]


def test_one_process_serves_batch_after_batch_from_the_first_plugin_on():
    before = children()
    with Trials(PATIENT) as trials:
        assert trials.try_plugins([]) == []
        assert children() == before
        (first,) = trials.try_plugins([task("NOTHING")])
        started = children() - before
        assert len(started) == 1
        assert "SIGSEGV" in messages(trials.try_plugins([task("CRASH")]))[0]
        assert trials.try_plugins([task("NOTHING")]) == [first]
        assert children() - before == started
    assert children() == before


def test_a_process_that_somebody_else_ended_between_batches_comes_again():
    before = children()
    with Trials(PATIENT) as trials:
        trials.try_plugins([task("NOTHING")])
        (zygote,) = children() - before
        os.kill(int(zygote), signal.SIGKILL)
        os.waitid(os.P_PID, int(zygote), os.WEXITED | os.WNOWAIT)

        assert messages(trials.try_plugins([task("NOTHING"), task("EXIT_3")]))[0] is None
    assert children() == before


def test_nobody_reports_for_another_process(monkeypatch):
    """A process can open the pipes of another one of its user."""
    monkeypatch.setattr("modular_tf.processes.zygote_process._SECLUDES", False)
    _, hung = try_plugins([task("FORGE_SIBLINGS"), task("HANG")], Limits(seconds=3))

    assert hung.incident.violation.rule_id == "LD-061"
