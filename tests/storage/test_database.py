"""What processes write to one database is read by all, and no file does harm."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from textwrap import dedent

import pytest

from modular_tf.rules.shortage import ShortageError
from modular_tf.service.storage import database as database_module
from modular_tf.service.storage.database import Database, Table, oldest
from modular_tf.service.storage.private_directory import PrivateDirectory, refuse

NAME = "some.sqlite"
VALUES = {
    "plain": {"a": [1, 2.5, None, True, "text"]},
    "/a path/with\ttabs\nand lines\0": [],
    "surrogates \udcff": "\udc80 \u2028 \x7f",
    "": 0,
    "long": "x" * 10_000,
}


class Pairs(Database):
    """A database with one table: a key and a value of JSON each."""

    make_room = (
        oldest("pair"),
        "DELETE FROM host WHERE id NOT IN (SELECT host FROM pair)",
    )

    def __init__(self, directory, name, host="host"):
        self.pairs = Table("pair", "key", "value")
        super().__init__(directory, name, self.pairs, host=host)

    def put(self, key, value):
        self.pairs.put(key, json.dumps(value))

    def drop(self, key):
        self.pairs.drop(key)

    def get(self, key):
        with suppress(TypeError, ValueError):  # of what is no JSON, or not there
            return json.loads(*self.pairs.get(key))
        return None

    def contents(self):
        found = {key: self.get(key) for key in self.pairs.all()}
        return {key: value for key, value in found.items() if value is not None}


def records(directory, host="host"):
    return Pairs(directory, NAME, host)


def stored(directory, host="host"):
    return records(directory, host).contents()


@pytest.fixture
def filled(directory):
    """The file of a database with `VALUES`."""
    one = records(directory)
    for key, value in VALUES.items():
        one.put(key, value)
    assert one.save()
    return Path(directory.path) / NAME


@pytest.fixture
def reported(caplog):
    """Return what was reported of databases."""
    database_module._report.cache_clear()
    refuse.cache_clear()
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture
def waits_shortly(monkeypatch):
    monkeypatch.setattr(database_module, "_BUSY_S", 0.01)


def execute(path, *statements):
    """Do something to a database that this package does not."""
    with closing(sqlite3.connect(path)) as used:
        for statement in statements:
            used.execute(*statement) if isinstance(statement, tuple) else used.execute(statement)
        used.commit()


def is_whole(path):
    with closing(sqlite3.connect(path)) as used:
        return used.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def lasts_on_disk(directory):
    one = records(directory)
    one.put("new", 1)
    return (one.save() or one.save()) and records(directory).get("new") == 1


def lasts_in_memory_only(directory):
    one = records(directory)
    one.put("new", 1)
    return not one.save() and one.get("new") == 1


def test_nothing_is_written_where_nothing_changed(directory):
    assert records(directory).get("plain") is None
    assert stored(directory) == {}
    assert records(directory).save()
    assert not Path(directory.path).exists()


def test_values_come_back_from_a_file_that_nobody_else_may_read(directory, filled):
    assert stored(directory) == VALUES
    assert {key: records(directory).get(key) for key in VALUES} == VALUES
    assert filled.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in filled.parent.iterdir()] == [NAME]


def test_a_change_is_seen_before_it_is_saved(directory, filled):
    one = records(directory)
    one.put("plain", "new")
    one.drop("long")

    assert (one.get("plain"), one.get("long")) == ("new", None)
    assert one.contents().keys() == VALUES.keys() - {"long"}
    assert stored(directory) == VALUES


def test_two_that_write_both_count(directory, filled):
    one, other = records(directory), records(directory)
    one.put("one", 1)
    other.put("other", 2)
    other.drop("plain")
    one.save()
    other.save()

    rest = {key: value for key, value in VALUES.items() if key != "plain"}
    assert stored(directory) == {**rest, "one": 1, "other": 2}


def test_a_database_is_read_again_only_where_it_changed(directory, filled, monkeypatch):
    one, other = records(directory), records(directory)
    with monkeypatch.context() as patch:
        patch.delattr(sqlite3, "connect")
        one.refresh()
    assert one.contents() == VALUES

    other.put("other", 1)
    assert other.save()
    one.refresh()
    assert one.get("other") == 1
    filled.unlink()
    one.refresh()
    assert one.contents() == {}


def test_another_host_has_other_rows(directory, filled):
    other = records(directory, "other")
    assert other.contents() == {}
    other.put("plain", "of the other")
    other.save()
    assert stored(directory) == VALUES
    assert stored(directory, "other") == {"plain": "of the other"}


@pytest.mark.parametrize("column", ["value", "key", "host", "id"])
@pytest.mark.parametrize("value", ["NULL", "1", "x'ff'"])
def test_a_column_may_hold_something_else(directory, filled, column, value):
    with suppress(sqlite3.IntegrityError):  # by which SQLite keeps the row as it was
        execute(filled, f"UPDATE pair SET {column} = {value} WHERE key = x'706c61696e'")
    found = stored(directory)
    others = found.keys() & VALUES.keys() - {"plain"}
    assert {key: found[key] for key in others}.items() <= VALUES.items()
    assert lasts_on_disk(directory)


# -- what cannot be used ---------------------------------------------------------------------------


def test_there_may_be_no_place():
    assert lasts_in_memory_only(PrivateDirectory(None))


def test_a_python_may_have_no_sqlite(directory, filled, monkeypatch, reported):
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert lasts_in_memory_only(directory)
    assert lasts_in_memory_only(directory)
    assert ["SQLite" in message for message in reported()] == [True]


def test_a_full_disk_costs_no_record(directory, filled, limited_files):
    one = records(directory)
    one.put("new", "x" * 500_000)
    with limited_files(100_000):
        assert not one.save()
    assert one.get("new")
    assert one.save()
    assert stored(directory).keys() == {*VALUES, "new"}


def test_what_another_process_has_locked_is_not_empty_and_holds_nobody_up(
    directory, filled, waits_shortly, reported
):
    """Such as one that waits for a slow disk: a quarantine that is not read releases everybody."""
    locks = """
        import sqlite3, sys
        with sqlite3.connect(sys.argv[1], isolation_level=None) as used:
            used.execute("BEGIN EXCLUSIVE")
            print(flush=True)
            sys.stdin.read()
    """
    one = records(directory)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", dedent(locks), filled], **pipes) as other:
        other.stdout.readline()
        one.refresh()  # which needs no lock, as nothing has changed
        assert one.contents() == VALUES
        assert isinstance(records(directory).shortage, ShortageError)
        assert lasts_in_memory_only(directory)
        assert [message for message in reported() if "locked" in message][1:] == []
        other.communicate()
    one.refresh()
    assert one.shortage is None


def test_a_home_without_locks_has_no_records(
    directory, filled, monkeypatch, waits_shortly, reported
):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    with closing(sqlite3.connect(filled)) as other:  # which SQLite reports likewise
        other.execute("BEGIN EXCLUSIVE")
        one = records(directory)
        assert one.shortage is None
        assert one.contents() == {}
        assert lasts_in_memory_only(directory)
    assert len(reported()) == 1


@pytest.mark.parametrize("error", [MemoryError, sqlite3.OperationalError("disk I/O error")])
def test_what_was_read_before_a_failure_does_not_come_back(directory, filled, monkeypatch, error):
    one = records(directory)

    def fail(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(one, "_version", None)
        patch.setattr(database_module, "_version_of_tables", fail)
        one.refresh()
    other = records(directory)
    other.drop("plain")
    assert other.save()
    one.refresh()
    one.put("new", 1)
    one.save()

    assert stored(directory).keys() == {"new", *VALUES} - {"plain"}


def put_behind_a_link(file):
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


THEIR_TABLES = (
    *("DROP TABLE pair", "DROP TABLE host", "CREATE TABLE theirs (x)"),
    *("PRAGMA application_id = 0", "PRAGMA user_version = 0"),
)
NEWER = f"PRAGMA user_version = {database_module._VERSION + 1}"
NOT_OURS = {
    "of another program": lambda file: execute(file, "PRAGMA application_id = 7"),
    "with tables of another program": lambda file: execute(file, *THEIR_TABLES),
    "newer": lambda file: execute(file, NEWER),
    "a link": put_behind_a_link,
    "writable by others": lambda file: file.chmod(0o602),
}


@pytest.mark.parametrize("kind", NOT_OURS)
def test_what_others_wrote_or_could_have_written_is_left_alone(directory, filled, kind, reported):
    NOT_OURS[kind](filled)
    before = filled.read_bytes()

    assert lasts_in_memory_only(directory)
    assert stored(directory) == {}
    assert filled.read_bytes() == before
    assert ["LD-071" in message for message in reported()] == [True]


LIKE_AN_ERROR = b"'/opt/blocked: readonly\xff'"
SET_TEXTS = "UPDATE pair SET value = CAST(? AS TEXT)"
DAMAGE = {
    "zeros": lambda file: file.write_bytes(bytes(4096)),
    "noise": lambda file: file.write_bytes(bytes(range(256)) * 64),
    "a short header": lambda file: file.write_bytes(b"SQLite format 3\0"),
    "a text like an error": lambda file: execute(file, (SET_TEXTS, (LIKE_AN_ERROR,))),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_one_is_set_aside_and_begun_anew(directory, filled, kind, reported):
    DAMAGE[kind](filled)
    content = filled.read_bytes()

    assert stored(directory) == {}
    again = records(directory)
    again.put("key", "value")
    assert again.save()
    assert stored(directory) == {"key": "value"}
    assert filled.with_name(f"{NAME}.damaged").read_bytes() == content
    assert len([message for message in reported() if "damaged" in message]) == 1


@pytest.mark.parametrize("damage", ["cut", "flip", "zero"])
def test_damage_does_no_harm(directory, filled, damage):
    """Wherever it hits, what is cut off or zeroed changes no value; the next can be written."""
    one = records(directory)
    for number in range(40):
        one.put(f"key {number}", "y" * 500)
    assert one.save()
    expected = stored(directory)
    whole = filled.read_bytes()
    for at in [*range(0, 200, 7), *range(200, len(whole), 1511)]:
        damaged = {
            "cut": whole[:at],
            "flip": whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :],
            "zero": whole[:at] + bytes(512) + whole[at + 512 :],
        }
        filled.write_bytes(damaged[damage])
        assert damage == "flip" or stored(directory).items() <= expected.items(), at
        again = records(directory)
        again.put("new", at)
        again.save()
        again.save()
        assert again.get("new") == at
        for path in filled.parent.iterdir():
            path.unlink()


# -- room ------------------------------------------------------------------------------------------


def test_the_oldest_go_where_there_is_no_room(directory, monkeypatch):
    monkeypatch.setattr(database_module, "_MOST_PAGES", 18)
    one = records(directory)
    one.put("huge", "x" * 2_000_000)  # which there never is room for
    for number in range(100):
        one.put(f"key{number}", "x" * 1000)
        one.save()
        assert stored(directory)[f"key{number}"] == "x" * 1000
    left = stored(directory).keys()

    assert left == {f"key{number}" for number in range(100 - len(left), 100)}
    assert 10 < len(left) < 100
    assert (Path(directory.path) / NAME).stat().st_size <= 40 * 4096


def test_the_rows_of_old_hosts_go_first(directory, monkeypatch):
    monkeypatch.setattr(database_module, "_MOST_PAGES", 18)
    for number in range(60):
        one = records(directory, f"host {number}")
        one.put("key", "x" * 2000)
        assert one.save()

    assert stored(directory, "host 0") == {}
    assert stored(directory, "host 59") == {"key": "x" * 2000}


# -- shortages, threads, forks, ends ---------------------------------------------------------------


def test_a_shortage_costs_nobody_a_record(directory, filled, monkeypatch):
    """What cannot be read now is not empty."""

    def no_descriptor_left(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    one = records(directory)
    one.put("new", 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", no_descriptor_left)
        assert not one.save()
        one.refresh()
        assert isinstance(one.shortage, ShortageError)
        assert one.contents() == {**VALUES, "new": 1}
    assert stored(directory) == VALUES
    one.refresh()
    assert one.shortage is None
    assert one.save()
    assert stored(directory) == {**VALUES, "new": 1}


def test_a_shortage_within_sqlite_is_one(directory, filled):
    one, other = records(directory), records(directory)
    other.put("new", 1)
    assert other.save()  # so that the next refresh reads
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used, shortages = [os.dup(0)], 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (used[0] + 20, hard))
    try:
        with suppress(OSError):
            while True:
                used.append(os.dup(0))
        one.refresh()
        while one.shortage is not None:
            assert one.contents() == VALUES
            shortages += 1
            os.close(used.pop())
            one.refresh()
    finally:
        for descriptor in used:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert one.contents() == {**VALUES, "new": 1}
    assert shortages


def test_what_is_changed_while_it_is_saved_is_saved_by_the_next(directory, monkeypatch):
    one = records(directory)
    one.put("key", "old")
    table, take = one.pairs, one.pairs.take_written

    def change_first(written):
        one.put("key", "new")
        take(written)

    monkeypatch.setattr(table, "take_written", change_first)
    assert one.save()
    monkeypatch.undo()
    assert one.get("key") == "new"
    assert stored(directory) == {"key": "old"}
    assert one.save()
    assert stored(directory) == {"key": "new"}


@pytest.mark.parametrize("read", [lambda one: one.get("key"), lambda one: one.contents()["key"]])
def test_what_is_saved_while_it_is_read_is_seen(directory, read):
    """Saving moves it from the changes to the rows, whichever of them is read first."""
    one = records(directory)
    one.put("key", 1)

    unsaved = iter([one])

    def save():
        for changed in unsaved:  # the first time
            assert changed.save()

    class Rows(dict):
        def get(self, key, default=None):
            found = super().get(key, default)
            save()
            return found

        def keys(self):
            found = list(super().keys())
            save()
            return found

        def __iter__(self):  # where there is one, `{**rows}` asks for the keys
            return iter(self.keys())

    one.pairs.rows = Rows()
    assert read(one) == 1


@pytest.mark.filterwarnings("ignore:.*fork")  # libraries of other tests have threads
def test_children_that_are_forked_all_the_time_neither_hang_nor_do_harm(directory, filled):
    """A thread writes meanwhile, in whose transaction no child may begin."""
    is_over = threading.Event()
    one = records(directory)

    def write():
        number = 0
        while not is_over.is_set():
            number += 1
            one.put("counted", number)
            assert one.save()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(6):
            if (child := os.fork()) == 0:
                signal.alarm(30)
                is_well = False
                try:
                    of_child = records(directory)
                    of_child.put("of a child", 1)
                    is_well = of_child.save() and stored(directory).keys() >= VALUES.keys()
                finally:  # else it would go on as a second run of the tests
                    os._exit(0 if is_well else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        is_over.set()
        thread.join()
    assert stored(directory).keys() == {*VALUES, "counted", "of a child"}
    assert is_whole(filled)


def test_a_signal_handler_that_runs_within_a_fork_waits_for_no_other_thread(directory):
    """A fork has the lock of all databases, which its own thread may take again."""
    one = records(directory)
    one.put("key", 1)
    with database_module._lock:
        assert one.save()
    assert stored(directory) == {"key": 1}


@pytest.mark.filterwarnings("ignore:.*fork")
def test_processes_that_are_killed_at_any_time_do_no_damage(directory, filled):
    """A sample; `scripts/kill_starts` does so to whole starts."""

    def begin_writing(name):
        """Fork a writer; return its number, and a pipe that gets a byte for each save."""
        reads, writes = os.pipe()
        if child := os.fork():
            os.close(writes)
            return child, reads
        signal.alarm(60)
        try:
            for number in itertools.count(1):
                one = records(directory)
                one.put(f"{name} {number % 50}", [number, "z" * 3000])
                assert one.save()
                os.write(writes, b".")
        finally:  # else it would go on as a second run of the tests
            os._exit(1)

    for attempt in range(3):
        writers = [begin_writing(f"{attempt} {number}") for number in range(2)]
        for child, reads in writers:
            for _ in range(attempt + 1):
                assert os.read(reads, 1)
            os.kill(child, signal.SIGKILL)
        for child, reads in writers:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            os.close(reads)
        assert stored(directory).items() >= VALUES.items()
    assert not filled.with_name(f"{NAME}.damaged").exists()
    assert is_whole(filled)
