"""What a plugin changes of its process is named; what takes others down is quarantine."""

import os
import platform
import resource
from contextlib import contextmanager

import pytest

from modular_tf.first_contact.verdict import Ending, finding_of
from tests.first_contact.conftest import PATIENT, find_alone, find_one
from tests.fixtures.compiler import compile_object, link_library

# What the kernel lets nobody else do.
_DONE_BY_THE_SUPERUSER = [
    ("CHANGE_USER", "LD-120", "changed the user of the process from "),
    ("CHANGE_GROUPS", "LD-120", "changed the supplementary groups of the process"),
    ("CHANGE_ROOT", "LD-120", "changed the root directory"),
] * (os.geteuid() == 0)
_LEFT_TIMER = "left a timer running that sends"
_TRAPS = "changed which floating-point exceptions end the process; that was undone"
# Each is found wherever it is done; here the places take turns.
_HARM = {
    ("device", "INIT"): [
        ("FORK", "LD-068", "left a process behind"),
        ("CATCH_INTERRUPT", "LD-066", "handles SIGINT"),
        ("CHANGE_LOCALE", "LD-067", "changed the locale: "),
        ("NO_FILES", "LD-120", "lowered RLIMIT_NOFILE from "),
        ("ALARM", "LD-121", f"{_LEFT_TIMER} SIGALRM, which ends the process"),
        ("WAIT_FOR_ANY", "LD-120", "took the exit status of a child process"),
        ("MOST_MAPPINGS", "LD-120", "keeps 60"),
        ("LEAVE_PIDS", "LD-120", "moved the process to another namespace (pid_for_children)"),
        ("HIDE_PROC", "LD-122", "left the process unable to work: "),
        ("TRACE_ME", "LD-120", "has the process traced (ptrace)"),
    ],
    ("device", "CONSTRUCTOR"): [
        ("DEFAULT_PIPE", "LD-066", "set the default action for SIGPIPE"),
        ("TIMER", "LD-121", f"{_LEFT_TIMER} SIGUSR1, which ends the process"),
        ("WAIT_IN_A_THREAD", "LD-120", "took the exit status of a child process"),
        ("FILTER", "LD-120", "filters the system calls of the process (seccomp)"),
        ("FILTER_OPEN", "LD-122", "left the process unable to work: "),
        ("STOP_TRACED", "LD-120", "has the process traced (ptrace)"),
        ("END_WITH_PARENT", "LD-120", "lets the process end with its parent (PR_SET_PDEATHSIG)"),
        *_DONE_BY_THE_SUPERUSER,
    ],
    ("filesystem", "SCHEME_INIT"): [
        ("DAEMON", "LD-068", "left a process behind"),
        ("IGNORE_CHILDREN", "LD-066", "ignores SIGCHLD"),
        ("BLOCK_INTERRUPT", "LD-066", "blocks SIGINT"),
        ("NO_FILE_SIZE", "LD-120", "lowered RLIMIT_FSIZE from "),
        ("FATAL_THREAD_TIMER", "LD-121", f"{_LEFT_TIMER} SIGUSR1, which ends the process"),
        ("ALL_WATCHES", "LD-120", "keeps "),
        ("LEAVE_NETWORK", "LD-120", "moved the process to another namespace (net)"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("deed", "rule", "message", "kind", "place"),
    [(*row, *where) for where, rows in _HARM.items() for row in rows],
)
def test_what_takes_others_down_is_quarantine(deed, rule, message, kind, place):
    found = find_one(deed, place, kind)
    incident = found.incident

    assert incident.violation.rule_id == rule
    assert incident.violation.message.startswith(message)
    assert not incident.is_not_tried
    assert rule.startswith("LD-12") or found.offer is not None  # all its calls have returned


_WARNED = {
    "LD-065": [
        ("NOISE", 'wrote to standard output: \'{"lost": "nothing"} / '),
        ("UNFLUSHED", 'wrote to standard output: "no line\'s end"'),
    ],
    "LD-069": [
        ("CATCH_FPE", "handles SIGFPE"),
        ("CATCH_QUIT", "handles SIGQUIT"),
        ("CHAIN_INTERRUPT", "handles SIGINT"),
        ("CHANGE_DIRECTORY", "changed the working directory to /"),
        ("CHANGE_UMASK", "changed the umask from "),
        ("CHANGE_ENVIRONMENT", "changed environment variables: MISDEED"),
        ("PRELOAD", "changed what programs that are started from now on load or run: LD_PRELOAD="),
        ("ROUND_UP", "made the processor round otherwise; that was undone"),
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
}
if platform.machine() == "x86_64":
    _WARNED["LD-069"] += [
        ("FLUSH_TO_ZERO", "made the processor take denormal numbers for zero; that was undone"),
        ("TRAP_INVALID", _TRAPS),
        ("TRAP_INVALID_X87", _TRAPS),
    ]


@pytest.mark.parametrize(
    ("deed", "message", "rule"), [(*row, rule) for rule, rows in _WARNED.items() for row in rows]
)
def test_what_others_can_live_with_is_a_warning(deed, message, rule):
    found = find_one(deed)

    assert found.incident is None
    assert {(note.rule, note.is_error, note.stage) for note in found.notes} == {
        (rule, False, "load")
    }
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
