"""A state directory of one test, and what processes leave there."""

import json

import pytest

from modular_tf.first_contact.finding import Incident
from modular_tf.rules import Violation
from modular_tf.service.storage.notes import Notes, note_of
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import QuarantineStore

SHA256 = "0123456789abcdef" * 4
OTHER_SHA256 = "fedcba9876543210" * 4
INCIDENT = Incident.of(
    Violation("LD-060", "crashed with SIGSEGV (signal 11) in SE_InitPlugin"),
    signal=11,
    last_call="SE_InitPlugin",
    backtrace=("libx.so SE_InitPlugin+0x10", "python main+0x1"),
    last_output="last words \udcff",
)


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    """Give the test a state directory of its own; return our part of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "modular_tf"


def notes():
    return Notes.of_process()


def take():
    """Record the notes of ended processes, as a process that starts now does."""
    here, store = notes(), QuarantineStore.of_process()
    store.take(here.of_ended(), here)
    return store


def files(own_state):
    """Return the files of notes."""
    folder = own_state / "notes"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def leave_mark(own_state, **changes):
    """Leave the mark of this process, as if it had been another."""
    before = set(files(own_state))
    with notes().around("loading", "plug", "/where/plug.so", SHA256):
        (mark,) = set(files(own_state)) - before
        value = json.loads(mark.read_bytes()) | changes
    left = mark.with_name(f"left{len(before)}.mark")
    left.write_text(json.dumps(value))
    left.chmod(0o600)
    return left


def leave_note(own_state, name="left", **changes):
    """Leave the note of a call, as if a process had ended in it."""
    known = json.loads(note_of("plug", "/where/plug.so", SHA256) + "}")
    facts = {"call": "read", "subject": "", "signal": 6, "status": 0, "pid": 1, "time": 1}
    text = json.dumps(known | facts | changes).encode()
    assert PrivateDirectory(str(own_state / "notes")).create(f"{name}.ended", text)
