"""Changes are what lies between two snapshots, whatever lay between the looks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modular_tf.discovery.file_identity import FileIdentity
from modular_tf.service.reload import watching as module
from modular_tf.service.reload.watching import Change, Delays, Reconciler
from modular_tf.service.report import ChangeKind

DELAYS = Delays(settled_s=1.0, unfinished_s=10.0)


def state(number, ctime_ns=1):
    return FileIdentity(1, number, 100, 0, ctime_ns)


@pytest.fixture(autouse=True)
def files_on_paper(monkeypatch):
    """Let all files be whole, but for one."""
    monkeypatch.setattr(module, "why_incomplete", {"cut": "it is cut off"}.get)


def reported(found, seen, now):
    """Take one step, and confirm what it reports."""
    changes = found.step(seen, now)
    found.confirm(changes)
    return changes


def kinds(changes):
    return [f"{change.path} {change.kind}" for change in changes]


ONE, TWO, COARSE = state(1), state(2), state(1, ctime_ns=1_700_000_000_000_000_000)
# The first snapshot, and then: when one is taken, what it has, and what is reported.
PROGRAMS = {
    "a file is reported when it is settled": (
        {},
        [(0, {"x": ONE}, []), (0.75, {"x": ONE}, []), (1, {"x": ONE}, ["x appeared"])],
    ),
    "where its time is kept to the second, it waits for the next": (
        {},
        [(0, {"x": COARSE}, []), (2.0, {"x": COARSE}, []), (2.2, {"x": COARSE}, ["x appeared"])],
    ),
    "every change begins the wait anew": (
        {},
        [
            (0, {"x": ONE}, []),
            (0.75, {"x": TWO}, []),
            (1.5, {"x": TWO}, []),
            (1.75, {"x": TWO}, ["x appeared"]),
        ],
    ),
    "what came and went is not reported": (
        {"y": ONE},
        [(0, {"x": ONE}, []), (5, {"y": ONE}, [])],
    ),
    "what is unfinished is reported in the end": (
        {},
        [
            (0, {"cut": ONE}, []),
            (1, {"cut": ONE}, []),
            (9.75, {"cut": ONE}, []),
            (10, {"cut": ONE}, ["cut appeared"]),
        ],
    ),
    "removals are reported first": (
        {"z": ONE},
        [(0, {"a": TWO}, []), (1, {"a": TWO}, ["z removed", "a appeared"])],
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_reported_when(program):
    first, steps = PROGRAMS[program]
    found = Reconciler(first, DELAYS)
    for now, seen, expected in steps:
        assert kinds(reported(found, seen, now)) == expected
    assert not found.is_waiting
    assert reported(found, seen, now + 1) == []


def test_what_nobody_took_note_of_is_reported_again():
    found = Reconciler({"gone": state(1), "other": state(1)}, DELAYS)
    seen = {"new": state(2), "other": state(2)}
    found.step(seen, 0.0)
    first = found.step(seen, 1.0)

    again = reported(found, seen, 3.0)

    assert kinds(first) == ["gone removed", "other replaced", "new appeared"]
    assert again == first
    assert found.step(seen, 5.0) == []


SNAPSHOTS = st.dictionaries(st.sampled_from("abc"), st.integers(1, 3).map(state))


@given(SNAPSHOTS, st.lists(st.tuples(SNAPSHOTS, st.floats(0, 2))))
def test_the_changes_lead_from_the_first_snapshot_to_the_last(first, steps):
    found = Reconciler(first, DELAYS)
    told = dict.fromkeys(first)
    now, last = 0.0, first
    for seen, pause in [*steps, (None, 0.0), (None, 2.0)]:
        now, last = now + pause, last if seen is None else seen
        for change in reported(found, last, now):
            apply(change, told)
            assert last.get(change.path) is not None or change.kind is ChangeKind.REMOVED

    assert told.keys() == last.keys()
    assert not found.is_waiting


def apply(change: Change, told: dict[str, None]) -> None:
    """Do to what is known what the change says, which must be possible."""
    if change.kind is ChangeKind.APPEARED:
        assert change.path not in told
        told[change.path] = None
    elif change.kind is ChangeKind.REPLACED:
        assert change.path in told
    else:
        del told[change.path]
