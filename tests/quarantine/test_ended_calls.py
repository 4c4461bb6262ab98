"""A process that ends in a call into a plugin: reported, known to the next, and quarantined."""

import signal
import subprocess
import sys

import pytest

from tests.filesystem.ending import ending_plugin
from tests.first_contact.conftest import build_misdeed
from tests.quarantine.conftest import leave_note, notes

BEGIN = """
    import ctypes, os, signal, sys, threading, time
    from modular_tf.service.service import PluginService
    libc = ctypes.CDLL(None)
    service = PluginService(plugin_paths=sys.argv[2:])
    service.load()
    def open_file(how=sys.argv[1]):
        return service.filesystem("ending").new_random_access_file(f"ending://h/{how}")
"""
READ = BEGIN + "    print(open_file().read(0, 8)); service.close()"
STATE = f"""{BEGIN}
    (record,) = [record for record in service.plugins() if record.name == "ending"]
    print(record.state)
    print(*service.why("ending").lines, sep="\\n")
    service.close()
"""


@pytest.fixture(scope="module")
def library():
    """The plugin whose reads end the process."""
    return ending_plugin()


@pytest.fixture
def run(run_forked, library):
    """Run code with the plugin; return the lines of the package on stderr."""

    def run_code(code, how="fine", *more, **options):
        stderr = run_forked(code, how, library, *more, **options).stderr
        return [line for line in stderr.splitlines() if line.startswith("modular_tf:")]

    return run_code


@pytest.fixture
def state(run_forked, library):
    """Return the state of the plugin, and what is explained of it, in a process that starts now."""

    def ask():
        state, _, lines = run_forked(STATE, "", library).stdout.partition("\n")
        return state, lines

    return ask


def note_files(own_state):
    return list(own_state.rglob("*.ended"))


@pytest.mark.parametrize(
    ("how", "status", "word"),
    [
        ("segv", -signal.SIGSEGV, "SIGSEGV"),
        ("abort", -signal.SIGABRT, "SIGABRT"),
        ("overflow", -signal.SIGSEGV, "SIGSEGV"),
        ("exit", 3, "exit(3)"),
        ("end-thread", None, "pthread_cancel() or pthread_exit() of the main thread"),
        ("cancel-thread", None, "pthread_cancel() or pthread_exit() of the main thread"),
    ],
)
def test_an_end_in_a_call_names_plugin_call_and_path(run, state, library, how, status, word):
    assert run(READ, how, status=status) == [
        (
            f"modular_tf: {word} in plugin ending, read of 'ending://h/{how}' ({library}):"
            " the process ends [LD-130]"
        )
    ]
    assert f"ended in it by {word} [LD-130]" in state()[1]


OF_A_LONG_PATH = f"""{BEGIN}
    service.filesystem("ending").path_exists("ending://h" + "/" * 20_000 + "segv")
"""


def test_the_end_of_a_call_about_a_very_long_path_is_told_whole(run, own_state):
    (line,) = run(OF_A_LONG_PATH, status=-signal.SIGSEGV)
    assert line.endswith(": the process ends [LD-130]")
    (note,) = note_files(own_state)
    assert note.read_bytes().endswith(b"}\n")


# -- handlers of signals -----------------------------------------------------------------------

HANDLER = """
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(6, ctypes.cast(libc._exit, ctypes.c_void_p))
"""
SMALL_STACK = """
    from tests.fixtures.signal_stack import use_small_stack
    use_small_stack()
"""


@pytest.mark.parametrize(
    ("code", "how", "status", "then"),
    [
        (READ, "segv", -signal.SIGSEGV, "Fatal Python error: Segmentation fault"),
        # which _exit is given
        ("    import ctypes; libc = ctypes.CDLL(None)" + HANDLER + READ, "abort", 6, ""),
    ],
    ids=["Python's", "the application's"],
)
def test_the_handler_that_was_there_runs_afterwards(run_forked, library, code, how, status, then):
    said = run_forked(code, how, library, status=status).stderr
    word = {"segv": "SIGSEGV", "abort": "SIGABRT"}[how]
    assert said.index(f"modular_tf: {word} in plugin ending") < said.rindex(then)


def test_the_end_is_reported_without_any_other_handler(library, tmp_path):
    code = READ.replace("\n    ", "\n")
    command = [sys.executable, "-c", code, "segv", library]
    ended = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    assert ended.returncode == -signal.SIGSEGV
    assert b"SIGSEGV in plugin ending, read of 'ending://h/segv'" in ended.stderr


def test_the_end_is_reported_on_a_small_stack_for_signals(run_python, library, own_state):
    ended = run_python(SMALL_STACK + READ, "segv", library, status=-signal.SIGSEGV)
    assert "modular_tf: SIGSEGV in plugin ending" in ended.stderr
    assert "Fatal Python error: Segmentation fault" in ended.stderr
    (note,) = note_files(own_state)
    assert note.read_bytes().endswith(b"}\n")


TOGETHER = f"""
    import faulthandler
    faulthandler.disable()  # which writes there, too
    {BEGIN}
    files = open_file("segv"), open_file("segv")
    there, here = os.pipe()
    os.set_blocking(here, False)
    while True:
        try:
            os.write(here, bytes(4096))
        except BlockingIOError:
            break
    os.set_blocking(here, True)
    os.dup2(here, 2)  # who tells of the end waits
    for file in files:
        threading.Thread(target=file.read, args=(0, 8)).start()
        time.sleep(0.3)
    while True:
        os.read(there, 1 << 16)
"""


def test_a_second_thread_that_crashes_does_not_cut_the_report_of_the_first_short(
    run, library, own_state
):
    run(TOGETHER, status=-signal.SIGSEGV)
    (note,) = note_files(own_state)
    assert note.read_bytes().endswith(b"}\n")


# -- whose end it is ---------------------------------------------------------------------------

FORKED = """
    service.filesystem("ending")
    child = os.fork()
    if child == 0:
        open_file().read(0, 8)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
"""
KILLED = """
    child = os.fork()
    if child == 0:
        open_file("hang").read(0, 8)
    while open(f"/proc/{child}/syscall").read().split()[0] not in ("35", "230", "115"):
        time.sleep(0.01)
    os.kill(child, signal.SIGABRT)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGABRT
"""
IN_A_THREAD = """
    file = open_file("end-thread")
    thread = threading.Thread(target=lambda: file.read(0, 8), daemon=True)
    thread.start()
    while os.path.exists(f"/proc/self/task/{thread.native_id}"):
        time.sleep(0.01)
    os._exit(0)
"""
CANCELLED_BY_ANOTHER = """
    libc.pthread_self.restype = ctypes.c_ulong
    libc.pthread_cancel.argtypes = [ctypes.c_ulong]
    open_file()
    main = libc.pthread_self()
    threading.Thread(target=lambda: libc.pthread_cancel(main), daemon=True).start()
    while True:
        time.sleep(1)
"""


def test_a_call_of_a_forked_child_of_the_application_is_reported(run):
    (line,) = run(BEGIN + FORKED, "segv")
    assert "modular_tf: SIGSEGV in plugin ending" in line


@pytest.mark.parametrize(
    ("code", "how"),
    [(READ, "children"), (BEGIN + IN_A_THREAD, ""), (BEGIN + KILLED, "")],
    ids=["a plugin's own child", "another thread", "killed by others"],
)
def test_other_ends_are_not_the_plugins(run, state, own_state, code, how):
    assert run(code, how) == []
    assert note_files(own_state) == []
    assert "LD-130" not in state()[1]


def test_who_only_may_have_cancelled_the_main_thread_is_not_blamed(run, library, own_state):
    assert run(BEGIN + CANCELLED_BY_ANOTHER, "x", status=None) == [
        (
            "modular_tf: pthread_cancel() or pthread_exit() of the main thread: the process ends;"
            f" possibly by plugin ending ({library}) [LD-130]"
        )
    ]
    assert note_files(own_state) == []


OVERWRITTEN = """
    victim = service.filesystem("ending")
    open(os.environ["MISDEED_MOMENT"], "w").close()
    while True:
        victim.new_random_access_file("ending://h/fine")
"""


def test_nobody_is_blamed_for_calls_by_tables_that_were_overwritten(run, own_state, tmp_path):
    """Any code of the process may have done that: an innocent plugin was quarantined for it."""
    moment = tmp_path / "moment"
    culprit = build_misdeed("OVERWRITE_TABLES_LATER")
    env = {"MISDEED_MOMENT": str(moment)}
    (line,) = run(BEGIN + OVERWRITTEN, "", culprit, env=env, status=-signal.SIGSEGV)
    assert "no plugin is blamed" in line
    assert "SIGSEGV in plugin ending, " in line
    assert "Write-protected tables of plugins were overwritten before" in line
    assert note_files(own_state) == []


# -- what the next processes know --------------------------------------------------------------


def test_the_next_process_knows_it_and_the_third_end_is_quarantine(run, state):
    for how in ("segv", "exit"):
        run(READ, how, status=None)
    found, lines = state()
    assert found == "loaded"
    assert "read of 'ending://h/segv': process" in lines
    assert "ended in it by exit(3) [LD-130]" in lines

    run(READ, "abort", status=-signal.SIGABRT)
    found, lines = state()
    assert found == "quarantined"
    assert "ended in it by SIGABRT [LD-130]" in lines
    assert "the last call was read of 'ending://h/abort'" in lines


def test_nothing_is_reported_or_stored_where_it_is_turned_off(run_forked, library, own_state):
    off = {"MODULAR_TF_REPORT_ENDED_CALLS": "0"}
    assert run_forked(READ, "exit", library, env=off, status=3).stderr == ""
    assert note_files(own_state) == []


def test_a_note_that_was_cut_off_or_forged_is_no_verdict(run, state, own_state):
    run(READ, "exit", status=3)
    (note,) = note_files(own_state)
    note.write_bytes(note.read_bytes()[:-20])
    assert "LD-130" not in state()[1]
    assert not note.exists()


def test_a_note_of_another_machine_or_with_impossible_numbers_is_no_end_here(own_state):
    for field in ("signal", "status", "pid", "time"):
        for number in (10**400, -1):
            leave_note(own_state, name=f"{field}{number < 0}", **{field: number})
    assert notes().of_ended() == note_files(own_state) == []

    leave_note(own_state, name="here")
    leave_note(own_state, name="elsewhere", machine="another")
    ended = notes().of_ended()
    assert [note.name for note in ended] == ["here.ended"]
    notes().remove(ended)
    assert [path.name for path in note_files(own_state)] == ["elsewhere.ended"]
