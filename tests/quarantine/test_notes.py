"""What ended processes left behind reaches the quarantine once, whatever interrupts the way."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.rules.shortage import ShortageError
from modular_tf.service.storage.database import Database
from modular_tf.service.storage.notes import Notes, note_of
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import QuarantineStore
from tests.quarantine.conftest import SHA256

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("mark", "ended")


def leave(own_state: Path, kind: str) -> None:
    """Leave the note of a process that ended while it loaded a plugin, or in a call into one."""
    if kind == "mark":
        with Notes.of_process().around("loading", "plug", "/where/plug.so", SHA256):
            (mark,) = (own_state / "notes").iterdir()
            text = json.dumps(json.loads(mark.read_bytes()) | {"start": "1"})
        assert PrivateDirectory(str(own_state / "notes")).create("left.mark", text.encode())
    else:
        known = json.loads(note_of("plug", "/where/plug.so", SHA256) + "}")
        told = {"call": "read", "subject": "", "signal": 6, "status": 0, "pid": 1, "time": 1}
        text = json.dumps(known | told)
        assert PrivateDirectory(str(own_state / "notes")).create("left.ended", text.encode())


def left(own_state: Path) -> list[str]:
    return [path.name for path in own_state.rglob("left.*")]


def take() -> QuarantineStore:
    """Take in what there is, as a process that starts now does."""
    store = QuarantineStore.of_process()
    here = Notes.of_process()
    store.take(here.of_ended(), here)
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
@pytest.mark.parametrize("step", [(os, "unlink"), (Database, "save")])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_neither_loses_a_note_nor_counts_it_twice(
    own_state: Path, monkeypatch, kind: str, step: tuple[Any, str], when: str
):
    leave(own_state, kind)
    real = getattr(*step)

    def interrupted(*arguments: Any, **named: Any) -> None:
        if when == "after":
            real(*arguments, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            take()

    assert counted(take()) == 1
    assert left(own_state) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_that_two_processes_read_counts_once(own_state: Path, kind: str):
    leave(own_state, kind)
    here = Notes.of_process()
    notes = here.of_ended()
    stores = QuarantineStore.of_process(), QuarantineStore.of_process()
    for store in stores:
        store.take(notes, here)

    assert [counted(store) for store in stores] == [1, 1]
    assert counted(take()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_stays_where_the_quarantine_cannot_be_written(
    own_state: Path, monkeypatch, kind: str
):
    leave(own_state, kind)
    with monkeypatch.context() as patch:
        patch.setattr(Database, "save", lambda _: False)
        assert counted(take()) == 1
    assert len(left(own_state)) == 1

    assert counted(take()) == 1
    assert left(own_state) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_note_stays_where_the_quarantine_cannot_be_read(own_state: Path, monkeypatch, kind: str):
    leave(own_state, kind)
    here = Notes.of_process()
    notes = here.of_ended()
    store = QuarantineStore.of_process()

    def no_descriptor(*_: object, **__: object) -> None:
        raise ShortageError("no descriptor")

    with monkeypatch.context() as patch:
        patch.setattr(PrivateDirectory, "real_path_of", no_descriptor)
        with pytest.raises(ShortageError):
            store.take(notes, here)
    assert len(left(own_state)) == 1

    store.take(notes, here)
    assert counted(store) == 1
