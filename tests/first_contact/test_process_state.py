"""What a plugin changes of its process is named; what takes others down is quarantine."""

import os
import resource
from contextlib import contextmanager
from signal import SIGABRT, SIGSEGV

import pytest

from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.verdict import Ending, finding_of
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.first_contact.conftest import PATIENT, build_misdeed, find_alone, find_one
from tests.fixtures.compiler import compile_object, file_of_compiler, link_library

# What the kernel lets nobody else do.
_DONE_BY_THE_SUPERUSER = [
    ("CHANGE_USER", "LD-120", "changed the user of the process from "),
    ("CHANGE_GROUPS", "LD-120", "changed the supplementary groups of the process"),
    ("CHANGE_ROOT", "LD-120", "changed the root directory"),
] * (os.geteuid() == 0)
_LEFT_TIMER = "left a timer running that sends"


@pytest.mark.parametrize(
    ("deed", "rule", "message"),
    [
        ("NO_FILES", "LD-120", "lowered RLIMIT_NOFILE from "),
        ("NO_FILE_SIZE", "LD-120", "lowered RLIMIT_FSIZE from "),
        ("ALARM", "LD-121", f"{_LEFT_TIMER} SIGALRM, which ends the process"),
        ("TIMER", "LD-121", f"{_LEFT_TIMER} SIGUSR1, which ends the process"),
        ("FATAL_THREAD_TIMER", "LD-121", f"{_LEFT_TIMER} SIGUSR1, which ends the process"),
        ("WAIT_FOR_ANY", "LD-120", "took the exit status of a child process"),
        ("WAIT_IN_A_THREAD", "LD-120", "took the exit status of a child process"),
        ("ALL_WATCHES", "LD-120", "keeps "),
        ("MOST_MAPPINGS", "LD-120", "keeps 60"),
        ("LEAVE_NETWORK", "LD-120", "moved the process to another namespace (net)"),
        ("LEAVE_PIDS", "LD-120", "moved the process to another namespace (pid_for_children)"),
        ("FILTER", "LD-120", "filters the system calls of the process (seccomp)"),
        ("FILTER_OPEN", "LD-122", "left the process unable to work: "),
        ("HIDE_PROC", "LD-122", "left the process unable to work: "),
        ("TRACE_ME", "LD-120", "has the process traced (ptrace)"),
        ("STOP_TRACED", "LD-120", "has the process traced (ptrace)"),
        *_DONE_BY_THE_SUPERUSER,
        ("END_WITH_PARENT", "LD-120", "lets the process end with its parent (PR_SET_PDEATHSIG)"),
    ],
)
@pytest.mark.parametrize("place", ["INIT", "CONSTRUCTOR"])
def test_what_takes_others_down_is_quarantine(deed, rule, message, place):
    incident = find_one(deed, place).incident

    assert incident.violation.rule_id == rule
    assert incident.violation.message.startswith(message)
    assert not incident.is_not_tried


@pytest.mark.parametrize(
    ("deed", "message"),
    [
        ("NO_QUEUES", "lowered RLIMIT_MSGQUEUE from "),
        ("HANDLED_ALARM", f"{_LEFT_TIMER} SIGALRM"),
        ("IGNORED_TIMER", f"{_LEFT_TIMER} SIGWINCH"),
        ("THREAD_TIMER", "left a timer running that calls a function in a thread of its own"),
        ("WATCHES", "keeps 24 of the "),
        ("MAPPINGS", "keeps 10"),
        ("CLOSE_ON_EXEC", "changed whether programs inherit standard output"),
        ("CLOSE_ON_EXEC", "changed whether programs inherit standard error"),
        ("INHERIT", "lets programs inherit descriptors that it did not open"),
        ("PIN_STACK", "lowered how far RLIMIT_STACK may be raised, to "),
        ("AFFINITY", "changed the processors that the process may use from "),
        ("NON_BLOCKING", "changed how standard output is opened (O_NONBLOCK and others)"),
    ],
)
def test_what_others_can_live_with_is_a_warning(deed, message):
    found = find_one(deed)

    assert found.incident is None
    assert [note.rule for note in found.notes] == ["LD-069"] * len(found.notes)
    assert any(note.message.startswith(message) for note in found.notes)


@contextmanager
def descriptors(number):
    """Allow this process so many descriptors, and those that it starts."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_descriptors_are_counted_against_what_the_application_may_have():
    with descriptors(5000):
        lowered = find_alone("USUAL_FILES").incident.violation
    with descriptors(1024):
        found = find_alone("DESCRIPTORS")
        taken = find_alone("MOST_DESCRIPTORS").incident.violation

    assert lowered.message.startswith("lowered RLIMIT_NOFILE from 5000 to 4096")
    assert found.incident is None
    assert found.notes[0].message.startswith("keeps 300 of the 1024 descriptors that ")
    assert taken.rule_id == "LD-120"
    assert taken.message.startswith("keeps 900 of the 1024 descriptors that ")


_END = "an exit handler or destructor"


@pytest.mark.parametrize("kind", ["device", "filesystem"])
@pytest.mark.parametrize("place", ["EXIT_HANDLER", "DESTRUCTOR"])
@pytest.mark.parametrize(
    ("deed", "number", "message"),
    [
        ("CRASH", SIGSEGV, "crashed with SIGSEGV (signal 11)"),
        ("ABORT", SIGABRT, "aborted with SIGABRT (signal 6)"),
        ("LEAVE_3", None, "ended the process with exit status 3"),
        ("LEAVE_0", None, "ended the process with exit status 0"),
    ],
)
def test_what_spoils_the_end_of_the_process_is_quarantine(deed, number, message, place, kind):
    incident = find_one(deed, place, kind).incident

    assert (incident.violation.rule_id, incident.signal) == ("LD-146", number)
    assert incident.violation.message.startswith(f"{message} in {_END}, at first contact")
    assert incident.last_call == _END
    assert number is None or frames_of(incident)


def frames_of(incident):
    return [frame for frame in incident.backtrace if "_at_" in frame]


@pytest.mark.parametrize("place", ["EXIT_HANDLER", "DESTRUCTOR"])
def test_an_end_that_hangs_is_bounded(place):
    incident = find_one("HANG", place, limits=Limits(seconds=3.0)).incident

    assert (incident.violation.rule_id, incident.last_call) == ("LD-146", _END)
    assert incident.violation.message.startswith(f"did not return within 3 s in {_END}")
    assert frames_of(incident)


def test_leaks_of_the_whole_process_are_no_spoilt_end(run_python):
    """AddressSanitizer looks for them at exit(), and Python leaves much behind."""
    runtime = file_of_compiler("libasan.so")
    if runtime is None:
        pytest.fail("this test needs libasan.so, which comes with gcc", pytrace=False)
    code = """
        import os, sys
        from modular_tf.service.service import PluginService
        with PluginService() as service:
            (record,) = service.load(sys.argv[1]).plugins
        print(record.state.value, *record.reasons, flush=True)
        os._exit(0)
    """
    options = {"LD_PRELOAD": str(runtime), "ASAN_OPTIONS": "", "LSAN_OPTIONS": ""}
    child = run_python(code, build_misdeed("NOTHING", kind="filesystem"), env=options)

    assert child.stdout == "loaded\n"


def test_functions_at_each_fork_are_no_change_and_are_found_where_they_crash():
    """A plugin that works in forked children has such functions."""
    found, incident = find_one("AT_FORK"), find_one("CRASH_AT_FORK").incident

    assert (found.incident, found.notes) == (None, ())
    assert (incident.violation.rule_id, incident.last_call) == ("LD-060", "its functions at a fork")
    assert "aborted with SIGABRT" in incident.violation.message


@pytest.mark.parametrize("deed", ["FILTER_OPEN", "HIDE_PROC", "NO_FILES", "NO_ADDRESSES"])
def test_what_breaks_its_own_trial_is_quarantined_and_not_tried_again(deed, monkeypatch):
    library = build_misdeed(deed, "CONSTRUCTOR")
    states = []
    for _ in range(2):
        with PluginService(plugin_paths=[library], bundled=False) as service:
            (record,) = service.load().plugins
        states.append((record.state, record.reason.rule))
        monkeypatch.setattr("modular_tf.first_contact.trials.try_plugins", None)

    assert states[0] == states[1]
    assert states[0][0] is State.QUARANTINED


def test_an_address_space_that_is_taken_away_is_the_plugins_fault():
    assert not find_one("NO_ADDRESSES").incident.is_not_tried


@pytest.mark.parametrize(
    ("entered", "is_scarce", "is_blamed"),
    [("SE_InitPlugin", False, True), ("SE_InitPlugin", True, False), (None, False, False)],
)
def test_a_fault_of_the_host_is_the_plugins_if_its_code_ran_and_the_machine_lacks_nothing(
    entered, is_scarce, is_blamed
):
    ending = Ending(entered=entered, fault="OSError: [Errno 23] too many", scarce=is_scarce)
    incident = finding_of(ending, PATIENT).incident

    assert incident.is_not_tried is not is_blamed
    if is_blamed:
        assert incident.violation.rule_id == "LD-122"
        assert "[Errno 23] too many" in incident.violation.message


# What the linker makes of `environ` in an executable that is not position-independent: the
# variable of the whole process, beside which the C library's own is never set.
_ENVIRON_OF_AN_EXECUTABLE = """
char** __environ;
extern char** environ __attribute__((alias("__environ")));
extern char** _environ __attribute__((alias("__environ")));
"""


def test_the_environment_is_the_executables_where_that_has_a_copy(monkeypatch, tmp_path):
    source = tmp_path / "environ.c"
    source.write_text(_ENVIRON_OF_AN_EXECUTABLE)
    built = compile_object(source, options=["-fvisibility=default"])
    monkeypatch.setenv("LD_PRELOAD", str(link_library("libenviron.so", [built])))
    notes = [found.message for found in find_alone("CHANGE_ENVIRONMENT").notes]

    assert find_alone("NOTHING").notes == ()
    assert [note.partition(",")[0] for note in notes] == ["changed environment variables: MISDEED"]
