"""What is said of the processes that a plugin starts, and that none of them is left."""

import re
import shutil
import time

import pytest

from modular_tf.first_contact.trials import try_plugins
from modular_tf.loading.task import Task
from tests.first_contact.conftest import PATIENT, build_misdeed, processes_with


@pytest.mark.parametrize(
    ("deed", "secluded"),
    [
        ("DAEMON", True),
        ("FORK_MANY", False),
        ("FORK_AND_CRASH", False),
        ("ESCAPE", True),  # it ends its watcher first, which only seclusion outlives
    ],
)
def test_whatever_a_plugin_started_is_gone(deed, secluded, tmp_path, monkeypatch):
    monkeypatch.setattr("modular_tf.processes.zygote_process._SECLUDES", secluded)
    monkeypatch.setenv("MISDEED_PID", str(tmp_path / "pid"))
    library = shutil.copy(build_misdeed(deed), tmp_path / "libown.so")
    (found,) = try_plugins([Task("own", str(library))], PATIENT)

    message = found.incident.violation.message
    many = r"started (1[7-9]|[2-9]\d) processes \(16 may run\)"
    assert deed != "FORK_MANY" or re.match(many, message), message
    deadline = time.monotonic() + 20  # who was killed may still be about to end
    while (left := processes_with(library)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []


_ENDED_BEFORE_ITS_REPORT_IS_READ = """
    import os, sys, time
    from modular_tf.first_contact import zygote
    from modular_tf.processes.descendants import adopt_orphans
    from modular_tf.first_contact.finding import Limits
    from modular_tf.loading.task import Task

    adopt_orphans()
    nobody, _ = os.pipe()
    watched = zygote.Trial(Task("own", sys.argv[1]), Limits(), nobody)
    while not watched._child.has_ended():
        time.sleep(0.01)
    print(watched.finding().incident.violation.rule_id)
"""


def test_what_was_started_counts_also_if_the_end_is_seen_before_the_report(misdeed, run_python):
    found = run_python(_ENDED_BEFORE_ITS_REPORT_IS_READ, misdeed("FORK"))

    assert found.stdout.split() == ["LD-068"]


@pytest.mark.parametrize(
    ("deed", "secluded"),
    [
        ("KILL_PARENT", False),
        ("STOP_PARENT", True),
        ("STOP_PARENT", False),
        ("KILL_ANCESTORS", True),
        ("KILL_ANCESTORS", False),
    ],
)
def test_who_ends_the_watcher_is_found_and_the_rest_goes_on(deed, secluded, misdeed, monkeypatch):
    monkeypatch.setattr("modular_tf.processes.zygote_process._SECLUDES", secluded)
    deeds = ["NOTHING", "CRASH", deed, "NOTHING", "NOTHING", "EXIT_3"]
    tasks = [Task(name, str(misdeed(name))) for name in deeds]
    messages = [
        found.incident and found.incident.violation.message for found in try_plugins(tasks, PATIENT)
    ]

    assert [bool(message) for message in messages] == [name != "NOTHING" for name in deeds]
    ways = ("ended the process that watched over it", "stopped the processes that watched over it")
    assert messages[2].startswith(ways)
    assert "SIGSEGV" in messages[1]
    assert "exit status 3" in messages[5]
