"""What ended processes left behind reaches the quarantine once, whatever interrupts the way."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.rules.shortage import ShortageError
from modular_tf.service.kept.ended_calls import record_of
from modular_tf.service.kept.load_marks import LoadMarks
from modular_tf.service.kept.notes import read_notes, take_in
from modular_tf.service.kept.quarantine import QuarantineStore
from modular_tf.service.kept.storage.private_directory import PrivateDirectory
from tests.quarantine.conftest import SHA256

if TYPE_CHECKING:
    from pathlib import Path

LOADED = "loading /where/plug.so"
KINDS = ("mark", "ended")


def leave(own_state: Path, kind: str) -> None:
    """Leave the note of a process that ended while it loaded a plugin, or in a call into one."""
    if kind == "mark":
        with LoadMarks.of_process().around("plug", "/where/plug.so", LOADED, SHA256):
            (mark,) = (own_state / "marks").iterdir()
            text = json.dumps(json.loads(mark.read_bytes()) | {"start": "1"})
        assert PrivateDirectory(str(own_state / "marks")).create("left.mark", text.encode())
    else:
        known = json.loads(record_of("plug", "/where/plug.so", SHA256) + "}")
        told = {"call": "read", "subject": "", "signal": 6, "status": 0, "pid": 1, "time": 1}
        text = json.dumps(known | told)
        assert PrivateDirectory(str(own_state / "ended_calls")).create("left.ended", text.encode())


def left(own_state: Path) -> list[str]:
    return [path.name for path in own_state.rglob("left.*")]


def take() -> QuarantineStore:
    """Take in what there is, as a process that starts now does."""
    store = QuarantineStore.of_process()
    take_in(store, read_notes(LoadMarks.of_process()))
    return store


def counted(store: QuarantineStore) -> int:
    """Return how many ends of processes are recorded, of which none is a reason for quarantine."""
    assert store.recall(SHA256) is None
    return len(store.ended_calls(SHA256)) + (store.suspicion(SHA256) is not None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_is_taken_in_and_goes(own_state: Path, kind: str):
    leave(own_state, kind)

    assert counted(take()) == 1
    assert left(own_state) == []
    assert counted(take()) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", ["unlink", "replace"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_neither_loses_a_note_nor_counts_it_twice(
    own_state: Path, monkeypatch, kind: str, call: str, when: str
):
    leave(own_state, kind)
    real = getattr(os, call)

    def interrupted(*arguments: Any, **named: Any) -> None:
        if when == "after":
            real(*arguments, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            take()

    assert counted(take()) == 1
    assert left(own_state) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_that_two_processes_read_counts_once(own_state: Path, kind: str):
    leave(own_state, kind)
    notes = read_notes(LoadMarks.of_process())
    stores = QuarantineStore.of_process(), QuarantineStore.of_process()
    for store in stores:
        take_in(store, notes)

    assert [counted(store) for store in stores] == [1, 1]
    assert counted(take()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_stays_where_the_quarantine_cannot_be_written(
    own_state: Path, monkeypatch, kind: str
):
    leave(own_state, kind)
    with monkeypatch.context() as patch:
        patch.setattr(PrivateDirectory, "replace", lambda *_: False)
        assert counted(take()) == 1
    assert len(left(own_state)) == 1

    assert counted(take()) == 1
    assert left(own_state) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_stays_where_the_quarantine_cannot_be_read(own_state: Path, monkeypatch, kind: str):
    leave(own_state, kind)
    notes = read_notes(LoadMarks.of_process())
    store = QuarantineStore.of_process()

    def no_descriptor(*_: object) -> None:
        raise ShortageError("no descriptor")

    with monkeypatch.context() as patch:
        patch.setattr(PrivateDirectory, "read", no_descriptor)
        with pytest.raises(ShortageError):
            take_in(store, notes)
    assert len(left(own_state)) == 1

    take_in(store, notes)
    assert counted(store) == 1
