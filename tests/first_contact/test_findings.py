"""Findings cross a pipe and lie on disk: they come back equal, and nothing else is one.

The process in which a plugin ran writes entries: each field has its type and bounds, or is refused.
"""

import copy
import json

import pytest

from modular_tf.codec import decode, encode
from modular_tf.discovery.file_identity import FileIdentity, SeenFile
from modular_tf.first_contact.finding import (
    ACCEPTABLE,
    MOST_NOTES,
    Finding,
    Incident,
    Offer,
    PlatformOffer,
    noted,
)
from modular_tf.first_contact.verdict import Ending
from modular_tf.processes.ending import MOST_FRAMES, readable_frames
from modular_tf.processes.watched_child import EntryReader
from modular_tf.rules import Violation, rule

HUGE = 10**4000  # JSON has it, and most of what is done with numbers takes it
LONG = "é\x1b[2J\nnext" * 100_000
REFUSED = r"expected|unpack"
WHOLE = Finding(
    Incident.of(
        Violation("LD-060", "crashed"),
        signal=11,
        last_call="SE_InitPlugin",
        backtrace=("/p/libx.so f+0x4", "/p/libx.so+0x1230"),
        last_output="no driver\udcff",
    ),
    Offer(("s3", ""), PlatformOffer("GPU", "CHIP", 220)),
    (noted(Violation("LD-050", "refused", "load")), noted(Violation(None, "its own word", "init"))),
    (SeenFile("/p/\xfc ber\udcff.so", FileIdentity(1, 2, 3, 4, 5), "f" * 64, 6, "0-b"),),
    storable=False,
)
SIZES = [4096, -8192, 0]
OUTCOME = {
    "finding": json.loads(json.dumps(encode(WHOLE._replace(incident=None)))),
    "changes": [["LD-069", "changed the umask"]],
}
NOTE = OUTCOME["finding"]["notes"][0]
# With the field of the ending that it fills.
ENTRIES = [
    ({"enters": "SE_InitPlugin", "memory": SIZES}, "entered"),
    ({"finished": OUTCOME, "memory": SIZES}, "outcome"),
    ({"thread": 4242}, "thread"),
    ({"signal": 11, "errno": 2**64 - 1, "overflow": 1}, "signal"),
    ({"exits": 255}, "exits"),
    ({"frame": ["6c", "66", 16]}, "frames"),
    ({"traced": 1}, "has_all_frames"),
    ({"lost": "standard output"}, "lost"),
    ({"stops": 1}, "stops"),
    ({"fault": "OSError: no memory", "scarce": 1}, "fault"),
]


def read_entry(entry):
    ending = Ending()
    if not ending.take(entry):
        raise ValueError("expected an entry")
    return ending


def read_finding(found):
    return decode(Finding, found)


def changed(value, path, wrong):
    """Return a copy of a value that has something else in one place."""
    result = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    return result


# ---- findings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("finding", [Finding(), Finding(offer=Offer()), WHOLE])
def test_a_finding_comes_back_equal(finding):
    assert read_finding(json.loads(json.dumps(encode(finding)))) == finding


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("notes"),
        lambda found: found.update(more=1),
        lambda found: found["incident"].update(rule="LD-999"),
        lambda found: found["notes"][0].update(stage="probe"),
        *(lambda found, n=n: found["incident"].update(signal=n) for n in (0, -1, 65, 10**40)),
        lambda found: found["incident"].update(backtrace=["frame"] * (MOST_FRAMES + 1)),
        lambda found: found.update(notes=[{}] * (MOST_NOTES + 1)),
    ],
)
def test_missing_added_unknown_and_too_many_values_are_refused(change):
    broken = copy.deepcopy(encode(WHOLE))
    change(broken)

    with pytest.raises(ValueError, match="expected"):
        read_finding(broken)


def test_what_may_be_accepted_lets_the_process_live():
    refused = {*(f"LD-06{number}" for number in (4, 6, 7, 8)), "LD-120", "LD-121", "LD-146"}

    assert refused | {"LD-065"} == ACCEPTABLE  # which is a warning by itself
    assert all("first_contact_accept" in rule(rule_id).remedy for rule_id in refused)


def opened_row(path="/p/libmore.so", size=3):
    return [path, [1, 2, size, 4, 5], None, 6, "0-b"]


def test_a_finding_is_bounded_whatever_it_is_made_of():
    frames = readable_frames([[b"\x1b/x\n".hex() * 90_000, "1b66" * 90_000, 16]] * 100, [])
    assert len(frames) == MOST_FRAMES
    incident = Incident.of(
        Violation("LD-060", LONG),
        signal=11,
        last_call=LONG,
        backtrace=(*frames, LONG),
        last_output=LONG,
    )
    whole = Finding(incident, Offer(("s3",), PlatformOffer("GPU", "CHIP", 220)), ())
    whole = whole._replace(notes=(noted(Violation("FS-012", LONG, "init")),))

    assert len(json.dumps(encode(whole))) < 1 << 20
    assert read_finding(json.loads(json.dumps(encode(whole)))) == whole
    assert incident.backtrace == frames
    assert incident.last_output.count("\n") > 100  # last words keep their lines
    for line in (
        incident.violation.message, incident.last_call, *incident.backtrace,
        *incident.last_output.split("\n"), whole.notes[0].message,
    ):  # fmt: skip
        assert line.isprintable()


# ---- entries of a child --------------------------------------------------------------------------


@pytest.mark.parametrize(("entry", "field"), ENTRIES, ids=[field for _, field in ENTRIES])
def test_an_entry_fills_its_field_and_has_no_other_keys(entry, field):
    assert getattr(read_entry(json.loads(json.dumps(entry))), field)
    for other in (entry | {"more": 1}, dict(list(entry.items())[1:])):
        with pytest.raises(ValueError, match="expected"):
            read_entry(other)


_FIELDS = [
    pytest.param(entry, name, id=name)
    for entry, _ in ENTRIES
    for name in entry.keys() - {"memory", "finished", "frame"}
]


@pytest.mark.parametrize(("entry", "name"), sorted(_FIELDS, key=lambda field: field.id))
def test_a_field_of_another_type_or_beyond_its_bounds_is_refused(entry, name):
    is_text = isinstance(entry[name], str)  # in which anything may stand
    wrongs = (None, True, 1.5, float("nan"), HUGE, -HUGE, [], {}, *([] if is_text else [""]))
    for wrong in wrongs:
        with pytest.raises(ValueError, match=REFUSED):
            read_entry(entry | {name: wrong})


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("memory",), [0, 0]),
        (("memory",), [2**62 + 1, 0, 0]),
        (("memory", 2), True),
        (("changes",), [["LD-069", "x"]] * 65),
        (("changes", 0), ["LD-069", "x", "y"]),
        (("changes", 0, 0), "LD-060"),
        (("finding", "notes"), [NOTE] * (MOST_NOTES + 1)),
        (("finding", "notes", 0, "rule"), "LD-999"),
        (("finding", "notes", 0, "stage"), "trust"),
        (("finding", "opened"), [["/x", None, None, 0, ""]] * 1025),
        (("finding", "opened"), [opened_row(f"/p/lib{at}.so", 1 << 32) for at in range(3)]),
        (("finding", "opened"), [["/p/libmore.so", None, None, 6, "0-b"]]),
        (("finding", "opened"), [opened_row("/p/\x1b[2Jlibmore.so")]),
        (("finding", "opened", 0, 0), "libx.so"),
        (("finding", "opened", 0, 0), "/" + "x" * 4096),
        (("finding", "opened", 0, 2), "0" * 63),
        (("finding", "opened", 0, 3), HUGE),
        (("finding", "opened", 0, 4), "\x1b[2J"),
        (("finding", "incident"), encode(Incident.of(Violation("LD-060", "x")))),
        (("finding", "offer"), None),
        (("finding", "offer", "schemes"), ["s3", "s3"]),
        (("finding", "offer", "schemes"), [f"s{number}" for number in range(1025)]),
        (("finding", "offer", "schemes"), ["s" * 1001]),
        (("finding", "offer", "schemes"), ["file://"]),
        (("finding", "offer", "platform", "platform"), "ch-ip"),
        (("finding", "offer", "kernels"), -1),
        (("finding", "offer", "ops"), HUGE),
        (("finding", "offer", "platform", "device_type"), "GPU:0"),
        (("finding", "offer", "platform", "priority"), 2**31),
        (("finding", "offer", "platform", "layout"), "device 2.9"),
        (("finding", "offer", "platform", "has_timers"), 1),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_outcome_beyond_its_bounds_is_none(path, wrong):
    where = path if path[0] == "memory" else ("finished", *path)
    with pytest.raises(ValueError, match=REFUSED):
        read_entry(changed({"finished": OUTCOME, "memory": SIZES}, where, wrong))


def test_texts_are_cut_and_plain():
    texts = [
        read_entry({"enters": LONG, "memory": SIZES}).entered,
        read_entry({"lost": LONG}).lost,
        read_entry({"fault": LONG, "scarce": 0}).fault,
    ]
    for path in (("finding", "notes", 0, "message"), ("changes", 0, 1)):
        outcome = read_entry({"finished": changed(OUTCOME, path, LONG), "memory": SIZES}).outcome
        found = outcome.changes if path[0] == "changes" else outcome.finding.notes
        texts.append(found[0].message)
    for text in texts:
        assert text.startswith(("é?[2J next", "é\\x1b[2J\\nnext"))  # a violation writes them out
        assert text.isprintable()
        assert len(text) in {200, 2000}


@pytest.mark.parametrize(
    "frame",
    [
        ["6c", "66"], ["6", "66", 1], [6, "66", 1], ["6c", None, 1], ["zz", "66", 1],
        ["6c", "66", -1], ["6c", "66", 2**64], ["6c", "66", 1.5], ["6c", "66", True], [],
    ],
    ids=lambda frame: repr(frame)[:20],
)  # fmt: skip
def test_a_frame_of_another_form_is_left_out(frame):
    assert readable_frames([frame, ["6c", "66", 16]], []) == ("l f+0x10",)


@pytest.mark.parametrize(
    "line", [b'{"exits": NaN}', b'{"exits": Infinity}', b'{"exits": 3', b"[" * 9999, b"\xff", b"3"]
)
def test_a_line_that_is_no_entry_is_left_out(line):
    ending = Ending()
    EntryReader(ending.take)(line + b'\n{"stops": 1}\n')

    assert ending == Ending(stops=True)
