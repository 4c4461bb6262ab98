"""Quarantine lasts until the bytes or the host change, or somebody ends it."""

import json
import logging
import sqlite3
from contextlib import closing
from itertools import count

import pytest

from modular_tf.codec import encode
from modular_tf.discovery.host_fingerprint import HostFingerprint, host_fingerprint
from modular_tf.first_contact.finding import Incident
from modular_tf.rules import Violation
from modular_tf.service.storage import database as database_module
from modular_tf.service.storage import quarantine as quarantine_memory
from modular_tf.service.storage.notes import Note, Notes
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import QuarantineStore
from tests.quarantine.conftest import INCIDENT, OTHER_SHA256, SHA256


@pytest.fixture(autouse=True)
def _steady_clock(monkeypatch):
    """Entries are listed by their times, and the clock of this machine may be set back."""
    monkeypatch.setattr(quarantine_memory, "time", map(float, count(1)).__next__)


def memory():
    """Return the quarantine as a process that starts now sees it."""
    return QuarantineStore.of_process()


def on_host(own_state, **changes):
    """Return the quarantine as it is seen after something of the host changed."""
    parts = dict(host_fingerprint().parts) | changes
    return QuarantineStore(PrivateDirectory(str(own_state)), HostFingerprint(tuple(parts.items())))


def add(sha256=SHA256, name="plug", path="/where/plug.so"):
    return memory().remember(sha256, name, path, INCIDENT)


def add_other():
    return add(OTHER_SHA256, "other", "/where/other.so")


def test_an_entry_lasts_until_it_is_released():
    assert memory().recall(SHA256) is None
    assert memory().entries() == []
    entry = add()

    assert memory().recall(SHA256) == entry
    assert memory().recall(OTHER_SHA256) is None
    assert memory().entries() == [entry]
    assert (entry.incident, entry.name) == (INCIDENT, "plug")
    assert entry.host == dict(host_fingerprint().parts)

    assert memory().release(SHA256)
    assert not memory().release(SHA256)
    assert memory().recall(SHA256) is None


@pytest.mark.parametrize("part", ["kernel", "C library", "processor", "modular_tf", "drivers"])
def test_another_host_releases_and_another_machine_has_its_own(own_state, part, caplog):
    """A home directory may be shared by machines."""
    caplog.set_level(logging.INFO, "modular_tf.quarantine")
    entry = add()
    elsewhere = on_host(own_state, **{"machine-id": "other"})
    assert (elsewhere.recall(SHA256), elsewhere.entries()) == (None, [])

    changed = on_host(own_state, **{part: "new"})
    assert changed.entries() == [entry]  # this alone releases nothing
    assert changed.changes_since(entry) == [f"{part}: {entry.host.get(part, 'unknown')} -> new"]
    assert memory().changes_since(entry) == []
    assert memory().recall(SHA256) == entry
    assert changed.recall(SHA256) is None
    assert memory().entries() == []
    assert "quarantine.released" in caplog.text
    assert f"{part}: " in caplog.text
    assert "-> new" in caplog.text


def test_the_oldest_come_first_and_the_last_incident_counts(monkeypatch):
    for time, sha256 in ((2.0, SHA256), (1.0, OTHER_SHA256), (3.0, SHA256)):
        monkeypatch.setattr(quarantine_memory, "time", lambda time=time: time)
        add(sha256, f"at {time}")

    assert [(entry.time, entry.name) for entry in memory().entries()] == [
        (1.0, "at 1.0"),
        (3.0, "at 3.0"),
    ]


def test_an_entry_has_several_names(tmp_path, monkeypatch):
    path = str(tmp_path / "plug.so")
    entry = add(path=path)
    add_other()
    monkeypatch.chdir(tmp_path)

    for name in ("plug", path, "./plug.so", SHA256, SHA256[:6], SHA256[:8].upper()):
        assert memory().named(name) == [entry]
    for name in ("", "plu", "01234", str(tmp_path), "z" * 64):
        assert memory().named(name) == []


# -- suspects --------------------------------------------------------------------------------


def _loading(time, *, was_suspect=False):
    """Return the note of a process that ended while it loaded a plugin."""
    known = ("plug", "/where/plug.so", SHA256, "loading", was_suspect, "machine", "boot", "ns", "1")
    return Note(*known, call="", subject="", signal=0, status=0, pid=77, time=time)


def _accuse(time, *, was_suspect=False):
    memory().take([_loading(time, was_suspect=was_suspect)], Notes(PrivateDirectory(None)))


def test_a_culprit_is_suspected_until_it_is_cleared():
    _accuse(1.0)

    assert memory().suspicion(SHA256).incident.violation.rule_id == "LD-070"
    assert (memory().recall(SHA256), memory().entries()) == (None, [])
    memory().clear_suspicion(SHA256)
    assert memory().suspicion(SHA256) is None


def test_processes_that_ended_at_once_count_once():
    _accuse(1.0)
    _accuse(2.0)

    assert memory().recall(SHA256) is None


@pytest.mark.parametrize("second", [0.0, 4e9], ids=["clock set back", "clock goes on"])
def test_a_suspect_that_ends_a_process_is_added_and_after_its_release_one_more(second):
    _accuse(1e9)
    _accuse(second, was_suspect=True)
    incident = memory().recall(SHA256).incident
    assert incident.violation.rule_id == "LD-070"
    assert "process 77" in incident.violation.message
    assert incident.last_call == "loading /where/plug.so"
    assert "retry" in incident.violation.rule.remedy

    memory().release(SHA256)
    _accuse(second, was_suspect=True)  # which is known
    assert memory().recall(SHA256) is None
    _accuse(5e9, was_suspect=True)
    assert memory().recall(SHA256) is not None


# -- bounds and places -----------------------------------------------------------------------

LONG = Incident.of(Violation("LD-066", "\u00e9" * 170_000), last_output="\x1b" * 170_000)


def _digest(number):
    return f"{number:064x}"


@pytest.mark.parametrize("incident", [LONG, INCIDENT], ids=["long texts", "many"])
def test_plugins_flush_no_entry_that_a_trial_would_not_find_again(monkeypatch, incident):
    if incident is INCIDENT:
        monkeypatch.setattr(database_module, "_MOST_PAGES", 14)
    memory().remember(SHA256, "killer", "/killer.so", _loading(1.0).incident())
    for number in range(40):
        memory().remember(_digest(number), f"hostile{number}", "/hostile.so", incident)

    assert memory().recall(SHA256) is not None
    left = [entry.name for entry in memory().entries() if entry.name != "killer"]
    assert left == [f"hostile{n}" for n in range(40 - len(left), 40)]
    assert len(left) == 40 if incident is LONG else 7 < len(left) < 40


def test_what_is_remembered_is_what_is_read():
    entry = memory().remember(SHA256, "n" * 5000, "/x.so", INCIDENT)

    assert memory().recall(SHA256) == entry
    assert len(entry.name) == 255


def test_a_privileged_process_has_none(monkeypatch):
    add()
    monkeypatch.setattr(quarantine_memory, "is_privileged", lambda: True)
    assert memory().recall(SHA256) is None


# -- what is damaged -------------------------------------------------------------------------


@pytest.fixture
def database(own_state):
    """Return the file, with an entry."""
    add()
    (file,) = own_state.glob("quarantine-*.sqlite")
    return file


def test_a_damaged_entry_costs_no_other(database):
    other = add_other()
    with closing(sqlite3.connect(database)) as used:
        used.execute("UPDATE plugin SET entry = 'x' WHERE sha256 = ?", (SHA256.encode(),))
        used.commit()

    assert memory().entries() == [other]


@pytest.mark.parametrize("where", ["end", "middle"])
def test_damaged_pages_cost_their_own_entries(database, own_state, caplog, where):
    """The file is renamed, which is reported once, and another is begun."""
    for number in range(60):
        add(_digest(number), f"plug{number}")
    data = database.read_bytes()
    page, size = len(data) - 8192, 8192
    if where == "middle":
        page, size = data.index(json.dumps(_digest(30)).encode()) // 4096 * 4096, 4096
    database.write_bytes(data[:page] + b"\xff" * size + data[page + size :])

    left = memory().entries()
    assert len(left) > (40 if where == "middle" else 30)
    assert where == "end" or {"plug0", "plug59"} < {entry.name for entry in left}
    (aside,) = own_state.glob("*.damaged")
    assert memory().damaged == str(aside)
    assert len([r for r in caplog.records if str(aside) in r.getMessage()]) == 1
    entry = add(_digest(99))
    assert memory().entries() == [*left, entry]


def test_what_was_read_before_the_damage_is_saved_by_the_next_change(database):
    here = memory()
    (entry,) = here.entries()
    database.write_bytes(b"damaged" * 4096)

    other = here.remember(OTHER_SHA256, "other", "/other.so", entry.incident)
    assert memory().entries() == [entry, other]
    here.refresh()
    assert here.entries() == [entry, other]


# -- what earlier versions left --------------------------------------------------------------

# A key, JSON, a digest, a rank and a checksum for each entry.
FORMAT_1 = (
    "CREATE TABLE subject (id INTEGER PRIMARY KEY, text BLOB NOT NULL UNIQUE)",
    """CREATE TABLE record (
        id INTEGER PRIMARY KEY, subject INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,
        digest BLOB NOT NULL, rank INTEGER NOT NULL, checksum INTEGER NOT NULL,
        UNIQUE (subject, key)
    )""",
    f"PRAGMA application_id = {0x6D74665F}",
    "PRAGMA user_version = 1",
)


def _of_earlier_versions(entry):
    """Encode an entry as they did, which named the last output `said`."""
    old = encode(entry)
    old["incident"]["said"] = old["incident"].pop("last_output")
    return old


def _write_format_1(file, records):
    file.write_bytes(b"")
    with closing(sqlite3.connect(file)) as used:
        for statement in FORMAT_1:
            used.execute(statement)
        for key, value in records.items():
            values = json.dumps(key).encode(), json.dumps(value).encode()
            used.execute("INSERT INTO record VALUES (NULL, 1, ?, ?, x'', 0, 0)", values)
        used.commit()


def _write_lines(file, records):
    """Write a key, a checksum and a value in each line, as before SQLite."""
    file.unlink()
    lines = [f"{json.dumps(key)}\t0\t{json.dumps(value)}" for key, value in records.items()]
    old = file.with_suffix(".records")
    old.write_text("\n".join(['"modular_tf quarantine 1"', "damaged", *lines]))
    old.chmod(0o600)


@pytest.mark.parametrize("write", [_write_format_1, _write_lines])
def test_the_entries_of_earlier_versions_are_taken_over_once(database, write, monkeypatch):
    (entry,) = memory().entries()
    _accuse(1.0)  # of the same plugin, which is in quarantine: no suspect
    suspect = entry._replace(sha256=OTHER_SHA256)
    called = entry._replace(sha256=_digest(7), time=5.0)
    records = {
        SHA256: _of_earlier_versions(entry),
        f"suspect {OTHER_SHA256}": _of_earlier_versions(suspect),
        f"ended 5.000 77 {_digest(7)}": _of_earlier_versions(called),
        "damaged": None,
    }
    write(database, records)
    with monkeypatch.context() as full_disk:
        full_disk.setattr(QuarantineStore, "save", lambda _: False)
        memory()
    for _ in range(2):
        here = memory()
        assert here.entries() == [entry]
        assert here.suspicion(OTHER_SHA256) == suspect
        assert here.ended_calls(_digest(7)) == [called]
        assert here.damaged is None
    here.clear_suspicion(OTHER_SHA256)
    assert here.release(SHA256)

    assert memory().entries() == here.entries() == []
    assert memory().suspicion(OTHER_SHA256) is None
    assert not database.with_suffix(".records").exists()
