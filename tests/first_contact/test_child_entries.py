"""What a process says in which a plugin ran: each field has its type and bounds, or is refused."""

from __future__ import annotations

import copy
import json

import pytest

from modular_tf.codec import decode, encode
from modular_tf.first_contact.finding import (
    MOST_NOTES,
    Finding,
    Incident,
    Offer,
    PlatformOffer,
    noted,
)
from modular_tf.first_contact.process_state import RULES_OF_CHANGES
from modular_tf.first_contact.verdict import Ending
from modular_tf.processes.ending import MOST_FRAMES, readable_frames
from modular_tf.processes.watched_child import EntryReader
from modular_tf.rules import Violation

HUGE = 10**4000  # JSON has it, and most of what is done with numbers takes it
SIZES = [4096, -8192, 0]
NOTE = {
    "rule": "FS-012", "message": "found 3", "stage": "init", "remedy": None, "path": None,
    "origin": None, "scheme": "s3",
}  # fmt: skip
UNUSED = ("scheme", "remedy", "path", "origin")
OUTCOME = {
    "finding": {
        "incident": None,
        "offer": {
            "schemes": ["s3", ""],
            "platform": {
                "device_type": "GPU",
                "platform": "CHIP",
                "priority": 220,
                "layout": "device-2.9",
                "has_timers": True,
            },
            "kernels": 3,
            "ops": 1,
        },
        "notes": [NOTE],
        "opened": [["/lib/libx.so", [1, 2, 3, 4, 5], "0" * 64, 6, "0-1"]],
        "storable": False,
    },
    "changes": [["LD-069", "changed the umask"]],
}
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
KINDS = [next(iter(entry)) for entry, _ in ENTRIES]
# Texts, in which anything printable may stand, and the frame, which `readable_frames` reads.
FREE = {
    ("enters",), ("lost",), ("fault",), ("finished", "finding", "notes", 0, "message"),
    ("finished", "changes", 0, 1), ("frame", 0), ("frame", 1), ("frame", 2),
}  # fmt: skip
# What is not known of a file that code opened: it was not there, not read, in no known boot.
MAY_OPEN = [(1, None), (2, None), (4, "")]


@pytest.mark.parametrize(("entry", "field"), ENTRIES, ids=KINDS)
def test_what_the_child_says_is_read(entry, field):
    assert getattr(_read(json.loads(json.dumps(entry))), field)


def _read(entry):
    ending = Ending()
    if not ending.take(entry):
        raise ValueError("expected an entry")
    return ending


def _paths(value, path=()):
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*path, key), inner
        if isinstance(inner, dict | list):
            yield from _paths(inner, (*path, key))


def _with(value, path, wrong):
    """Return a copy of a value that has something else in one place."""
    changed = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong
    return changed


def _misshapen():
    for entry, _ in ENTRIES:
        for path, value in _paths(entry):
            for wrong in (None, True, 1.5, float("nan"), HUGE, -HUGE, "", "\x1b[2J", [], [[]], {}):
                may_be = type(wrong) is type(value) and path in FREE
                may_be |= path[-1:] == ("frame",) and isinstance(wrong, list)
                may_be |= path[-2:] in {("offer", "platform"), (0, "rule")} and wrong is None
                may_be |= path[-1] in UNUSED and (wrong is None or isinstance(wrong, str))
                may_be |= path[-1] in {"schemes", "notes", "changes", "opened"} and wrong == []
                may_be |= path[-1] in {"storable", "has_timers"} and wrong is True
                may_be |= path[-1] == "incident" and wrong is None
                may_be |= path[-3:-1] == ("opened", 0) and (path[-1], wrong) in MAY_OPEN
                may_be |= path[-2:-1] == ("schemes",) and wrong == "" and path[-1] == 1
                may_be |= path[:1] == ("frame",) and len(path) > 1
                if not may_be:
                    name = f"{next(iter(entry))} {path} {wrong!r:.20}"
                    yield pytest.param(_with(entry, path, wrong), id=name)


@pytest.mark.parametrize("entry", list(_misshapen()))
def test_an_entry_with_a_wrong_field_is_none(entry):
    with pytest.raises(ValueError, match=r"expected|unpack"):
        _read(entry)


@pytest.mark.parametrize("entry", [entry for entry, _ in ENTRIES], ids=KINDS)
def test_an_entry_with_a_field_more_or_less_is_none(entry):
    for changed in (entry | {"more": 1}, dict(list(entry.items())[1:])):
        with pytest.raises(ValueError, match="expected"):
            _read(changed)


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("changes",), [["LD-069", "x"]] * 65),
        (("changes", 0), ["LD-069"]),
        (("changes", 0), ["LD-069", "x", "y"]),
        (("changes", 0, 0), "LD-063"),  # that it could not be tried is for others to say
        (("changes", 0, 0), "LD-060"),
        (("changes", 0, 0), "LD-999"),
        (("finding", "notes"), [NOTE] * (MOST_NOTES + 1)),
        (("finding", "notes", 0, "rule"), "LD-999"),
        (("finding", "notes", 0, "stage"), "trust"),
        (("finding", "opened"), [["/x", None, None, 0, ""]] * 1025),
        (("finding", "opened", 0, 0), "libx.so"),
        (("finding", "opened", 0, 0), "/" + "x" * 4096),
        (("finding", "opened", 0, 0), "/x\0"),
        (("finding", "opened", 0, 2), "0" * 63),
        (("finding", "incident"), encode(Incident.of(Violation("LD-060", "x")))),
        (("finding", "offer"), None),
        (("finding", "offer", "schemes"), ["s3", "s3"]),
        (("finding", "offer", "schemes"), [f"s{number}" for number in range(1025)]),
        (("finding", "offer", "schemes"), ["s" * 1001]),
        (("finding", "offer", "schemes"), ["file://"]),
        (("finding", "offer", "schemes"), ["s3\n"]),
        (("finding", "offer", "platform", "platform"), "ch-ip"),
        (("finding", "offer", "kernels"), -1),
        (("finding", "offer", "ops"), HUGE),
        (("finding", "offer", "platform", "device_type"), "GPU:0"),
        (("finding", "offer", "platform", "device_type"), "G" * 1001),
        (("finding", "offer", "platform", "priority"), 2**31),
        (("finding", "offer", "platform", "layout"), "device 2.9"),
        (("finding", "offer", "platform", "has_timers"), 1),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_outcome_beyond_its_bounds_is_none(path, wrong):
    with pytest.raises(ValueError, match=r"expected|unpack"):
        _read({"finished": _with(OUTCOME, path, wrong), "memory": SIZES})


@pytest.mark.parametrize("sizes", [[0, 0], [0] * 4, [2**62 + 1, 0, 0], [0, 0, True]])
def test_sizes_of_memory_beyond_their_bounds_are_none(sizes):
    with pytest.raises(ValueError, match=r"expected|unpack"):
        _read({"enters": "f", "memory": sizes})


LONG = "é\x1b[2J\nnext" * 100_000


def test_texts_are_cut_and_plain():
    texts = [
        _read({"enters": LONG, "memory": SIZES}).entered,
        _read({"lost": LONG}).lost,
        _read({"fault": LONG, "scarce": 0}).fault,
    ]
    for path in (("finding", "notes", 0, "message"), ("changes", 0, 1)):
        outcome = _read({"finished": _with(OUTCOME, path, LONG), "memory": SIZES}).outcome
        found = outcome.changes if path[0] == "changes" else outcome.finding.notes
        texts.append(found[0].message)
    for text in texts:
        assert text.startswith(("é?[2J next", "é\\x1b[2J\\nnext"))  # a violation writes them out
        assert text.isprintable()
        assert len(text) in {200, 2000}


def test_only_what_a_child_judges_by_is_a_change():
    for rule in RULES_OF_CHANGES:
        assert _read({"finished": _with(OUTCOME, ("changes", 0, 0), rule.id), "memory": SIZES})


@pytest.mark.parametrize(
    "frame",
    [
        ["6c", "66"], ["6", "66", 1], [6, "66", 1], ["6c", None, 1], ["zz", "66", 1],
        ["6c", "66", -1], ["6c", "66", 2**64], ["6c", "66", HUGE], ["6c", "66", 1.5],
        ["6c", "66", True], ["6c", "66", "1"], [], [{"rule": 1}, "66", 1], ["6c", {"rule": 1}, 1],
    ],
    ids=lambda frame: repr(frame)[:20],
)  # fmt: skip
def test_a_frame_of_another_form_is_left_out(frame):
    assert readable_frames([frame, ["6c", "66", 16]], []) == ("l f+0x10",)


def test_frames_are_cut_and_plain():
    frames = readable_frames([[b"\x1b/x\n".hex() * 90_000, "1b66" * 90_000, 16]] * 100, [])

    assert len(frames) == MOST_FRAMES
    assert all(frame.isprintable() and len(frame) < 1100 for frame in frames)
    assert Incident.of(Violation("LD-060", ""), backtrace=frames).backtrace == frames


@pytest.mark.parametrize(
    "line", [b'{"exits": NaN}', b'{"exits": Infinity}', b'{"exits": 3', b"[" * 9999, b"\xff", b"3"]
)
def test_a_line_that_is_no_entry_is_left_out(line):
    ending = Ending()
    EntryReader(ending.take)(line + b'\n{"stops": 1}\n')

    assert ending == Ending(stops=True)


# -- what the watcher makes of it ------------------------------------------------------------------


def test_a_finding_is_bounded_whoever_makes_it():
    incident = Incident.of(
        Violation("LD-060", LONG),
        signal=11,
        last_call=LONG,
        backtrace=(LONG,) * 1000,
        said=LONG,
    )
    whole = Finding(incident, Offer(("s3",), PlatformOffer("GPU", "CHIP", 220)), ())
    whole = whole._replace(notes=(noted(Violation("FS-012", LONG, "init")),))

    assert len(json.dumps(encode(whole))) < 1 << 20
    assert decode(Finding, json.loads(json.dumps(encode(whole)))) == whole
    assert incident.said.count("\n") > 100  # last words keep their lines
    for line in (
        incident.violation.message, incident.last_call, *incident.backtrace,
        *incident.said.split("\n"), whole.notes[0].message,
    ):  # fmt: skip
        assert line.isprintable()


@pytest.mark.parametrize("signal", [0, -1, 65, 10**40])
def test_there_are_so_many_signals(signal):
    found = encode(Finding(Incident.of(Violation("LD-060", "x"), signal=11)))

    with pytest.raises(ValueError, match="expected"):
        decode(Finding, _with(found, ("incident", "signal"), signal))


@pytest.mark.parametrize("path", [("incident", "backtrace"), ("notes",)])
def test_there_are_not_more_than_were_made(path):
    found = encode(Finding(Incident.of(Violation("LD-060", "x"))))
    many = ["frame"] * (MOST_FRAMES + 1) if path[0] == "incident" else [{}] * (MOST_NOTES + 1)

    with pytest.raises(ValueError, match="expected"):
        decode(Finding, _with(found, path, many))
