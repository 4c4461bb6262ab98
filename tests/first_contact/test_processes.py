"""The child processes themselves: what they are given, and that nothing is left of them."""

import errno
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

from modular_tf.errors import ResourceExhaustedError
from modular_tf.first_contact.trials import try_plugins
from modular_tf.loading.task import Task
from modular_tf.processes import interpreter as interpreter_of_trials
from modular_tf.processes import zygote_process
from modular_tf.processes.interpreter import find_interpreter
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from modular_tf.service.storage.notes import Notes
from tests.first_contact.conftest import PATIENT, find_alone, processes_with

CHECKOUT = Path(__file__).parents[2]
TRY = """
    import os, sys, signal
    from modular_tf.first_contact.finding import Limits
    from modular_tf.loading.task import Task
    from modular_tf.first_contact.trials import try_plugins
    def attempt(*files):
        found = try_plugins([Task("x", file) for file in files], Limits(seconds=60.0))
        return [f.incident and f.incident.violation for f in found]
"""


def test_a_plugin_sees_the_environment_without_what_is_ours(tmp_path, monkeypatch):
    monkeypatch.setenv("MISDEED_NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("VENDOR_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("MODULAR_TF_PLUGIN_PATH", "x")
    monkeypatch.setenv("NOTIFY_SOCKET", "@supervisor")
    monkeypatch.setenv("LISTEN_FDS", "3")
    (tmp_path / "secret").write_text("x")
    opened = os.open(tmp_path / "secret", os.O_RDONLY)
    inheritable = os.dup2(opened, 900, inheritable=True)
    try:
        found = find_alone("LOOK_AROUND", "CONSTRUCTOR")
    finally:
        os.close(opened)
        os.close(inheritable)

    assert found.incident is None
    notes = (tmp_path / "notes").read_text().splitlines()
    # The standard streams, the report, and what the plugin is mapped from.
    assert "fd 900" not in notes
    assert len([line for line in notes if line.startswith("fd ")]) <= 6
    # No core is dumped; at 0 the kernel would still pipe it to a program that asks for dumps.
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    assert f"core {1 if hard else 0}" in notes
    assert "VENDOR_VISIBLE_DEVICES=1" in notes
    assert [
        line for line in notes if line.startswith(("PYTHON", "MODULAR_TF", "NOTIFY", "LISTEN"))
    ] == []


def test_a_file_is_found_whatever_its_name(misdeed, run_python, tmp_path):
    name = os.fsdecode(b"lib\xff \xc3\xa9$ORIGIN'\".so")
    shutil.copy(misdeed("CRASH"), tmp_path / name)
    code = """
    [name] = [name for name in os.listdir() if name.endswith(".so")]
    [found] = attempt(os.path.abspath(name))
    print(found.rule_id)
    """
    environment = {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}

    assert run_python(TRY + code, env=environment).stdout == "LD-060\n"


def test_neither_processes_nor_descriptors_are_left(misdeed, run_forked):
    deeds = ["CRASH", "EXIT_3", "NOTHING", "FORK", "CLOSE_ALL", "NOISE", "KILL_PARENT"]
    code = """
    before = set(os.listdir("/proc/self/fd"))
    is_refused = [True, True, False, True, True, False, True]
    for _ in range(2):
        assert [bool(v) for v in attempt(*sys.argv[1:])] == is_refused
    assert set(os.listdir("/proc/self/fd")) == before
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("none")
    """
    assert run_forked(TRY + code, *map(misdeed, deeds)).stdout == "none\n"


@pytest.mark.parametrize(
    "way",
    [
        "os.closerange(0, 3)",
        # The kernel takes children away then, but it is not the application that waits for them.
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    ],
    ids=["without standard streams", "that takes no notice of its children"],
)
def test_plugins_are_tried_in_an_application(way, misdeed, run_forked):
    code = f"""
    output = os.dup(1)
    {way}
    crash, good = attempt(*sys.argv[1:])
    os.write(output, repr((crash.message, good)).encode())
    """
    found = run_forked(TRY + code, misdeed("CRASH"), misdeed("NOTHING")).stdout

    assert "crashed with SIGSEGV (signal 11) in SE_InitPlugin" in found
    assert found.endswith("None)")


WHEN_IT_HANGS = """
    import threading, time
    from modular_tf.processes import zygote_process
    zygote_process._SECLUDES = sys.argv[3] == "True"
    def once_it_hangs(number):
        while not (os.path.exists(sys.argv[2]) and open(sys.argv[2]).read().endswith("\\n")):
            time.sleep(0.01)
        os.kill(os.getpid(), number)
"""


@pytest.fixture
def run_hanging(misdeed, run_forked, tmp_path):
    """Run code in a process that tries a plugin that hangs; return the plugin, and the process."""

    def run(code, secluded, status):
        hanging, pid_file = shutil.copy(misdeed("HANG"), tmp_path / "libhang.so"), tmp_path / "pid"
        arguments = (hanging, pid_file, str(secluded), CHECKOUT)
        variables = {"MISDEED_PID": str(pid_file)}
        code = TRY + WHEN_IT_HANGS + code
        return hanging, run_forked(code, *arguments, env=variables, status=status)

    return run


@pytest.mark.parametrize("secluded", [True, False])
def test_a_child_ends_with_the_application(secluded, run_hanging):
    code = """
    threading.Thread(target=once_it_hangs, args=[signal.SIGKILL], daemon=True).start()
    attempt(sys.argv[1])
    """
    hanging, _ = run_hanging(code, secluded, -signal.SIGKILL)

    deadline = time.monotonic() + 10  # the kernel ends what has lost its parent a little later
    while (left := processes_with(hanging)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == []


@pytest.mark.parametrize("secluded", [True, False])
def test_an_interrupted_wait_ends_the_child(secluded, run_hanging):
    code = """
    threading.Thread(target=once_it_hangs, args=[signal.SIGINT], daemon=True).start()
    try:
        attempt(sys.argv[1])
    except KeyboardInterrupt:
        sys.path.append(sys.argv[4])  # behind the installed package
        from tests.first_contact.conftest import processes_with
        print(processes_with(sys.argv[1]))
    """
    _, child = run_hanging(code, secluded, 0)

    assert child.stdout == "[]\n"


def test_who_is_tried_when_somebody_kills_the_application_is_only_suspect(run_hanging):
    code = """
    from modular_tf.service.service import PluginService
    threading.Thread(target=once_it_hangs, args=[signal.SIGKILL], daemon=True).start()
    with PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
        service.load()
    """
    run_hanging(code, secluded=False, status=-signal.SIGKILL)
    marks = Path(os.environ["XDG_STATE_HOME"], "modular_tf", "notes")
    while not list(marks.glob("*.witnessed")):  # its watcher says so before it ends
        time.sleep(0.01)

    (note,) = Notes.of_process().of_ended()

    assert note.plugin == "hang"
    assert not note.watchers_ended_too


# ---- The interpreter -----------------------------------------------------------------------------


@pytest.fixture
def interpreter(monkeypatch, tmp_path):
    """Find an interpreter where the running one says this of itself."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    beside = tmp_path / "bin" / name

    def find(**values):
        with monkeypatch.context() as patched:
            for key, value in values.items():
                patched.setattr(sys, key, value, raising=False)
            return find_interpreter()

    beside.parent.mkdir()
    beside.symlink_to(sys.executable)
    monkeypatch.delitem(sys.modules, "multiprocessing.spawn", raising=False)
    return find, beside


def test_the_interpreter_is_the_running_one_or_what_the_application_names_or_has_beside_it(
    interpreter, monkeypatch, tmp_path
):
    find, beside = interpreter
    assert find() == sys.executable
    for embedded in (None, "/usr/sbin/webserver"):
        assert find(executable=embedded, exec_prefix=str(tmp_path)) == str(beside)

    application = tmp_path / "python-app"
    application.touch(0o755)
    prefixes = dict.fromkeys(("exec_prefix", "base_exec_prefix"), str(tmp_path / "none"))
    assert find(executable=str(application), frozen=True, **prefixes) is None
    spawn = SimpleNamespace(get_executable=lambda: b"/opt/python")
    monkeypatch.setitem(sys.modules, "multiprocessing.spawn", spawn)
    assert find(executable="/opt/app", frozen=True) == "/opt/python"


def test_a_plugin_that_cannot_be_tried_is_not_loaded(misdeed, monkeypatch):
    library = misdeed("NOTHING")
    monkeypatch.setattr("modular_tf.processes.zygote_process.find_interpreter", lambda: None)
    with PluginService(plugin_paths=[library], bundled=False) as service:
        (record,) = service.load().plugins

    assert (record.state, record.reason.rule) == (State.FAILED, "LD-063")
    assert "multiprocessing.set_executable" in record.reason.remedy


# Of the zygote, and of a watcher; other plugins, as what is known of one is known in this process.
@pytest.mark.parametrize(("what", "deed"), [("socketpair", "NOTHING"), ("send_fds", "THREAD")])
def test_a_shortage_when_a_trial_starts_decides_nothing(what, deed, misdeed, monkeypatch):
    def no_descriptors(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with PluginService(plugin_paths=[misdeed(deed)], bundled=False) as service:
        with monkeypatch.context() as patched:
            patched.setattr(zygote_process.socket, what, no_descriptors)
            with pytest.raises(ResourceExhaustedError) as raised:
                service.load()
        assert raised.value.rule == "LD-113"
        (record,) = service.load().plugins

    assert (record.state, record.reasons) == (State.LOADED, ())


@pytest.mark.parametrize(
    ("python", "said"),
    [
        ("/nowhere/python3", "no process can be started: .*No such file"),
        ("/bin/false", "the child process ended with status 1 before it began"),
    ],
)
def test_what_is_no_interpreter_is_not_the_plugins_fault(python, said, misdeed, monkeypatch):
    monkeypatch.setattr("modular_tf.processes.zygote_process.find_interpreter", lambda: python)
    found = try_plugins([Task("x", str(misdeed("NOTHING")))] * 5, PATIENT)

    for finding in found:
        assert finding.incident.is_not_tried
        assert re.search(said, finding.incident.violation.message)


def test_a_fault_of_the_hosts_own_code_is_not_the_plugins(misdeed, monkeypatch):
    monkeypatch.setattr(interpreter_of_trials, "_FOREIGN_MODULES", ())
    (found,) = try_plugins([Task("x", str(misdeed("NOTHING")))], PATIENT)

    assert found.incident.is_not_tried
    assert "_cffi_backend" in found.incident.violation.message
