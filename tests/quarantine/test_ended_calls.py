"""A process that ends in a call into a plugin: told at once, known to the next, and quarantined."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from modular_tf.rules.shortage import ShortageError, raise_shortage
from modular_tf.service.storage.notes import Note, Notes, note_of
from modular_tf.service.storage.private_directory import PrivateDirectory
from tests.filesystem.ending import ending_plugin
from tests.first_contact.conftest import build_misdeed
from tests.quarantine.conftest import SHA256

READ = """
    import sys
    from modular_tf.service.service import PluginService
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        print(service.filesystem("ending").new_random_access_file(sys.argv[2]).read(0, 8))
"""
STATE = """
    import sys
    from modular_tf.service.service import PluginService
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        (record,) = [record for record in service.plugins() if record.name == "ending"]
        print(record.state)
        print(*service.why("ending").lines, sep="\\n")
"""
HANDLERS = """
    import ctypes, sys
    from modular_tf.service.service import PluginService
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(6, ctypes.cast(libc._exit, ctypes.c_void_p))
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        service.filesystem("ending").new_random_access_file("ending://h/abort").read(0, 8)
"""
KILLED = """
    import os, signal, sys, threading
    from modular_tf.service.service import PluginService
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        child = os.fork()
        if child == 0:
            service.filesystem("ending").new_random_access_file("ending://h/hang").read(0, 8)
        import time
        while open(f"/proc/{child}/syscall").read().split()[0] not in ("35", "230", "115"):
            time.sleep(0.01)
        os.kill(child, signal.SIGABRT)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGABRT
"""
FORKED = """
    import os, sys
    from modular_tf.service.service import PluginService
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        service.filesystem("ending")
        child = os.fork()
        if child == 0:
            service.filesystem("ending").new_random_access_file(sys.argv[2]).read(0, 8)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
"""
SMALL_STACK = """
    from tests.fixtures.signal_stack import use_small_stack
    use_small_stack()
"""
NO_HANDLER = """
    import ctypes
    class Action(ctypes.Structure):
        _fields_ = [("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16),
                    ("flags", ctypes.c_int), ("restorer", ctypes.c_void_p)]
    SA_SIGINFO = 4
    assert ctypes.CDLL(None).sigaction(6, ctypes.byref(Action(flags=SA_SIGINFO)), None) == 0
"""
OFF = {"MODULAR_TF_TELL_ENDED_CALLS": "0"}


@pytest.fixture(scope="module")
def library() -> Path:
    """The plugin whose reads end the process."""
    return ending_plugin()


def ended_calls() -> list[Note]:
    return Notes.of_process().of_ended()


@pytest.mark.parametrize(
    ("how", "number"),
    [("segv", signal.SIGSEGV), ("abort", signal.SIGABRT), ("overflow", signal.SIGSEGV)],
)
def test_a_fatal_signal_in_a_call_names_plugin_call_and_path(run_python, library, how, number):
    ended = run_python(READ, library, f"ending://h/{how}", status=-number)
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("modular_tf:")]
    assert line == (
        f"modular_tf: {number.name} in plugin ending, read of 'ending://h/{how}' ({library}):"
        " the process ends [LD-130]"
    )


def test_the_handler_that_was_there_runs_afterwards(run_python, library):
    with_faulthandler = run_python(READ, library, "ending://h/segv", status=-signal.SIGSEGV).stderr
    assert with_faulthandler.index("modular_tf: SIGSEGV") < with_faulthandler.index(
        "Fatal Python error: Segmentation fault"
    )


def test_a_handler_of_the_applications_runs_afterwards(run_python, library):
    ended = run_python(HANDLERS, library, status=signal.SIGABRT)  # what _exit is given
    assert "modular_tf: SIGABRT in plugin ending" in ended.stderr


def test_the_end_is_told_without_any_other_handler(library, tmp_path):
    code = READ.replace("\n    ", "\n")
    command = [sys.executable, "-c", code, library, "ending://h/segv"]
    ended = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert ended.returncode == -signal.SIGSEGV
    assert b"SIGSEGV in plugin ending, read of 'ending://h/segv'" in ended.stderr


def test_the_end_is_told_on_a_small_stack_for_signals(run_python, library):
    ended = run_python(SMALL_STACK + READ, library, "ending://h/segv", status=-signal.SIGSEGV)
    assert "modular_tf: SIGSEGV in plugin ending" in ended.stderr
    assert "Fatal Python error: Segmentation fault" in ended.stderr
    (note,) = Path(os.environ["XDG_STATE_HOME"]).rglob("*.ended")
    assert note.read_bytes().endswith(b"}\n")


def test_a_default_with_flags_of_a_handler_is_no_handler(run_python, library):
    ended = run_python(NO_HANDLER + READ, library, "ending://h/abort", status=-signal.SIGABRT)
    assert "modular_tf: SIGABRT in plugin ending" in ended.stderr


def test_the_ends_of_a_plugins_own_children_are_not_told(run_python, library):
    assert "modular_tf:" not in run_python(READ, library, "ending://h/children").stderr
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("*.ended"))


def test_a_call_of_a_forked_child_of_the_application_is_told(run_python, library):
    ended = run_python(FORKED, library, "ending://h/segv")
    assert "modular_tf: SIGSEGV in plugin ending" in ended.stderr


def test_notes_stay_for_the_next_look_where_one_cannot_be_read_now(
    run_python, library, monkeypatch
):
    run_python(READ, library, "ending://h/exit", status=3)
    (note,) = Path(os.environ["XDG_STATE_HOME"]).rglob("*.ended")
    shutil.copy2(note, note.with_name(f"0{note.name}"))
    read = PrivateDirectory.read
    read_before: list[str] = []

    def second_fails(self: PrivateDirectory, name: str, most: int) -> bytes | None:
        read_before.append(name)
        if len(read_before) == 2:
            raise_shortage(OSError(errno.EMFILE, "too many"))
        return read(self, name, most)

    with monkeypatch.context() as patch:
        patch.setattr(PrivateDirectory, "read", second_fails)
        with pytest.raises(ShortageError):
            ended_calls()
    assert len(ended_calls()) == 2


def test_exit_in_a_call_is_told(run_python, library):
    ended = run_python(READ, library, "ending://h/exit", status=3)
    assert "modular_tf: exit(3) in plugin ending, read of 'ending://h/exit'" in ended.stderr


@pytest.mark.parametrize("how", ["end-thread", "cancel-thread"])
def test_the_end_of_the_main_thread_in_a_call_is_told(run_python, library, how):
    ended = run_python(READ, library, f"ending://h/{how}", status=None)
    what = "pthread_cancel() or pthread_exit() of the main thread"
    assert f"modular_tf: {what} in plugin ending, read of 'ending://h/{how}'" in ended.stderr
    assert f"ended in it by {what} [LD-130]" in run_python(STATE, library).stdout


IN_A_THREAD = """
    import os, sys, threading, time
    from modular_tf.service.service import PluginService
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        file = service.filesystem("ending").new_random_access_file("ending://h/end-thread")
        thread = threading.Thread(target=lambda: file.read(0, 8), daemon=True)
        thread.start()
        while os.path.exists(f"/proc/self/task/{thread.native_id}"):
            time.sleep(0.01)
        os._exit(0)
"""


def test_the_end_of_another_thread_in_a_call_is_no_end_of_the_process(run_python, library):
    assert "modular_tf:" not in run_python(IN_A_THREAD, library, status=0).stderr


def test_what_others_send_is_not_the_plugins(run_python, library):
    assert "modular_tf:" not in run_python(KILLED, library).stderr
    assert "LD-130" not in run_python(STATE, library).stdout


def test_the_next_process_knows_it_and_the_third_end_is_quarantine(run_python, library):
    for how in ("segv", "exit"):
        run_python(READ, library, f"ending://h/{how}", status=None)
    known = run_python(STATE, library).stdout.splitlines()
    assert known[0] == "loaded"
    assert any("read of 'ending://h/segv': process" in line for line in known)
    assert any("ended in it by exit(3) [LD-130]" in line for line in known)

    run_python(READ, library, "ending://h/abort", status=-signal.SIGABRT)
    known = run_python(STATE, library).stdout.splitlines()
    assert known[0] == "quarantined"
    assert any("ended in it by SIGABRT [LD-130]" in line for line in known)
    assert any("the last call was read of 'ending://h/abort'" in line for line in known)


OVERWRITTEN = """
    import os, sys
    from modular_tf import Config, PluginService
    with PluginService(config=Config(load="eager"), plugin_paths=sys.argv[1:]) as service:
        service.load()
        victim = service.filesystem("ending")
        open(os.environ["MISDEED_MOMENT"], "w").close()
        while True:
            victim.new_random_access_file("ending://h/fine")
"""


def test_nobody_is_blamed_for_calls_by_tables_that_were_overwritten(run_python, library, tmp_path):
    """Any code of the process may have done that: an innocent plugin was quarantined for it."""
    moment = tmp_path / "moment"
    culprit = build_misdeed("OVERWRITE_TABLES_LATER")
    for _ in range(3):
        moment.unlink(missing_ok=True)
        ended = run_python(
            OVERWRITTEN,
            *(library, culprit),
            env={"MISDEED_MOMENT": str(moment)},
            status=-signal.SIGSEGV,
        )
        (line,) = [line for line in ended.stderr.splitlines() if line.startswith("modular_tf:")]
        assert "no plugin is blamed" in line
        assert "SIGSEGV in plugin ending, " in line
        assert "Write-protected tables of plugins were overwritten before" in line
    known = run_python(STATE, library).stdout
    assert known.startswith("loaded\n")
    assert "LD-130" not in known


NO_WAY_TO_READ = """
    import os, sys
    from modular_tf import PluginService
    from tests.fixtures.sandbox import forbid_process_vm_readv
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        file = service.filesystem("ending").new_random_access_file("ending://h/segv")
        forbid_process_vm_readv()
        used = []
        try:
            while True:
                used.append(os.dup(0))
        except OSError:
            os.close(used.pop())
        file.read(0, 8)
"""


def test_tables_that_cannot_be_read_count_as_they_were_made(run_python, library):
    """Reading them takes two descriptors where a sandbox forbids the other way."""
    ended = run_python(NO_WAY_TO_READ, library, status=-signal.SIGSEGV)
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("modular_tf:")]
    assert "SIGSEGV in plugin ending, " in line
    assert "overwritten" not in line
    assert "read of 'ending://h/segv': process" in run_python(STATE, library).stdout


def test_nothing_is_told_or_kept_where_it_is_turned_off(run_python, library):
    for _ in range(3):
        ended = run_python(READ, library, "ending://h/exit", env=OFF, status=3)
        assert ended.stderr == ""
    known = run_python(STATE, library).stdout
    assert known.startswith("loaded\n")
    assert "LD-130" not in known


def test_a_note_that_was_cut_off_or_forged_is_no_verdict(run_python, library):
    run_python(READ, library, "ending://h/exit", status=3)
    (note,) = Path(os.environ["XDG_STATE_HOME"]).rglob("*.ended")
    note.write_bytes(note.read_bytes()[:-20])
    assert "LD-130" not in run_python(STATE, library).stdout
    assert not note.exists()


def leave_note(own_state, name="left", **changes):
    """Leave the note of a call, as if a process had ended in it."""
    known = json.loads(note_of("plug", "/where/plug.so", SHA256) + "}")
    told = {"call": "read", "subject": "", "signal": 6, "status": 0, "pid": 1, "time": 1}
    text = json.dumps(known | told | changes).encode()
    assert PrivateDirectory(str(own_state / "notes")).create(f"{name}.ended", text)


@pytest.mark.parametrize("field", ["signal", "status", "pid", "time"])
@pytest.mark.parametrize("number", [10**400, -1])
def test_a_note_with_an_impossible_number_says_nothing(own_state, field, number):
    leave_note(own_state, **{field: number})

    assert ended_calls() == []


def test_a_note_of_another_machine_is_left_to_that_one(own_state):
    leave_note(own_state, name="here")
    leave_note(own_state, name="elsewhere", machine="another")

    assert [note.name for note in ended_calls()] == ["here.ended"]
    Notes.of_process().remove(ended_calls())
    assert [path.name for path in own_state.rglob("*.ended")] == ["elsewhere.ended"]


CANCELLED_BY_ANOTHER = """
    import ctypes, sys, threading, time
    from modular_tf.service.service import PluginService
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_ulong
    libc.pthread_cancel.argtypes = [ctypes.c_ulong]
    with PluginService(plugin_paths=[sys.argv[1]]) as service:
        service.load()
        service.filesystem("ending").new_random_access_file("ending://h/x")
        main = libc.pthread_self()
        threading.Thread(target=lambda: libc.pthread_cancel(main), daemon=True).start()
        while True:
            time.sleep(1)
"""


def test_who_only_may_have_cancelled_the_main_thread_is_not_blamed(run_python, library):
    ended = run_python(CANCELLED_BY_ANOTHER, library, status=None)
    assert (
        "modular_tf: pthread_cancel() or pthread_exit() of the main thread: the process ends;"
        f" possibly by plugin ending ({library}) [LD-130]"
    ) in ended.stderr.splitlines()
    assert not list(Path(os.environ["XDG_STATE_HOME"]).rglob("*.ended"))
