"""What is said of each plugin that does something to the process it is tried in."""

from __future__ import annotations

import platform
import signal
from pathlib import Path

import pytest

from modular_tf.first_contact.child import bounded_finding
from modular_tf.first_contact.finding import (
    MOST_NOTES,
    Finding,
    Limits,
    Offer,
    PlatformOffer,
    noted,
)
from modular_tf.first_contact.trials import try_plugins
from modular_tf.first_contact.verdict import Ending, Outcome, finding_of
from modular_tf.loading.task import Task
from modular_tf.rules import Violation
from tests.first_contact.conftest import PATIENT, find_one
from tests.fixtures.compiler import compile_object, link_library

IMPATIENT = Limits(seconds=2.0)  # for what hangs, however long it is waited for
AT = "at first contact in a child process"
X86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="written for x86-64")
PLACES = [("device", "INIT", "SE_InitPlugin"), ("filesystem", "INIT", "TF_InitPlugin")]


# ---- What ends a trial: the call is named --------------------------------------------------------


@pytest.mark.parametrize(("kind", "place", "call"), PLACES)
@pytest.mark.parametrize(
    ("deed", "rule", "number", "said"),
    [
        ("CRASH", "LD-060", signal.SIGSEGV, "crashed with SIGSEGV (signal 11)"),
        ("CALL_NULL", "LD-060", signal.SIGSEGV, "crashed with SIGSEGV (signal 11)"),
        (
            "OVERFLOW",
            "LD-060",
            signal.SIGSEGV,
            "overflowed the stack and crashed with SIGSEGV (signal 11)",
        ),
        (
            "OVERFLOW_IN_A_THREAD",
            "LD-060",
            signal.SIGSEGV,
            "overflowed the stack and crashed with SIGSEGV (signal 11)",
        ),
        ("CRASH_IN_THREADS", "LD-060", signal.SIGSEGV, "crashed with SIGSEGV (signal 11)"),
        ("ABORT", "LD-060", signal.SIGABRT, "aborted with SIGABRT (signal 6)"),
        ("EXIT_0", "LD-060", None, "ended the process with exit status 0"),
        ("EXIT_3", "LD-060", None, "ended the process with exit status 3"),
        ("LEAVE_3", "LD-060", None, "ended the process with exit status 3"),
        (
            "KILLED",
            "LD-060",
            signal.SIGKILL,
            "was killed with SIGKILL (signal 9, perhaps for want of memory)",
        ),
        ("INTERRUPT", "LD-060", signal.SIGINT, "was ended by SIGINT (signal 2)"),
        ("TERMINATE", "LD-060", signal.SIGTERM, "was ended by SIGTERM (signal 15)"),
        ("CLOSE_ALL", "LD-062", None, "closed or shut down a descriptor"),
        ("SHUT_DOWN", "LD-062", None, "closed or shut down a descriptor"),
        ("CLOSE_OUTPUT", "LD-062", None, "closed or replaced standard output"),
        ("ALLOCATE_ALL", "LD-064", signal.SIGSEGV, "asked for more memory than can be had, and"),
        ("FORK_MANY", "LD-068", None, "started "),
        ("FORK_AND_CRASH", "LD-060", signal.SIGSEGV, "crashed with SIGSEGV (signal 11)"),
    ],
)
def test_a_misdeed_is_named_with_its_call(kind, place, call, deed, rule, number, said):
    found = find_one(deed, place, kind)
    incident = found.incident

    assert (incident.violation.rule_id, incident.signal) == (rule, number)
    assert incident.violation.message.startswith(said)
    assert f" in {call}, {AT}" in incident.violation.message
    assert incident.last_call == call
    assert found.offer is None


@pytest.mark.parametrize(
    ("kind", "place", "call"),
    [
        ("device", "CONSTRUCTOR", "a constructor of the library"),
        ("device", "CREATE_DEVICE", "create_device of device 1"),
        ("device", "MEMORY_USAGE", "device_memory_usage of device 0"),
        ("device", "DESTROY_DEVICE", "destroy_device"),
        ("filesystem", "CONSTRUCTOR", "a constructor of the library"),
        ("filesystem", "SCHEME_INIT", "init of scheme 'misdeed'"),
        ("filesystem", "CLEANUP", "cleanup of scheme 'misdeed'"),
    ],
)
@pytest.mark.parametrize("deed", ["CRASH", "ABORT", "EXIT_3"])
def test_the_call_is_known_wherever_it_happens(kind, place, call, deed):
    incident = find_one(deed, place, kind).incident

    assert (incident.violation.rule_id, incident.last_call) == ("LD-060", call)


@pytest.mark.parametrize(("kind", "place", "call"), PLACES)
@pytest.mark.parametrize("deed", ["HANG", "SPIN"])
def test_a_call_that_hangs_is_ended(kind, place, call, deed, tmp_path, monkeypatch):
    pid_file = tmp_path / "pid"
    monkeypatch.setenv("MISDEED_PID", str(pid_file))
    incident = find_one(deed, place, kind, IMPATIENT).incident

    assert (incident.violation.rule_id, incident.last_call) == ("LD-061", call)
    assert incident.violation.message.startswith(f"did not return within 2 s in {call}, {AT}")
    assert _frames_of(deed, incident) != []


# ---- Where it was --------------------------------------------------------------------------------


def _frames_of(deed, incident):
    return [frame for frame in incident.backtrace if f"/lib{deed.lower()}_at_" in frame]


@pytest.mark.parametrize(
    ("deed", "is_in_the_call"),
    [
        ("CRASH", True),
        ("CALL_NULL", False),
        ("ABORT", True),
        ("EXIT_3", True),
        ("OVERFLOW", False),
        ("OVERFLOW_IN_A_THREAD", False),
        ("CRASH_IN_THREADS", False),
    ],
)
def test_the_backtrace_leads_through_the_plugin(deed, is_in_the_call):
    frames = _frames_of(deed, find_one(deed).incident)

    assert frames != []
    assert "_core." not in " ".join(frames)
    assert not is_in_the_call or any(" SE_InitPlugin+0x" in f for f in frames)


def test_threads_that_crash_at_once_tell_of_one_crash():
    for _ in range(10):
        backtrace = find_one("CRASH_IN_THREADS").incident.backtrace

        assert sum("_at_" in frame for frame in backtrace) == 1


def test_a_private_copy_is_shown_under_the_users_path(fixture_plugin):
    """It needs TensorFlow's library, so it is mapped from memory."""
    library = fixture_plugin("init-plugin-crashes")
    (found,) = try_plugins([Task("x", str(library), kinds=("filesystem",))], PATIENT)

    assert any(frame.startswith(f"{library} ") for frame in found.incident.backtrace)


def test_a_private_copy_is_known_in_its_constructors_already(fixture_plugin):
    library = fixture_plugin("constructor-crashes")
    (found,) = try_plugins([Task("x", str(library), kinds=("filesystem",))], PATIENT)

    assert any(frame.startswith(f"{library} ") for frame in found.incident.backtrace)


# ---- What lets the process live ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "rule", "said"),
    [
        ("FORK", "LD-068", "left a process behind"),
        ("DAEMON", "LD-068", "left a process behind"),
        ("CATCH_INTERRUPT", "LD-066", "handles SIGINT"),
        ("DEFAULT_PIPE", "LD-066", "set the default action for SIGPIPE"),
        ("IGNORE_CHILDREN", "LD-066", "ignores SIGCHLD"),
        ("BLOCK_INTERRUPT", "LD-066", "blocks SIGINT"),
        ("CHANGE_LOCALE", "LD-067", "changed the locale: "),
    ],
)
@pytest.mark.parametrize(
    ("kind", "place"),
    [("device", "INIT"), ("device", "CONSTRUCTOR"), ("filesystem", "SCHEME_INIT")],
)
def test_what_is_left_changed_is_found_at_the_end(deed, rule, said, kind, place, capfd):
    found = find_one(deed, place, kind)

    assert found.incident.violation.rule_id == rule
    assert found.incident.violation.message.startswith(said)
    assert (found.incident.signal, found.incident.last_call) == (None, None)
    assert found.offer == _offer_of(kind)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("deed", "said"), [("NOISE", '\'{"lost"'), ("UNFLUSHED", '"no line\'s end"')]
)
@pytest.mark.parametrize(
    ("kind", "place"),
    [("device", "INIT"), ("device", "CONSTRUCTOR"), ("filesystem", "SCHEME_INIT")],
)
def test_what_it_prints_is_a_warning(deed, said, kind, place, capfd):
    found = find_one(deed, place, kind)
    (note,) = found.notes

    assert found.incident is None
    assert note.rule == "LD-065"
    assert note.message.startswith(f"wrote to standard output: {said}")
    assert found.offer == _offer_of(kind)
    assert capfd.readouterr() == ("", "")


def _offer_of(kind):
    if kind == "filesystem":
        return Offer(("misdeed",))
    return Offer((), PlatformOffer("DIALECT", "DIALECT_PLATFORM", 220))


@pytest.mark.parametrize(
    ("deed", "said"),
    [
        ("CATCH_FPE", "handles SIGFPE"),
        ("CHAIN_INTERRUPT", "handles SIGINT"),
        ("CHANGE_DIRECTORY", "changed the working directory to /"),
        ("CHANGE_UMASK", "changed the umask from "),
        ("CHANGE_ENVIRONMENT", "changed environment variables: MISDEED"),
        ("PRELOAD", "changed what programs that are started from now on load or run: LD_PRELOAD="),
        pytest.param(
            "FLUSH_TO_ZERO",
            "made the processor take denormal numbers for zero; that was undone",
            marks=X86,
        ),
        ("ROUND_UP", "made the processor round otherwise; that was undone"),
        pytest.param(
            "TRAP_INVALID",
            "changed which floating-point exceptions end the process; that was undone",
            marks=X86,
        ),
        pytest.param(
            "TRAP_INVALID_X87",
            "changed which floating-point exceptions end the process; that was undone",
            marks=X86,
        ),
    ],
)
def test_what_does_little_harm_is_a_warning(deed, said):
    found = find_one(deed)
    (note,) = found.notes

    assert found.incident is None
    assert (note.stage, note.rule, note.is_error) == ("load", "LD-069", False)
    assert note.message.startswith(said)


@pytest.mark.parametrize("kind", ["device", "filesystem"])
def test_a_thread_that_reads_a_stream_does_not_hold_up_the_trial(kind):
    found = find_one("READ_IN_A_THREAD", "INIT", kind)

    assert found.incident is None
    assert [note.rule_id for note in found.notes] == ["LD-065"]  # it also prints


@pytest.mark.parametrize(
    "deed", ["NOTHING", "COMPLAIN", "THREAD", "MANY_THREADS", "RESERVE", "SCRIBBLE"]
)
@pytest.mark.parametrize("kind", ["device", "filesystem"])
def test_what_is_no_misdeed(deed, kind, capfd):
    found = find_one(deed, "INIT", kind)

    assert (found.incident, found.notes, found.offer) == (None, (), _offer_of(kind))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("count", "length"), [(1024, 6), (1024, 1000), (1, 5000)])
def test_who_breaks_many_rules_or_has_long_names_is_not_who_ends_a_process(count, length):
    source = Path(__file__).with_name("many_schemes.c")
    built = compile_object(source, [f"COUNT={count}", f"LENGTH={length}"])
    task = Task("many", str(link_library("libmany.so", [built])), kinds=("filesystem",))

    [found] = try_plugins([task], PATIENT)

    assert found.incident is None
    assert not found.is_clean
    assert count != 1024 or len(found.notes) > 400
    assert {note.rule for note in found.notes} >= ({"FS-007"} if length > 1000 else {"FS-013"})


@pytest.mark.parametrize("errors_last", [False, True])
def test_of_too_many_notes_errors_are_kept(errors_last):
    notes = [noted(Violation("FS-020", "?", "init"))] * MOST_NOTES + [
        noted(Violation("FS-013", "?", "init"))
    ]

    found = bounded_finding(Offer(), notes if errors_last else notes[::-1])

    assert len(found.notes) == MOST_NOTES
    assert not found.is_clean


def test_what_was_done_has_room_beside_many_notes():
    notes = (noted(Violation("FS-020", "?", "init")),) * MOST_NOTES
    changes = (Violation("LD-069", "changed the umask"),)
    ending = Ending(entered="x", outcome=Outcome(Finding(None, Offer(), notes), changes))

    found = finding_of(ending, PATIENT)

    assert len(found.notes) == MOST_NOTES
    assert found.notes_of_trial[0].message.startswith("changed the umask")


def test_a_forged_report_of_the_wrong_shape_is_none():
    incident = find_one("FORGE").incident

    assert incident.violation.message.startswith("ended the process with exit status 0 in SE_Init")


def test_a_forged_call_is_shown_as_plain_text():
    incident = find_one("FORGE_CALL").incident

    assert incident.last_call == "x?[31m"
    assert "aborted with SIGABRT (signal 6) in x?[31m, " in incident.violation.message


def test_a_forged_change_is_cut_and_shown_as_plain_text():
    message = find_one("FORGE_CHANGE").incident.violation.message

    assert message.startswith("?[2J FORGED AAA")
    assert len(message) == 2000
    assert message.isprintable()


def test_nobody_excuses_itself_with_a_rule_that_only_the_watcher_judges_by():
    incident = find_one("FORGE_EXCUSE").incident

    assert not incident.is_not_tried
    assert incident.violation.message.startswith("ended the process with exit status 0")


@pytest.mark.parametrize("rule", ["LD-066", "LD-067", "LD-068"])
def test_a_user_can_take_it_as_a_warning(rule):
    deed = {
        "LD-066": "CATCH_INTERRUPT",
        "LD-067": "CHANGE_LOCALE",
        "LD-068": "FORK",
    }[rule]
    found = find_one(deed, limits=Limits(seconds=60.0, accept=frozenset({rule})))
    (note,) = found.notes

    assert found.incident is None
    assert note.rule == "LD-069"
    assert note.message.endswith(f"{AT} ({rule}, accepted)")


@pytest.mark.parametrize("deed", ["CRASH", "ALLOCATE_ALL", "FORK_MANY", "CLOSE_OUTPUT"])
def test_what_ends_a_process_cannot_be_accepted(deed):
    everything = frozenset(f"LD-0{number}" for number in range(60, 70))

    assert find_one(deed, limits=Limits(accept=everything)).incident is not None


# ---- Memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize("deed", ["ALLOCATE", "TOUCH_AND_FREE"])
@pytest.mark.parametrize(("kind", "place", "call"), PLACES)
def test_a_gibibyte_is_found(deed, kind, place, call):
    incident = find_one(deed, place, kind).incident

    assert (incident.violation.rule_id, incident.last_call) == ("LD-064", call)
    assert "MiB of memory (1024 MiB are allowed)" in incident.violation.message


def test_a_user_can_allow_a_gibibyte():
    assert find_one("TOUCH_AND_FREE", limits=Limits(memory_mib=2048)).incident is None
    accepting = Limits(memory_mib=64, accept=frozenset({"LD-064"}))
    (note,) = find_one("ALLOCATE", limits=accepting).notes
    assert "(LD-064, accepted)" in note.message


def test_a_file_may_not_become_endless(tmp_path, monkeypatch):
    monkeypatch.setenv("MISDEED_NOTES", str(tmp_path / "large"))
    incident = find_one("FILL_DISK").incident

    assert "exit status 7" in incident.violation.message
    assert (tmp_path / "large").stat().st_size < 2 << 30


# ---- Words ---------------------------------------------------------------------------------------


def test_an_exception_that_nobody_can_catch_is_told_in_its_own_words(verdict):
    violation = verdict("THROW", "CONSTRUCTOR")

    assert violation.rule_id == "LD-060"
    assert violation.message.startswith("let an exception escape and aborted with SIGABRT")
    assert "what():  no such driver" in violation.message


@pytest.mark.parametrize(
    ("kind", "place", "rule"),
    [
        ("device", "INIT", "SE-002"),
        ("filesystem", "INIT", "LD-052"),
        ("filesystem", "SCHEME_INIT", "FS-019"),
    ],
)
def test_an_exception_that_the_host_can_catch_is_what_loading_reports(kind, place, rule):
    found = find_one("THROW", place, kind)

    assert (found.incident, found.offer) == (None, Offer())
    assert [(note.stage, note.rule) for note in found.notes] == [("init", rule)]
    assert "no such driver" in found.notes[0].message


def test_last_words_are_shown_in_a_line_that_no_terminal_obeys(verdict):
    assert verdict("LAST_WORDS").message.endswith("; it last wrote: first / no driver?[0m")


def test_the_rfcs_example_dereferences_null(rfc_example):
    (found,) = try_plugins([Task("example", str(rfc_example))], PATIENT)

    assert found.incident.violation.rule_id == "LD-060"
    assert "crashed with SIGSEGV (signal 11) in SE_InitPlugin" in found.incident.violation.message
    assert "rfc_example.so SE_InitPlugin+0x" in found.incident.backtrace[0]


def test_findings_come_in_the_order_of_the_tasks(misdeed):
    deeds = ["NOTHING", "EXIT_3", "NOTHING", "CRASH", "EXIT_0", "NOTHING", "ABORT", "NOTHING"]
    tasks = [Task(deed, str(misdeed(deed))) for deed in deeds]
    told = {}
    found = try_plugins(tasks, PATIENT, told.__setitem__)
    messages = [f.incident and f.incident.violation.message for f in found]

    assert [told[number] for number in range(len(deeds))] == found
    assert [bool(message) for message in messages] == [deed != "NOTHING" for deed in deeds]
    assert "exit status 3" in messages[1]
    assert "SIGSEGV" in messages[3]
    assert "exit status 0" in messages[4]
    assert "SIGABRT" in messages[6]


def test_a_library_that_cannot_be_mapped_is_what_loading_reports(tmp_path):
    (tmp_path / "libtext.so").write_text("no library")
    (found,) = try_plugins([Task("text", str(tmp_path / "libtext.so"))], PATIENT)

    assert (found.incident, found.offer) == (None, Offer())
    assert [(note.stage, note.is_error) for note in found.notes] == [("load", True)]


def test_a_library_of_both_kinds_is_tried_for_both(misdeed):
    library = misdeed("NOTHING")
    task = Task("both", str(library), kinds=("device", "filesystem"))
    (found,) = try_plugins([task], PATIENT)

    assert found.offer == _offer_of("device")
    assert [note.rule for note in found.notes] == ["LD-051"]
    assert isinstance(found.notes[0], Violation)


# ---- What the application holds at once ----------------------------------------------------------


@pytest.mark.parametrize(
    ("defines", "call"), [((), "init of scheme 'other'"), (("DEVICE",), "SE_InitPlugin")]
)
def test_who_crashes_beside_what_it_offers_too_is_found_out(defines, call):
    source = Path(__file__).with_name("held_at_once.c")
    library = link_library("libheld_at_once.so", [compile_object(source, defines)])
    task = Task("held", str(library), kinds=("filesystem", "device")[: 1 + len(defines)])

    [found] = try_plugins([task], PATIENT)

    assert found.incident is not None
    assert (found.incident.violation.rule_id, found.incident.last_call) == ("LD-060", call)
