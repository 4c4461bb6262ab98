"""What ended processes left behind reaches the quarantine once, whatever interrupts the way."""

import os

import pytest

from modular_tf.rules.shortage import ShortageError
from modular_tf.service.storage.database import Database
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import QuarantineStore
from tests.quarantine.conftest import SHA256, files, leave_mark, leave_note, notes, take


@pytest.fixture(params=["mark", "ended"], autouse=True)
def left(request, own_state):
    """Leave the note of a process that ended while it loaded a plugin, or in a call into one."""
    if request.param == "mark":
        leave_mark(own_state, start="1")
    else:
        leave_note(own_state)


def counted(store):
    """Return how many ends of processes are recorded, of which none is a reason for quarantine."""
    assert store.recall(SHA256) is None
    return len(store.ended_calls(SHA256)) + (store.suspicion(SHA256) is not None)


def assert_recorded_once(own_state):
    for _ in range(2):
        assert counted(take()) == 1
        assert files(own_state) == []


def test_a_note_is_recorded_and_goes(own_state):
    assert_recorded_once(own_state)


@pytest.mark.parametrize("step", [(os, "unlink"), (Database, "save")])
@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_neither_loses_a_note_nor_counts_it_twice(own_state, monkeypatch, step, when):
    real = getattr(*step)

    def interrupted(*arguments, **named):
        if when == "after":
            real(*arguments, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(*step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            take()

    assert_recorded_once(own_state)


def test_a_note_that_two_processes_read_counts_once():
    here = notes()
    read = here.of_ended()
    stores = QuarantineStore.of_process(), QuarantineStore.of_process()
    for store in stores:
        store.take(read, here)

    assert [counted(store) for store in (*stores, take())] == [1, 1, 1]


def test_a_note_stays_where_the_quarantine_cannot_be_written(own_state, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Database, "save", lambda _: False)
        assert counted(take()) == 1
    assert len(files(own_state)) == 1

    assert_recorded_once(own_state)


def test_a_note_stays_where_the_quarantine_cannot_be_read(own_state, monkeypatch):
    here, store = notes(), QuarantineStore.of_process()
    read = here.of_ended()

    def no_descriptor(*_, **__):
        raise ShortageError("no descriptor")

    with monkeypatch.context() as patch:
        patch.setattr(PrivateDirectory, "real_path_of", no_descriptor)
        with pytest.raises(ShortageError):
            store.take(read, here)
    assert len(files(own_state)) == 1

    store.take(read, here)
    assert counted(store) == 1
