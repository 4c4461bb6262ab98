"""What is found of each plugin that does something to the process it is tried in."""

from pathlib import Path
from signal import SIGABRT, SIGKILL, SIGSEGV

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
from modular_tf.first_contact.verdict import IN_ORDER, Ending, Outcome, finding_of
from modular_tf.loading.task import Task
from modular_tf.rules import Violation
from tests.first_contact.conftest import (
    PATIENT,
    find_alone,
    find_of,
    find_one,
    misdeed_task,
)
from tests.fixtures.compiler import compile_object, link_library
from tests.fixtures.machine import EXIT_WAITS_FOR_READERS

AT = "at first contact in a child process"
AT_THE_END = "an exit handler or destructor"
CALLS = {
    ("device", "INIT"): "SE_InitPlugin",
    ("device", "CONSTRUCTOR"): "a constructor of the library",
    ("device", "CREATE_DEVICE"): "create_device of device 1",
    ("device", "MEMORY_USAGE"): "device_memory_usage of device 0",
    ("device", "DESTROY_DEVICE"): "destroy_device",
    ("filesystem", "INIT"): "TF_InitPlugin",
    ("filesystem", "CONSTRUCTOR"): "a constructor of the library",
    ("filesystem", "SCHEME_INIT"): "init of scheme 'misdeed'",
    ("filesystem", "CLEANUP"): "cleanup of scheme 'misdeed'",
}
OFFERS = {
    "device": Offer((), PlatformOffer("DIALECT", "DIALECT_PLATFORM", 220)),
    "filesystem": Offer(("misdeed",)),
}
CRASHED = "crashed with SIGSEGV (signal 11)"
ABORTED = "aborted with SIGABRT (signal 6)"
EXITED = "ended the process with exit status"
OVERFLOWED = f"overflowed the stack and {CRASHED}"


# ---- What ends a trial: the call is named --------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "kind", "place", "rule", "number", "message"),
    [
        ("CRASH", "device", "INIT", "LD-060", SIGSEGV, CRASHED),
        ("ABORT", "device", "CREATE_DEVICE", "LD-060", SIGABRT, ABORTED),
        ("EXIT_3", "device", "MEMORY_USAGE", "LD-060", None, f"{EXITED} 3"),
        ("CRASH", "device", "DESTROY_DEVICE", "LD-060", SIGSEGV, CRASHED),
        ("EXIT_3", "filesystem", "CONSTRUCTOR", "LD-060", None, f"{EXITED} 3"),
        ("ABORT", "filesystem", "SCHEME_INIT", "LD-060", SIGABRT, ABORTED),
        ("CRASH", "filesystem", "CLEANUP", "LD-060", SIGSEGV, CRASHED),
        ("OVERFLOW", "filesystem", "INIT", "LD-060", SIGSEGV, OVERFLOWED),
        ("OVERFLOW_IN_A_THREAD", "device", "INIT", "LD-060", SIGSEGV, OVERFLOWED),
        ("CRASH_AT_FORK", "device", "INIT", "LD-060", SIGABRT, ABORTED),
        ("EXIT_0", "device", "INIT", "LD-060", None, f"{EXITED} 0"),
        ("LEAVE_3", "filesystem", "INIT", "LD-060", None, f"{EXITED} 3"),
        ("KILLED", "device", "INIT", "LD-060", SIGKILL, "was killed with SIGKILL (signal 9, perh"),
        ("CLOSE_ALL", "filesystem", "INIT", "LD-062", None, "closed or shut down a descriptor"),
        ("SHUT_DOWN", "device", "INIT", "LD-062", None, "closed or shut down a descriptor"),
        ("CLOSE_OUTPUT", "filesystem", "INIT", "LD-062", None, "closed or replaced standard outp"),
        ("ALLOCATE_ALL", "device", "INIT", "LD-064", SIGSEGV, "asked for more memory than can "),
        ("FORK_MANY", "filesystem", "INIT", "LD-068", None, "started "),
    ],
)
def test_a_misdeed_is_named_with_its_call(deed, kind, place, rule, number, message):
    found = find_one(deed, place, kind)
    incident = found.incident
    call = "its functions at a fork" if deed == "CRASH_AT_FORK" else CALLS[kind, place]

    assert (incident.violation.rule_id, incident.signal) == (rule, number)
    assert incident.violation.message.startswith(message)
    assert f" in {call}, {AT}" in incident.violation.message
    assert incident.last_call == call
    assert found.offer is None


@pytest.mark.parametrize(
    ("deed", "kind", "place", "number", "message"),
    [
        ("CRASH", "device", "EXIT_HANDLER", SIGSEGV, CRASHED),
        ("ABORT", "filesystem", "DESTRUCTOR", SIGABRT, ABORTED),
        ("LEAVE_0", "device", "DESTRUCTOR", None, f"{EXITED} 0"),
        ("HANG", "device", "DESTRUCTOR", None, "did not return within 3 s"),
    ],
)
def test_what_spoils_the_end_of_the_process_is_quarantine(deed, kind, place, number, message):
    limits = Limits(seconds=3.0) if deed == "HANG" else PATIENT
    incident = find_one(deed, place, kind, limits=limits).incident

    assert (incident.violation.rule_id, incident.signal) == ("LD-146", number)
    assert incident.violation.message.startswith(f"{message} in {AT_THE_END}, {AT}")
    assert incident.last_call == AT_THE_END
    assert deed.startswith("LEAVE") or frames_of(deed, incident) != []


def test_a_call_that_hangs_is_ended():
    hanging = [("HANG", "device"), ("SPIN", "filesystem")]
    tasks = [misdeed_task(deed, "INIT", kind) for deed, kind in hanging]

    for (deed, kind), found in zip(hanging, try_plugins(tasks, Limits(seconds=2.0)), strict=True):
        incident, call = found.incident, CALLS[kind, "INIT"]
        assert (incident.violation.rule_id, incident.last_call) == ("LD-061", call)
        assert incident.violation.message.startswith(f"did not return within 2 s in {call}, {AT}")
        assert frames_of(deed, incident) != []


# ---- Where it was --------------------------------------------------------------------------------


def frames_of(deed, incident):
    return [frame for frame in incident.backtrace if f"/lib{deed.lower()}_at_" in frame]


@pytest.mark.parametrize(
    "deed", ["CRASH", "EXIT_3", "CALL_NULL", "OVERFLOW_IN_A_THREAD", "CRASH_IN_THREADS"]
)
def test_the_backtrace_leads_through_the_plugin(deed):
    frames = frames_of(deed, find_one(deed).incident)

    assert frames != []
    assert "_core." not in " ".join(frames)
    if deed in {"CRASH", "EXIT_3"}:  # the others are not in the call itself
        assert any(" SE_InitPlugin+0x" in frame for frame in frames)
    if deed == "CRASH_IN_THREADS":  # at once, and one crash is reported
        assert len(frames) == 1


@pytest.mark.parametrize("variant", ["init-plugin-crashes", "constructor-crashes"])
def test_a_private_copy_is_shown_under_the_users_path(variant, fixture_plugin):
    """It needs TensorFlow's library, so it is mapped from memory."""
    library = fixture_plugin(variant)
    found = find_of(Task("x", str(library), kinds=("filesystem",)))

    assert any(frame.startswith(f"{library} ") for frame in found.incident.backtrace)


# ---- What lets the process live ------------------------------------------------------------------


@pytest.mark.parametrize(
    "deed",
    ["NOTHING", "THREAD", "MANY_THREADS", "RESERVE", "SCRIBBLE", "AT_FORK", "DEFAULT_SEGV"],
)
def test_what_is_no_misdeed(deed):
    found = find_one(deed)

    assert (found.incident, found.notes, found.offer) == (None, (), OFFERS["device"])


@pytest.mark.parametrize(
    ("deed", "notes"),
    [
        ("COMPLAIN", []),
        ("NOISE", ["LD-065"]),
        *([] if EXIT_WAITS_FOR_READERS else [("READ_IN_A_THREAD", ["LD-065"])]),
    ],
)
def test_what_is_written_to_the_standard_streams_comes_to_nobody(deed, notes, capfd):
    """Nor does a thread that reads one hold up the trial."""
    found = find_alone(deed, "SCHEME_INIT", "filesystem")

    assert [note.rule for note in found.notes] == notes
    assert (found.incident, found.offer) == (None, OFFERS["filesystem"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("count", "length"), [(1024, 1000), (1, 5000)])
def test_many_broken_rules_and_long_names_do_not_end_a_process(count, length):
    source = Path(__file__).with_name("many_schemes.c")
    built = compile_object(source, [f"COUNT={count}", f"LENGTH={length}"])
    found = find_of(Task("many", str(link_library("libmany.so", [built])), kinds=("filesystem",)))

    assert found.incident is None
    assert not found.is_clean
    assert count != 1024 or len(found.notes) > 400
    assert {note.rule for note in found.notes} >= ({"FS-007"} if length > 1000 else {"FS-013"})


MANY_NOTES = (noted(Violation("FS-020", "?", "init")),) * MOST_NOTES


@pytest.mark.parametrize("errors_last", [False, True])
def test_of_too_many_notes_errors_remain(errors_last):
    notes = [*MANY_NOTES, noted(Violation("FS-013", "?", "init"))]

    found = bounded_finding(Offer(), notes if errors_last else notes[::-1])

    assert len(found.notes) == MOST_NOTES
    assert not found.is_clean


def test_what_was_done_is_in_one_message_and_has_room_beside_many_notes():
    changes = (Violation("LD-067", "changed the locale"), Violation("LD-066", "handles SIGINT"))
    warned = (Violation("LD-069", "changed the umask"),)
    refused, noted_only = (
        finding_of(Ending(status=IN_ORDER, entered="x", outcome=Outcome(found, done)), PATIENT)
        for found, done in (
            (Finding(None, Offer()), changes),
            (Finding(None, Offer(), MANY_NOTES), warned),
        )
    )

    violation = refused.incident.violation
    assert violation.rule_id == "LD-066"
    assert violation.message == f"handles SIGINT, {AT}; also changed the locale (LD-067)"
    assert len(noted_only.notes) == MOST_NOTES
    assert noted_only.notes_of_trial[0].message.startswith("changed the umask")


@pytest.mark.parametrize(
    ("deed", "call", "message"),
    [
        ("FORGE", "SE_InitPlugin", f"{EXITED} 0 in SE_Init"),
        ("FORGE_CALL", "x?[31m", f"{ABORTED} in x?[31m, "),
        ("FORGE_CHANGE", None, "?[2J FORGED AAA"),
        # With a rule that only the watcher judges by.
        ("FORGE_EXCUSE", "SE_InitPlugin", f"{EXITED} 0"),
    ],
)
def test_a_forged_report_excuses_nobody_and_is_cut_plain_text(deed, call, message):
    incident = find_one(deed).incident

    assert not incident.is_not_tried
    assert incident.last_call == call
    assert incident.violation.message.startswith(message)
    assert incident.violation.message.isprintable()
    assert deed != "FORGE_CHANGE" or len(incident.violation.message) == 2000


@pytest.mark.parametrize(
    ("deed", "place", "rule"),
    [
        ("CATCH_INTERRUPT", "INIT", "LD-066"),
        ("CHANGE_LOCALE", "INIT", "LD-067"),
        ("FORK", "INIT", "LD-068"),
        ("NO_FILE_SIZE", "INIT", "LD-120"),
        ("ALARM", "INIT", "LD-121"),
        ("ALLOCATE", "INIT", "LD-064"),
        ("CRASH", "DESTRUCTOR", "LD-146"),
    ],
)
def test_a_user_can_take_it_as_a_warning(deed, place, rule):
    limits = Limits(seconds=60.0, accept=frozenset({rule}))
    found = find_one(deed, place, "filesystem", limits=limits)

    assert (found.incident, found.offer) == (None, OFFERS["filesystem"])
    accepted = [note for note in found.notes if note.message.endswith(f"{AT} ({rule}, accepted)")]
    assert [note.rule for note in accepted] == ["LD-069"]


@pytest.mark.parametrize("deed", ["CRASH", "ALLOCATE_ALL"])
def test_what_ends_a_process_cannot_be_accepted(deed):
    everything = frozenset(f"LD-0{number}" for number in range(60, 70))

    assert find_one(deed, limits=Limits(accept=everything)).incident is not None


# ---- Memory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "kind"), [("ALLOCATE", "filesystem"), ("TOUCH_AND_FREE", "device")]
)
def test_a_gibibyte_is_found_unless_it_is_allowed(deed, kind):
    incident = find_one(deed, "INIT", kind).incident

    assert (incident.violation.rule_id, incident.last_call) == ("LD-064", CALLS[kind, "INIT"])
    assert "MiB of memory (1024 MiB are allowed)" in incident.violation.message
    assert find_one(deed, "INIT", kind, limits=Limits(memory_mib=2048)).incident is None


def test_a_file_may_not_become_endless(tmp_path, monkeypatch):
    monkeypatch.setenv("MISDEED_NOTES", str(tmp_path / "large"))
    incident = find_alone("FILL_DISK").incident

    assert "exit status 7" in incident.violation.message
    assert (tmp_path / "large").stat().st_size < 2 << 30


# ---- Words ---------------------------------------------------------------------------------------


def test_an_exception_that_nobody_can_catch_and_last_words_are_reported_in_plain_text():
    violation = find_one("THROW", "CONSTRUCTOR").incident.violation
    words = find_one("LAST_WORDS").incident.violation.message

    assert violation.rule_id == "LD-060"
    assert violation.message.startswith("let an exception escape and aborted with SIGABRT")
    assert "what():  no such driver" in violation.message
    assert words.endswith("; it last wrote: first / no driver?[0m")


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


def test_each_of_many_has_a_finding_of_its_own_in_the_order_of_the_tasks():
    words = {"NOTHING": None, "EXIT_3": "exit status 3", "CRASH": "SIGSEGV",
             "EXIT_0": "exit status 0", "THROW": None, "ABORT": "SIGABRT"}  # fmt: skip
    deeds = [*words, "NOTHING", "CRASH"] * 3  # more than are tried at once
    reported = {}
    found = try_plugins([*map(misdeed_task, deeds)], PATIENT, reported.__setitem__)

    assert [reported[number] for number in range(len(deeds))] == found
    for deed, finding in zip(deeds, found, strict=True):
        assert bool(finding.incident) == bool(words[deed])
        assert bool(finding.notes) == (deed == "THROW")
        assert not words[deed] or words[deed] in finding.incident.violation.message


def test_a_library_that_cannot_be_mapped_is_what_loading_reports(tmp_path):
    (tmp_path / "libtext.so").write_text("no library")
    found = find_of(Task("text", str(tmp_path / "libtext.so")))

    assert (found.incident, found.offer) == (None, Offer())
    assert [(note.stage, note.is_error) for note in found.notes] == [("load", True)]


def test_a_library_of_both_kinds_is_tried_for_both(misdeed):
    found = find_of(Task("both", str(misdeed("NOTHING")), kinds=("device", "filesystem")))

    assert found.offer == OFFERS["device"]
    assert [note.rule for note in found.notes] == ["LD-051"]
    assert isinstance(found.notes[0], Violation)


# ---- What the application holds at once ----------------------------------------------------------


@pytest.mark.parametrize(
    ("defines", "call"), [((), "init of scheme 'other'"), (("DEVICE",), "SE_InitPlugin")]
)
def test_a_crash_beside_what_it_offers_too_is_found(defines, call):
    source = Path(__file__).with_name("held_at_once.c")
    library = link_library("libheld_at_once.so", [compile_object(source, defines)])
    found = find_of(Task("held", str(library), kinds=("filesystem", "device")[: 1 + len(defines)]))

    assert found.incident is not None
    assert (found.incident.violation.rule_id, found.incident.last_call) == ("LD-060", call)
