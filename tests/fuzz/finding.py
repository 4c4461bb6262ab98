"""Target: what a child process reports of a plugin, as far as others believe it.

The oracle is the form of a finding: bounded, plain, and the same after its way through JSON.
"""

from __future__ import annotations

import json

from modular_tf.codec import decode, encode
from modular_tf.first_contact.finding import Finding, Limits
from modular_tf.first_contact.verdict import IN_ORDER, Ending, finding_of
from modular_tf.processes.ending import readable_frames
from modular_tf.processes.watched_child import EntryReader
from modular_tf.rules import Violation

_SIZES = [4096, 8192, 0]
_FINDING = {
    "incident": None,
    "offer": {
        "schemes": ["s3", "gs", ""],
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
    "notes": [
        encode(Violation("FS-012", "expected 2, found 3", "init", scheme="s3")),
        encode(Violation(None, "no such driver", "load")),
    ],
    "opened": [["/lib/libx.so", [1, 2, 3, 4, 5], "0" * 64, 6, "0-1"]],
    "storable": True,
}
_OUTCOME = {
    "finding": _FINDING,
    "changes": [["LD-069", "changed the umask"], ["LD-066", "ignores SIGCHLD"]],
}
_ENTRIES = (
    {"enters": "TF_InitPlugin", "memory": _SIZES},
    {"enters": "init of scheme 's3'", "memory": _SIZES},
    {"finished": _OUTCOME, "memory": _SIZES},
    {"finished": {**_OUTCOME, "changes": []}, "memory": _SIZES},
    {"finished": {"finding": {**_FINDING, "notes": []}, "changes": []}, "memory": _SIZES},
    {"signal": 11, "errno": 0, "overflow": 0},
    {"exits": 3},
    {"frame": ["6c69622e736f", "66", 16]},
    {"traced": 1},
    {"lost": "standard output"},
    {"fault": "OSError"},
)
_MOST_BYTES = 8 << 20  # what a caller takes
_LONG = ("x" * 5000, "\x1b[2J" * 300, "é\n" * 3000, "\udc80" * 50)
_ODD_VALUES = (
    None, True, False, 0, -1, 1.5, 1e308, 2**63, 10**40, "", "x", "\udcff", "\0", "LD-060",
    "device", [], [[]], [None] * 5, [0] * 5, {}, {"rule": 1}, {"": []},
)  # fmt: skip
_ODD_TEXTS = (
    b"[" * 20_000, b'{"a":' * 5000, b"9" * 5000, b"-", b"NaN", b"Infinity", b"1e999", b'"\\ud800"',
    b"\xff\xfe", b"", b" ", b"nul", b'"\\u0000"', b"\xef\xbb\xbf[]",
)  # fmt: skip


def make(dice):
    """Return a report: lines of the child, of a plugin that forges some, and damaged ones."""
    lines = []
    for _ in range(dice.choice((1, 2, 3, 5, 8))):
        line = json.dumps(_entry(dice)).encode("ascii")
        if dice.random() < 0.2:
            at = dice.randrange(len(line))
            line = line[:at] + dice.randbytes(dice.choice((0, 1, 3))) + line[at + 1 :]
        lines.append(dice.choice(_ODD_TEXTS) if dice.random() < 0.05 else line)
    return b"\n".join([*lines, b""])


def _entry(dice):
    entry = dice.choice(_ENTRIES)
    while dice.random() < 0.4:
        entry = _changed(entry, dice)
    if dice.random() < 0.1 and isinstance(entry, dict):
        key = dice.choice([*entry, "enters"])
        entry = {**entry, key: dice.choice(_LONG)}
    return entry


def _changed(value, dice):
    """Return JSON that differs in one place."""
    if not isinstance(value, (dict, list)) or not value or dice.random() < 0.15:
        return dice.choice(_ODD_VALUES)
    copy = value.copy()
    place = dice.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
    deed = dice.random()
    if deed < 0.1:
        del copy[place]
    elif deed < 0.2 and isinstance(copy, list):
        copy.insert(place, dice.choice(_ODD_VALUES))
    elif deed < 0.2:
        copy[dice.choice(("", "rule", "more"))] = dice.choice(_ODD_VALUES)
    else:
        copy[place] = _changed(copy[place], dice)
    return copy


def check(given):
    """Read a report, and hand the finding on as a watcher does."""
    ending = Ending(status=IN_ORDER)
    EntryReader(ending.take)(given)
    ending.backtrace = readable_frames(ending.frames, ["/p/lib.so"])
    finding = finding_of(ending, Limits())
    text = json.dumps(encode(finding))
    assert len(text) < _MOST_BYTES
    assert decode(Finding, json.loads(text)) == finding
    assert all(part.isprintable() for part in _texts(finding)), finding
    if finding.incident is None:
        return "clean" if finding.is_clean else "refused"
    return "not tried" if finding.incident.is_not_tried else finding.incident.violation.rule_id


def _texts(finding):
    yield from (note.message for note in finding.notes)
    if finding.offer is not None:
        yield from finding.offer.schemes
    if finding.incident is not None:
        yield finding.incident.violation.message
        yield finding.incident.last_call or ""
        yield from finding.incident.backtrace
        yield from finding.incident.last_output.split("\n")
