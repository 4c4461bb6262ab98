"""What is said of each plugin that ends, blocks or robs the process it is tried in."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from modular_tf.first_contact import trial
from modular_tf.first_contact.task import Task
from modular_tf.first_contact.trials import try_plugins
from tests.first_contact.conftest import PATIENCE_S


@pytest.mark.parametrize(
    ("deed", "rule", "said"),
    [
        ("CRASH", "LD-060", "crashed with SIGSEGV (signal 11)"),
        ("ABORT", "LD-060", "aborted with SIGABRT (signal 6)"),
        ("EXIT_0", "LD-060", "ended the process with exit status 0"),
        ("EXIT_3", "LD-060", "ended the process with exit status 3"),
        ("KILLED", "LD-060", "was killed with SIGKILL (signal 9, perhaps for want of memory)"),
        ("CLOSE_ALL", "LD-062", "closed a descriptor that it had not opened"),
        ("CLOSE_OUTPUT", "LD-062", "closed or replaced standard output"),
    ],
)
def test_a_misdeed_is_named_with_its_call(deed, rule, said, verdict):
    violation = verdict(deed)

    assert violation.rule_id == rule
    assert violation.message.startswith(f"{said} in SE_InitPlugin, at first contact")


@pytest.mark.parametrize(
    ("place", "call"),
    [
        ("CONSTRUCTOR", "a constructor of the library"),
        ("INIT", "SE_InitPlugin"),
        ("CREATE_DEVICE", "create_device of device 1"),
        ("MEMORY_USAGE", "device_memory_usage of device 0"),
        ("DESTROY_DEVICE", "destroy_device"),
    ],
)
def test_the_call_that_crashed_is_known(place, call, verdict):
    assert f"crashed with SIGSEGV (signal 11) in {call}," in verdict("CRASH", place).message


def test_a_call_that_hangs_is_ended(verdict, tmp_path, monkeypatch):
    """Its time is up as soon as it hangs, however long it took until then."""
    pid_file = tmp_path / "pid"

    def clock():
        hangs = pid_file.exists() and pid_file.read_text().endswith("\n")
        return time.monotonic() + (PATIENCE_S if hangs else 0)

    monkeypatch.setenv("MISDEED_PID", str(pid_file))
    monkeypatch.setattr(trial, "time", SimpleNamespace(monotonic=clock, sleep=time.sleep))
    violation = verdict("HANG")

    assert violation.rule_id == "LD-061"
    assert violation.message.startswith("did not return within 60 s in SE_InitPlugin")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_an_exception_that_nobody_can_catch_is_told_in_its_own_words(verdict):
    violation = verdict("THROW", "CONSTRUCTOR")

    assert violation.rule_id == "LD-060"
    assert "aborted with SIGABRT" in violation.message
    assert "what():  no such driver" in violation.message


def test_an_exception_that_the_host_can_catch_is_left_to_the_loader(verdict):
    """Its rule there is SE-002: no process ends of it."""
    assert verdict("THROW", "INIT") is None


def test_last_words_are_shown_in_a_line_that_no_terminal_obeys(verdict):
    assert verdict("LAST_WORDS").message.endswith("; it last wrote: first / no driver?[0m")


@pytest.mark.parametrize("deed", ["NOTHING", "NOISE"])
def test_what_a_plugin_writes_is_no_misdeed(deed, verdict, capfd):
    assert verdict(deed) is None
    assert capfd.readouterr() == ("", "")


def test_what_a_plugin_writes_into_the_report_does_no_harm(verdict):
    assert verdict("SCRIBBLE") is None


@pytest.mark.parametrize("deed", ["FORK", "DAEMON"])
def test_nobody_waits_for_what_a_plugin_started(deed, verdict, tmp_path, monkeypatch):
    """It holds all pipes open: were they waited for, the time would be up."""
    monkeypatch.setenv("MISDEED_PID", str(tmp_path / "pid"))

    assert verdict(deed) is None
    if deed == "FORK":
        assert _is_gone(_pid_in(tmp_path / "pid"))
    else:  # it left the process group
        os.kill(_pid_in(tmp_path / "pid"), signal.SIGKILL)


def _pid_in(file: Path) -> int:
    for _ in range(1000):
        if file.exists() and file.read_text().endswith("\n"):
            return int(file.read_text())
        time.sleep(0.01)
    raise AssertionError("the plugin started nothing")


def _is_gone(pid: int) -> bool:
    for _ in range(1000):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":  # killed, and not yet taken by the machine's init
            return True
        time.sleep(0.01)
    return False


def test_the_rfcs_example_dereferences_null(rfc_example):
    (violation,) = try_plugins([Task("example", str(rfc_example))], seconds=PATIENCE_S)

    assert violation.rule_id == "LD-060"
    assert "crashed with SIGSEGV (signal 11) in SE_InitPlugin" in violation.message


def test_verdicts_come_in_the_order_of_the_tasks(misdeed):
    deeds = ["NOTHING", "EXIT_3", "NOTHING", "CRASH", "EXIT_0", "NOTHING", "ABORT", "NOTHING"]
    tasks = [Task(deed, str(misdeed(deed))) for deed in deeds]
    found = [v and v.message for v in try_plugins(tasks, seconds=PATIENCE_S)]

    assert [bool(message) for message in found] == [deed != "NOTHING" for deed in deeds]
    assert "exit status 3" in found[1]
    assert "SIGSEGV" in found[3]
    assert "exit status 0" in found[4]
    assert "SIGABRT" in found[6]


def test_a_library_that_cannot_be_mapped_is_left_to_the_loader(tmp_path):
    """Its rule there is LD-050."""
    (tmp_path / "libtext.so").write_text("no library")

    assert try_plugins([Task("text", str(tmp_path / "libtext.so"))], seconds=PATIENCE_S) == [None]
