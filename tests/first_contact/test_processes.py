"""The child processes themselves: what they are given, and that nothing is left of them."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from modular_tf.first_contact import task
from modular_tf.first_contact.task import Task, child_environment, find_interpreter
from modular_tf.first_contact.trials import try_plugins
from modular_tf.report import State
from modular_tf.service import PluginService
from tests.first_contact.conftest import PATIENCE_S

TRY = """
    import os, sys, signal
    from modular_tf.first_contact.task import Task
    from modular_tf.first_contact.trials import try_plugins
    def attempt(*files, seconds=60.0):
        return try_plugins([Task("x", file) for file in files], seconds=seconds)
"""


def notes_of(misdeed, tmp_path, monkeypatch) -> list[str]:
    """Return what a plugin saw at its first contact."""
    monkeypatch.setenv("MISDEED_NOTES", str(tmp_path / "notes"))
    looking = Task("looks", str(misdeed("LOOK_AROUND", "CONSTRUCTOR")))
    assert try_plugins([looking], seconds=PATIENCE_S) == [None]
    return (tmp_path / "notes").read_text().splitlines()


def test_no_descriptor_of_the_application_is_inherited(misdeed, tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("x")
    kept = os.open(tmp_path / "secret", os.O_RDONLY)
    inheritable = os.dup2(kept, 900, inheritable=True)
    try:
        notes = notes_of(misdeed, tmp_path, monkeypatch)
    finally:
        os.close(kept)
        os.close(inheritable)

    # The standard streams, the report, and the stub in memory that maps the plugin.
    assert "fd 900" not in notes
    assert len([line for line in notes if line.startswith("fd ")]) <= 5


def test_no_core_is_dumped(misdeed, tmp_path, monkeypatch):
    """At 0 the kernel would still pipe it to a program that asks for dumps."""
    notes = notes_of(misdeed, tmp_path, monkeypatch)
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)

    assert f"core {1 if hard else 0}" in notes


@pytest.mark.parametrize("locale", ["C.UTF-8", "C", "POSIX"])
@pytest.mark.parametrize("mode", ["0", "1"])
def test_a_file_is_found_whatever_its_name(locale, mode, misdeed, run_python, tmp_path):
    name = os.fsdecode(b"lib\xff \xc3\xa9$ORIGIN'\".so")
    shutil.copy(misdeed("CRASH"), tmp_path / name)
    code = """
    [name] = [name for name in os.listdir() if name.endswith(".so")]
    [found] = attempt(os.path.abspath(name))
    print(found.rule_id)
    """
    environment = {"LC_ALL": locale, "PYTHONUTF8": mode}

    assert run_python(TRY + code, env=environment).stdout == "LD-060\n"


def test_plugins_see_the_environment_but_for_what_is_ours(misdeed, tmp_path, monkeypatch):
    monkeypatch.setenv("VENDOR_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MODULAR_TF_PLUGIN_PATH", "x")
    monkeypatch.setenv("NOTIFY_SOCKET", "@supervisor")
    notes = notes_of(misdeed, tmp_path, monkeypatch)

    assert "VENDOR_VISIBLE_DEVICES=1" in notes
    assert [line for line in notes if line.startswith(("PYTHON", "MODULAR_TF", "NOTIFY"))] == []


def test_the_environment_is_a_copy():
    variables = {"A": "1", "LISTEN_FDS": "3"}

    assert child_environment(variables) == {"A": "1"}
    assert variables == {"A": "1", "LISTEN_FDS": "3"}


def test_neither_processes_nor_descriptors_are_left(misdeed, run_python):
    deeds = ["CRASH", "EXIT_3", "NOTHING", "FORK", "CLOSE_ALL", "NOISE"]
    code = """
    before = set(os.listdir("/proc/self/fd"))
    for _ in range(3):
        assert [bool(v) for v in attempt(*sys.argv[1:])] == [True, True, False, False, True, False]
    assert set(os.listdir("/proc/self/fd")) == before
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("none")
    """
    assert run_python(TRY + code, *map(misdeed, deeds)).stdout == "none\n"


def test_an_application_without_standard_streams(misdeed, run_python):
    code = """
    said = os.dup(1)
    os.closerange(0, 3)
    crash, good = attempt(*sys.argv[1:])
    os.write(said, repr((crash.rule_id, good)).encode())
    """
    said = run_python(TRY + code, misdeed("CRASH"), misdeed("NOTHING")).stdout

    assert said == "('LD-060', None)"


def test_an_application_that_takes_no_notice_of_its_children(misdeed, run_python):
    """The kernel takes them away then, and with them the exit status."""
    code = """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    crash, good = attempt(*sys.argv[1:])
    print(crash.message)
    assert good is None
    """
    said = run_python(TRY + code, misdeed("CRASH"), misdeed("NOTHING")).stdout

    assert "ended the process in SE_InitPlugin" in said


def test_a_child_ends_with_the_application(misdeed, run_python, tmp_path):
    pid_file = tmp_path / "pid"
    code = """
    import threading, time
    def die():
        while not (os.path.exists(sys.argv[2]) and open(sys.argv[2]).read().endswith("\\n")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    threading.Thread(target=die, daemon=True).start()
    attempt(sys.argv[1])
    """
    hanging = misdeed("HANG")
    environment = {"MISDEED_PID": str(pid_file)}
    run_python(TRY + code, hanging, pid_file, env=environment, status=-signal.SIGKILL)

    assert _is_gone(int(pid_file.read_text()))


def test_an_interrupted_wait_ends_the_child(misdeed, run_python, tmp_path):
    pid_file = tmp_path / "pid"
    code = """
    import threading, time
    def interrupt():
        while not (os.path.exists(sys.argv[2]) and open(sys.argv[2]).read().endswith("\\n")):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        attempt(sys.argv[1])
    except KeyboardInterrupt:
        os.kill(int(open(sys.argv[2]).read()), 0)
    """
    environment = {"MISDEED_PID": str(pid_file)}
    child = run_python(TRY + code, misdeed("HANG"), pid_file, env=environment, status=1)

    assert "ProcessLookupError" in child.stderr


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


# ---- The interpreter -----------------------------------------------------------------------------


@pytest.fixture
def interpreter(monkeypatch):
    """Change what the interpreter says of itself."""
    monkeypatch.delitem(sys.modules, "multiprocessing.spawn", raising=False)
    return lambda **values: [
        monkeypatch.setattr(sys, name, value, raising=False) for name, value in values.items()
    ]


def test_the_running_interpreter_is_used(interpreter):
    interpreter()

    assert find_interpreter() == sys.executable


@pytest.mark.parametrize("executable", ["", None, "/usr/sbin/webserver"])
def test_an_embedded_interpreter_falls_back_to_the_command_beside_it(
    executable, interpreter, tmp_path
):
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).symlink_to(sys.executable)
    interpreter(executable=executable, exec_prefix=str(tmp_path))

    assert find_interpreter() == str(tmp_path / "bin" / name)


def test_a_frozen_application_is_never_started_again(interpreter, tmp_path):
    (tmp_path / "python-app").write_text("")
    (tmp_path / "python-app").chmod(0o755)
    interpreter(
        executable=str(tmp_path / "python-app"),
        frozen=True,
        exec_prefix=str(tmp_path),
        base_exec_prefix=str(tmp_path),
    )

    assert find_interpreter() is None


def test_an_application_can_name_an_interpreter(interpreter, monkeypatch):
    interpreter(executable="/opt/app", frozen=True)
    spawn = SimpleNamespace(get_executable=lambda: b"/opt/python")
    monkeypatch.setitem(sys.modules, "multiprocessing.spawn", spawn)

    assert find_interpreter() == "/opt/python"


def test_a_plugin_that_cannot_be_tried_is_not_loaded(misdeed, monkeypatch):
    library = misdeed("NOTHING")
    monkeypatch.setattr("modular_tf.first_contact.trials.find_interpreter", lambda: None)
    with PluginService(plugin_paths=[library], bundled=False) as service:
        (record,) = service.load().plugins

    assert (record.state, record.reason.rule) == (State.FAILED, "LD-063")
    assert "multiprocessing.set_executable" in record.reason.remedy


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/nowhere/python3", "no process can be started: .*No such file"),
        ("/bin/false", "the child process ended the process with exit status 1 before it began"),
    ],
)
def test_what_is_no_interpreter_is_not_the_plugins_fault(python, said, misdeed, monkeypatch):
    monkeypatch.setattr("modular_tf.first_contact.trials.find_interpreter", lambda: python)
    (violation,) = try_plugins([Task("x", str(misdeed("NOTHING")))], seconds=PATIENCE_S)

    assert violation.rule_id == "LD-063"
    assert re.search(said, violation.message)


def test_a_fault_of_the_hosts_own_code_is_not_the_plugins(misdeed, monkeypatch):
    monkeypatch.setattr(task, "_FOREIGN_MODULES", ())
    (violation,) = try_plugins([Task("x", str(misdeed("NOTHING")))], seconds=PATIENCE_S)

    assert violation.rule_id == "LD-063"
    assert "_cffi_backend" in violation.message
