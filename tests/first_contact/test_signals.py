"""A signal does to a trial what it does to an application; what the trial itself uses counts."""

import shutil
import signal

import pytest

from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import try_plugins
from modular_tf.loading.task import Task
from modular_tf.processes.ending import signal_in_full
from tests.first_contact.conftest import PATIENT, find_alone, find_one

STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

# Signals come to an application as Python leaves them, each to a fork of it.
_APPLICATION = """
    import faulthandler, os, signal, sys
    faulthandler.disable()
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who began this process may ignore it
    for number in map(int, sys.argv[1:]):
        pid = os.fork()
        if pid == 0:
            signal.raise_signal(number)
            os._exit(0)
        print(int(os.waitpid(pid, 0)[1] != 0), flush=True)  # or a child would say it again
"""


@pytest.fixture
def raising(misdeed, tmp_path):
    """Return a plugin that sends its process a signal while it is mapped."""
    built = misdeed("RAISE", "CONSTRUCTOR")
    return lambda number: str(shutil.copy(built, tmp_path / f"libraise_{int(number)}.so"))


def test_a_signal_ends_a_trial_where_it_would_end_the_application(raising, run_python):
    numbers = sorted(signal.valid_signals() - set(STOPS))
    ends = run_python(_APPLICATION, *map(str, map(int, numbers))).stdout.split()

    findings = try_plugins([Task("x", raising(number)) for number in numbers], PATIENT)

    assert [str(int(found.incident is not None)) for found in findings] == ends
    assert {"0", "1"} == set(ends)
    asked = findings[numbers.index(signal.SIGQUIT)].incident
    assert (asked.violation.rule_id, asked.signal) == ("LD-060", signal.SIGQUIT)
    assert asked.violation.message.startswith("was ended by SIGQUIT (signal 3) in a constructor")
    assert any("libraise_3.so" in frame for frame in asked.backtrace)


def test_a_signal_that_stops_the_process_is_reported(raising):
    findings = try_plugins([Task("x", raising(number)) for number in STOPS], PATIENT)

    for number, found in zip(STOPS, findings, strict=True):
        violation = found.incident.violation
        assert violation.rule_id == "LD-061"
        assert violation.message.startswith(f"was stopped by {signal_in_full(number)}")


def test_a_hang_is_found_also_if_the_plugin_keeps_all_signals_away():
    incident = find_one("DEAFEN", limits=Limits(seconds=2.0)).incident

    assert (incident.violation.rule_id, incident.last_call) == ("LD-061", "SE_InitPlugin")


def test_a_crash_report_is_not_written_into_a_file_of_the_plugin(tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    monkeypatch.setenv("MISDEED_NOTES", str(notes))
    incident = find_alone("TAKE_REPORT").incident

    assert (incident.violation.rule_id, incident.signal) == ("LD-060", signal.SIGSEGV)
    assert notes.read_bytes() == b""
