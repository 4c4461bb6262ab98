"""Quarantine lasts until the bytes or the host change, or somebody ends it."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from modular_tf.codec import decode, encode
from modular_tf.discovery.host_fingerprint import HostFingerprint, host_fingerprint
from modular_tf.first_contact.finding import Incident
from modular_tf.rules import Violation
from modular_tf.service.storage import database as database_module
from modular_tf.service.storage import quarantine as quarantine_memory
from modular_tf.service.storage.notes import Note, Notes
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import Entry, QuarantineStore
from tests.quarantine.conftest import INCIDENT, OTHER_SHA256, SHA256

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any


def memory() -> QuarantineStore:
    """Return the quarantine as a process that starts now sees it."""
    return QuarantineStore.of_process()


def on_host(own_state: Path, **changes: str) -> QuarantineStore:
    """Return the quarantine as it is seen after something of the host changed."""
    parts = dict(host_fingerprint().parts) | changes
    return QuarantineStore(PrivateDirectory(str(own_state)), HostFingerprint(tuple(parts.items())))


def add(sha256: str = SHA256, name: str = "plug", path: str = "/where/plug.so") -> Entry:
    return memory().remember(sha256, name, path, INCIDENT)


def test_nothing_is_in_it_at_first():
    assert memory().recall(SHA256) is None
    assert memory().entries() == []


def test_an_entry_lasts():
    entry = add()

    assert memory().recall(SHA256) == entry
    assert memory().entries() == [entry]
    assert entry.incident == INCIDENT
    assert entry.name == "plug"
    assert entry.host == dict(host_fingerprint().parts)


def test_other_bytes_are_not_in_it():
    add()

    assert memory().recall(OTHER_SHA256) is None


@pytest.mark.parametrize("part", ["kernel", "C library", "processor", "modular_tf", "drivers"])
def test_another_host_releases(own_state: Path, part: str, caplog):
    caplog.set_level(logging.INFO, "modular_tf.quarantine")
    add()
    changed = on_host(own_state, **{part: "new"})

    assert changed.recall(SHA256) is None
    assert memory().entries() == []
    assert "quarantine.released" in caplog.text
    assert f"{part}: " in caplog.text
    assert "-> new" in caplog.text


def test_another_machine_has_a_quarantine_of_its_own(own_state: Path):
    """A home directory may be shared by machines; what one releases another keeps."""
    entry = add()
    other = on_host(own_state, **{"machine-id": "other"})

    assert other.recall(SHA256) is None
    assert other.entries() == []
    assert memory().recall(SHA256) == entry


def test_what_changed_is_told_without_releasing(own_state: Path):
    entry = add()
    changed = on_host(own_state, kernel="7.0")

    assert changed.entries() == [entry]
    assert changed.changes_since(entry) == [f"kernel: {os.uname().release} -> 7.0"]
    assert memory().changes_since(entry) == []
    assert memory().recall(SHA256) == entry


def test_it_is_released_on_demand():
    add()

    assert memory().release(SHA256)
    assert not memory().release(SHA256)
    assert memory().recall(SHA256) is None


def test_the_oldest_come_first(monkeypatch):
    for time, sha256 in ((2.0, SHA256), (1.0, OTHER_SHA256)):
        monkeypatch.setattr(quarantine_memory, "time", lambda time=time: time)
        add(sha256)

    assert [entry.time for entry in memory().entries()] == [1.0, 2.0]


def test_the_last_incident_counts():
    add(name="one")
    entry = add(name="two")

    assert memory().entries() == [entry]


def test_two_processes_that_add_both_count():
    one, other = memory(), memory()
    one.remember(SHA256, "one", "/one.so", INCIDENT)
    other.remember(OTHER_SHA256, "other", "/other.so", INCIDENT)

    assert {entry.name for entry in memory().entries()} == {"one", "other"}
    assert one.recall(OTHER_SHA256) is None
    one.refresh()
    assert one.recall(OTHER_SHA256) is not None


@pytest.mark.parametrize("name", ["plug", "/where/plug.so", SHA256, SHA256[:6], SHA256[:8].upper()])
def test_an_entry_has_several_names(name: str):
    entry = add()
    add(OTHER_SHA256, "other", "/where/other.so")

    assert memory().named(name) == [entry]


def test_a_relative_path_names_an_entry(tmp_path: Path, monkeypatch):
    entry = add(path=str(tmp_path / "plug.so"))
    monkeypatch.chdir(tmp_path)

    assert memory().named("./plug.so") == [entry]


@pytest.mark.parametrize("name", ["", "plu", "01234", "/where", "z" * 64])
def test_other_words_name_nothing(name: str):
    add()

    assert memory().named(name) == []


def _loading(time: float, *, was_suspect: bool = False) -> Note:
    """Return the note of a process that ended while it loaded a plugin."""
    known = ("plug", "/where/plug.so", SHA256, "loading", was_suspect, "machine", "boot", "ns", "1")
    return Note(*known, call="", subject="", signal=0, status=0, pid=77, time=time)


def _accuse(time: float, *, was_suspect: bool = False) -> None:
    memory().take([_loading(time, was_suspect=was_suspect)], Notes(PrivateDirectory(None)))


def test_a_culprit_is_suspected():
    _accuse(1.0)
    suspicion = memory().suspicion(SHA256)

    assert suspicion is not None
    assert suspicion.incident.violation.rule_id == "LD-070"
    assert memory().recall(SHA256) is None
    assert memory().entries() == []


def test_a_suspicion_may_be_cleared():
    _accuse(1.0)
    memory().clear_suspicion(SHA256)

    assert memory().suspicion(SHA256) is None


def test_processes_that_ended_at_once_count_once():
    _accuse(1.0)
    _accuse(2.0)

    assert memory().recall(SHA256) is None


def test_a_clock_that_was_set_back_makes_nobody_guilty_who_ended_at_once_with_others(monkeypatch):
    monkeypatch.setattr(quarantine_memory, "time", lambda: 0.0)
    _accuse(1e9)
    _accuse(2e9)

    assert memory().recall(SHA256) is None


def test_an_end_that_is_told_again_counts_once():
    _accuse(1.0)
    _accuse(2.0, was_suspect=True)
    memory().release(SHA256)
    _accuse(2.0, was_suspect=True)

    assert memory().recall(SHA256) is None


def test_what_was_released_ends_one_process_more_at_most():
    _accuse(1.0)
    _accuse(2.0, was_suspect=True)
    memory().release(SHA256)
    assert memory().recall(SHA256) is None
    _accuse(3.0, was_suspect=True)

    assert memory().recall(SHA256) is not None


@pytest.mark.parametrize("second", [0.0, 4e9], ids=["clock set back", "clock goes on"])
def test_a_suspect_that_ends_a_process_is_added(second: float):
    _accuse(1e9)
    _accuse(second, was_suspect=True)
    entry = memory().recall(SHA256)

    assert entry is not None
    assert entry.incident.violation.rule_id == "LD-070"
    assert "process 77" in entry.incident.violation.message
    assert entry.incident.last_call == "loading /where/plug.so"
    assert "retry" in entry.incident.violation.rule.remedy


# -- when it is full -------------------------------------------------------------------------

KILLER = _loading(1.0)


def _digest(number: int) -> str:
    return f"{number:064x}"


def test_plugins_with_long_texts_do_not_flush_it():
    memory().remember(SHA256, KILLER.plugin, KILLER.path, KILLER.incident())
    long = Incident.of(Violation("LD-066", "\u00e9" * 170_000), said="\x1b" * 170_000)
    for number in range(40):
        memory().remember(_digest(number), f"hostile{number}", "/hostile.so", long)

    assert memory().recall(SHA256) is not None
    assert len(memory().entries()) == 41


def test_many_plugins_flush_no_entry_that_a_trial_would_not_find_again(monkeypatch):
    monkeypatch.setattr(database_module, "_MOST_PAGES", 14)
    memory().remember(SHA256, KILLER.plugin, KILLER.path, KILLER.incident())
    for number in range(40):
        memory().remember(_digest(number), f"hostile{number}", "/hostile.so", INCIDENT)

    assert memory().recall(SHA256) is not None
    left = [entry.name for entry in memory().entries() if entry.name != KILLER.plugin]
    assert left == [f"hostile{n}" for n in range(40 - len(left), 40)]
    assert 7 < len(left) < 40


def test_what_is_remembered_is_what_is_read():
    entry = memory().remember(SHA256, "n" * 5000, "/x.so", INCIDENT)

    assert memory().recall(SHA256) == entry
    assert len(entry.name) == 255


# -- where it is -----------------------------------------------------------------------------


def test_nobody_else_may_look_into_it(own_state: Path):
    add()

    assert stat.S_IMODE(own_state.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in own_state.iterdir()} == {0o600}


def test_without_a_place_it_lasts_as_long_as_the_process():
    here = QuarantineStore.of_process({"HOME": "/nonexistent"})
    entry = here.remember(SHA256, "plug", "/plug.so", INCIDENT)

    assert here.recall(SHA256) == entry
    assert here.release(SHA256)
    assert here.recall(SHA256) is None


def test_a_privileged_process_has_none(monkeypatch):
    add()
    monkeypatch.setattr(quarantine_memory, "is_privileged", lambda: True)

    assert memory().recall(SHA256) is None


# -- what says that it is right --------------------------------------------------------------


@pytest.mark.parametrize("time", [float("nan"), float("inf"), -1.0, 1e300, 10**400])
def test_an_entry_was_made_at_some_time(time):
    value = encode(add()) | {"time": time}

    with pytest.raises(ValueError, match="expected"):
        decode(Entry, value)


WRONG = [None, True, 1, 1.5, "text", [], {}, [None], {"a": 1}, 10**400, -(10**400)]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: repr(value)[:20])
def test_an_entry_of_another_shape_is_none(wrong):
    value = encode(add())
    here = memory()
    for place in [(key,) for key in value] + [("incident", key) for key in value["incident"]]:
        changed = value | {"incident": dict(value["incident"])}
        node = changed[place[0]] if len(place) > 1 else changed
        node[place[-1]] = wrong
        here._plugins.put(SHA256, 1, json.dumps(changed))
        entry = here.recall(SHA256)

        assert entry is None or isinstance(entry, Entry)
        assert all(isinstance(other, Entry) for other in here.entries())
        assert here.named("plug") in ([], here.entries())
        assert isinstance(here.release(SHA256), bool)


def test_a_damaged_entry_costs_no_other(own_state: Path):
    add()
    kept = add(OTHER_SHA256, "other", "/other.so")
    (file,) = own_state.glob("quarantine-*")
    with closing(sqlite3.connect(file)) as used:
        used.execute("UPDATE plugin SET entry = 'x' WHERE sha256 = ?", (SHA256.encode(),))
        used.commit()

    assert memory().entries() == [kept]


def test_a_damaged_file_is_reported_and_set_aside_and_another_is_begun(own_state: Path, caplog):
    for number in range(60):
        add(_digest(number), f"plug{number}")
    (file,) = own_state.glob("quarantine-*")
    data = file.read_bytes()
    file.write_bytes(data[:-8192] + b"\xff" * 8192)

    kept = memory().entries()
    assert len(kept) > 30  # those on the damaged pages are lost
    (aside,) = own_state.glob("*.damaged")
    assert memory().damaged == str(aside)
    assert len([r for r in caplog.records if str(aside) in r.getMessage()]) == 1
    entry = add()
    assert memory().entries() == [*kept, entry]


def test_a_page_that_is_damaged_in_the_middle_costs_no_entry_of_others(own_state: Path):
    for number in range(60):
        add(_digest(number), f"plug{number}")
    (file,) = own_state.glob("quarantine-*")
    data = file.read_bytes()
    page = data.index(json.dumps(_digest(30)).encode()) // 4096 * 4096
    file.write_bytes(data[:page] + b"\xff" * 4096 + data[page + 4096 :])

    names = {entry.name for entry in memory().entries()}
    assert {"plug0", "plug59"} < names
    assert len(names) > 40
    assert {entry.name for entry in memory().entries()} == names


def test_what_was_read_before_the_damage_is_kept_by_the_next_change(own_state: Path):
    entry = add()
    here = memory()
    (file,) = own_state.glob("quarantine-*")
    file.write_bytes(b"damaged" * 4096)

    other = here.remember(OTHER_SHA256, "other", "/other.so", entry.incident)
    assert memory().entries() == [entry, other]
    here.refresh()
    assert here.entries() == [entry, other]


def test_a_note_of_no_plugin_costs_no_entry(own_state: Path):
    """Nothing but ASCII is written to the database, where it would look like damage."""
    entry = add()
    here = memory()
    note = _loading(1.0)._replace(sha256="\ud800", kind="call", name="odd.ended")
    here.take([note], Notes(PrivateDirectory(None)))

    assert here.entries() == memory().entries() == [entry]
    assert memory().damaged is None


def test_what_is_released_does_not_come_back_from_format_1(own_state: Path, monkeypatch):
    entry = add()
    (file,) = own_state.glob("quarantine-*.sqlite")
    _write_format_1(file, {SHA256: encode(entry), f"suspect {OTHER_SHA256}": encode(entry)})
    with monkeypatch.context() as locked:
        locked.setattr(quarantine_memory.QuarantineStore, "save", lambda _: False)
        here = memory()
        here.clear_suspicion(OTHER_SHA256)
        assert here.release(SHA256)

    assert here.save()
    assert memory().entries() == here.entries() == []
    assert memory().suspicion(OTHER_SHA256) is None


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


def _write_format_1(file: Path, records: dict[str, Any]) -> None:
    file.write_bytes(b"")
    with closing(sqlite3.connect(file)) as used:
        for statement in FORMAT_1:
            used.execute(statement)
        for key, value in records.items():
            values = json.dumps(key).encode(), json.dumps(value).encode()
            used.execute("INSERT INTO record VALUES (NULL, 1, ?, ?, x'', 0, 0)", values)
        used.commit()


@pytest.mark.parametrize("is_read_only", [False, True])
def test_the_entries_of_format_1_are_taken_over(own_state: Path, monkeypatch, is_read_only: bool):
    """Its table had a key, JSON, a digest, a rank and a checksum for each of them."""
    entry = add()
    _accuse(1.0)  # of the same plugin, which is in quarantine: no suspect
    suspect = encode(entry) | {"sha256": OTHER_SHA256}
    called = encode(entry) | {"sha256": _digest(7), "time": 5.0}
    (file,) = own_state.glob("quarantine-*.sqlite")
    records = {
        SHA256: encode(entry),
        f"suspect {OTHER_SHA256}": suspect,
        f"ended 5.000 77 {_digest(7)}": called,
        "damaged": None,
    }
    _write_format_1(file, records)
    if is_read_only:
        monkeypatch.setattr(quarantine_memory.QuarantineStore, "save", lambda _: False)

    for _ in range(2):
        here = memory()
        assert here.entries() == [entry]
        assert here.recall(SHA256) == entry
        assert here.suspicion(OTHER_SHA256) == decode(Entry, suspect)
        assert here.ended_calls(_digest(7)) == [decode(Entry, called)]
        assert here.damaged is None
    if not is_read_only:
        assert memory().release(SHA256)
        assert memory().entries() == []


def test_the_entries_of_earlier_versions_are_taken_over_once(own_state: Path):
    """They had a file of lines: a key, a checksum and a value."""
    entry = add()
    suspect = encode(entry) | {"sha256": OTHER_SHA256}
    (file,) = own_state.glob("quarantine-*.sqlite")
    file.unlink()
    old = file.with_suffix(".records")
    lines = ['"modular_tf quarantine 1"', "damaged", f'"{SHA256}"\t0\t{json.dumps(encode(entry))}']
    lines.append(f'"suspect {OTHER_SHA256}"\t0\t{json.dumps(suspect)}')
    old.write_text("\n".join(lines))
    old.chmod(0o600)

    assert memory().entries() == [entry]
    assert memory().suspicion(OTHER_SHA256) is not None
    assert not old.exists()
    assert memory().release(SHA256)
    assert memory().entries() == []
