"""Findings cross a pipe and lie on disk: they come back equal, and nothing else is one."""

from __future__ import annotations

import copy
import json

import pytest

from modular_tf.codec import decode, encode
from modular_tf.discovery.file_identity import FileIdentity, SeenFile
from modular_tf.first_contact.finding import (
    ACCEPTABLE,
    Finding,
    Incident,
    Offer,
    PlatformOffer,
    noted,
)
from modular_tf.rules import Violation, rule

WHOLE = Finding(
    Incident.of(
        Violation("LD-060", "crashed"),
        signal=11,
        last_call="SE_InitPlugin",
        backtrace=("/p/libx.so f+0x4", "/p/libx.so+0x1230"),
        said="no driver\udcff",
    ),
    Offer(("s3", ""), PlatformOffer("GPU", "CHIP", 220)),
    (noted(Violation("LD-050", "refused", "load")), noted(Violation(None, "its own word", "init"))),
    (SeenFile("/p/libmore.so", FileIdentity(1, 2, 3, 4, 5), "f" * 64, 6, "0-b"),),
    storable=False,
)


@pytest.mark.parametrize("finding", [Finding(), Finding(offer=Offer()), WHOLE])
def test_a_finding_comes_back_equal(finding):
    assert decode(Finding, json.loads(json.dumps(encode(finding)))) == finding


_MAY_BE_NONE = {
    ("incident",),
    ("incident", "signal"),
    ("incident", "last_call"),
    ("offer",),
    ("offer", "platform"),
    ("notes", 0, "rule"),
    ("notes", 1, "rule"),
    ("opened", 0, 2),
}


def _paths(value, path=()):
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in entries:
        yield (*path, key), inner
        if isinstance(inner, dict | list):
            yield from _paths(inner, (*path, key))


def _misshapen():
    """Yield where a whole finding holds something, and what cannot be in its place."""
    for path, value in _paths(encode(WHOLE)):
        for wrong in (5, True, "x", [5], {}, None):
            may_be = wrong is None and path in _MAY_BE_NONE
            may_be |= wrong in ("x", None) and path[-1] in {"scheme", "remedy", "path", "origin"}
            if type(wrong) is not type(value) and not may_be:
                yield path, wrong


@pytest.mark.parametrize(("path", "wrong"), list(_misshapen()), ids=str)
def test_nothing_of_another_shape_is_taken(path, wrong):
    broken = copy.deepcopy(encode(WHOLE))
    inner = broken
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = wrong

    with pytest.raises(ValueError, match="expected"):
        decode(Finding, broken)


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("notes"),
        lambda found: found.update(more=1),
        lambda found: found["incident"].update(rule="LD-999"),
        lambda found: found["notes"][0].update(stage="probe"),
    ],
)
def test_missing_added_and_unknown_values_are_refused(change):
    broken = copy.deepcopy(encode(WHOLE))
    change(broken)

    with pytest.raises(ValueError, match="expected"):
        decode(Finding, broken)


def test_what_may_be_accepted_lets_the_process_live():
    letting_live = {*(f"LD-06{number}" for number in range(4, 9)), "LD-120", "LD-121", "LD-146"}

    assert letting_live == ACCEPTABLE
    assert not Violation("LD-069", "").is_error
    assert not Violation("LD-065", "").is_error  # configurations may still name it
    letting_live.remove("LD-065")
    assert all("first_contact_accept" in rule(rule_id).remedy for rule_id in letting_live)


def _opened_row(path="/p/libmore.so", size=3):
    return [path, [1, 2, size, 4, 5], None, 6, "0-b"]


@pytest.mark.parametrize(
    "rows",
    [
        [_opened_row(size=1 << 63)],
        [_opened_row(f"/p/lib{at}.so", 1 << 32) for at in range(3)],
        [_opened_row(size=-1)],
        [["/p/libmore.so", None, None, 6, "0-b"]],
        [_opened_row("/p/\x1b[2Jlibmore.so")],
        [_opened_row("/p/lib\nmore.so")],
        [_opened_row("/p/lib\u202emore.so")],
    ],
    ids=["large", "large together", "negative", "absent", "escape", "line", "direction"],
)
def test_what_was_opened_can_be_read_soon_and_shown(rows):
    with pytest.raises(ValueError, match="expected"):
        decode(Finding, encode(Finding()) | {"opened": rows})


def test_what_was_opened_may_have_any_name_in_the_locales_encoding():
    row = _opened_row("/p/\xfc ber\udcff.so")

    assert decode(Finding, encode(Finding()) | {"opened": [row]}).opened[0].path == row[0]
