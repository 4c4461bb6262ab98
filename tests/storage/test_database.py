"""What processes write to one database is read by all, and no file does harm."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.rules.shortage import ShortageError
from modular_tf.service.storage import database as database_module
from modular_tf.service.storage.private_directory import PrivateDirectory, refuse
from tests.storage.pairs import Pairs

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "some.sqlite"
FIND_TESTS = f"""
import sys
sys.path.insert(0, {os.fspath(Path(__file__).parents[2])!r})
from tests.storage.pairs import Pairs
"""
VALUES: dict[str, Any] = {
    "plain": {"a": [1, 2.5, None, True, "text"]},
    "/a path/with\ttabs\nand lines\0": [],
    "surrogates \udcff": "\udc80 \u2028 \x7f",
    "": 0,
    "long": "x" * 10_000,
}


def records(directory: PrivateDirectory, host: str = "host") -> Pairs:
    return Pairs(directory, NAME, host)


@pytest.fixture
def filled(directory: PrivateDirectory) -> Path:
    one = records(directory)
    for key, value in VALUES.items():
        one.put(key, value)
    assert one.save()
    return Path(directory.path or "") / NAME


@pytest.fixture
def reported(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what was reported of databases."""
    database_module._report.cache_clear()
    refuse.cache_clear()
    return lambda: [record.getMessage() for record in caplog.records]


def held(directory: PrivateDirectory) -> dict[str, Any]:
    return dict(records(directory).items())


def change(path: Path, *statements: str) -> None:
    """Do something to a database that this package does not."""
    with closing(sqlite3.connect(path)) as used:
        for statement in statements:
            used.execute(statement)
        used.commit()


def test_an_empty_one_has_nothing(directory: PrivateDirectory):
    assert records(directory).get("plain") is None
    assert held(directory) == {}
    assert not Path(directory.path or "").exists()


def test_values_come_back(directory: PrivateDirectory, filled: Path):
    assert held(directory) == VALUES
    assert {key: records(directory).get(key) for key in VALUES} == VALUES


def test_nobody_else_may_read_it(filled: Path):
    assert filled.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in filled.parent.iterdir()] == [NAME]


def test_a_change_is_seen_before_it_is_saved(directory: PrivateDirectory, filled: Path):
    one = records(directory)
    one.put("plain", "new")
    one.drop("long")

    assert one.get("plain") == "new"
    assert one.get("long") is None
    assert set(dict(one.items())) == VALUES.keys() - {"long"}
    assert held(directory) == VALUES


def test_nothing_is_written_where_nothing_changed(directory: PrivateDirectory):
    assert records(directory).save()
    assert not Path(directory.path or "").exists()


def test_two_that_write_both_count(directory: PrivateDirectory, filled: Path):
    one, other = records(directory), records(directory)
    one.put("one", 1)
    other.put("other", 2)
    other.drop("plain")
    one.save()
    other.save()

    kept = {key: value for key, value in VALUES.items() if key != "plain"}
    assert held(directory) == {**kept, "one": 1, "other": 2}


def test_a_database_is_read_again_only_where_it_changed(directory, filled: Path, monkeypatch):
    one, other = records(directory), records(directory)
    with monkeypatch.context() as patch:
        patch.delattr(sqlite3, "connect")
        one.refresh()
    assert dict(one.items()) == VALUES

    other.put("other", 1)
    assert other.save()
    one.refresh()
    assert one.get("other") == 1
    filled.unlink()
    one.refresh()
    assert dict(one.items()) == {}


def test_another_host_has_other_rows(directory: PrivateDirectory, filled: Path):
    other = records(directory, "other")
    assert dict(other.items()) == {}
    other.put("plain", "of the other")
    other.save()
    assert held(directory) == VALUES
    assert dict(records(directory, "other").items()) == {"plain": "of the other"}


@pytest.mark.parametrize("column", ["value", "key", "host", "id"])
@pytest.mark.parametrize("value", ["NULL", "1", "'text'", "x'ff'", "1e300"])
def test_a_column_may_hold_something_else(
    directory: PrivateDirectory, filled: Path, column: str, value: str
):
    with suppress(sqlite3.IntegrityError):  # by which SQLite keeps the row as it was
        change(filled, f"UPDATE pair SET {column} = {value} WHERE key = x'706c61696e'")
    found = held(directory)
    assert {
        key: found[key] for key in found.keys() & VALUES.keys() - {"plain"}
    }.items() <= VALUES.items()
    assert lasts_on_disk(directory)


# -- what cannot be used ---------------------------------------------------------------------------


def lasts_on_disk(directory: PrivateDirectory) -> bool:
    one = records(directory)
    one.put("new", 1)
    return (one.save() or one.save()) and records(directory).get("new") == 1


def lasts_in_memory(directory: PrivateDirectory) -> bool:
    one = records(directory)
    one.put("new", 1)
    return not one.save() and one.get("new") == 1


def test_there_may_be_no_place():
    assert lasts_in_memory(PrivateDirectory(None))


def test_a_python_may_have_no_sqlite(directory, filled: Path, monkeypatch, reported):
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    assert lasts_in_memory(directory)
    assert lasts_in_memory(directory)
    assert len(reported()) == 1
    assert "SQLite" in reported()[0]


def test_a_home_that_is_read_only_is_read(directory: PrivateDirectory, filled: Path):
    filled.chmod(0o400)
    filled.parent.chmod(0o500)
    try:
        assert held(directory) == VALUES
        if os.geteuid():  # no mode keeps root from writing
            assert lasts_in_memory(directory)
    finally:
        filled.parent.chmod(0o700)


def test_a_full_disk_costs_no_record(run_python, directory: PrivateDirectory, filled: Path):
    """A limit on the size of files fails a write in its middle, as a full disk does."""
    subject = """
        import resource, signal, sys
        from modular_tf.service.storage.private_directory import PrivateDirectory
        one = Pairs(PrivateDirectory(sys.argv[1]), "some.sqlite")
        one.put("new", "x" * 500_000)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        assert not one.save()
        assert one.get("new")
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert one.save()
    """
    run_python(FIND_TESTS + dedent(subject), directory.path or "")
    assert held(directory).keys() == {*VALUES, "new"}


def test_a_database_that_somebody_locks_holds_nobody_up_for_long(
    directory, filled: Path, monkeypatch, reported
):
    monkeypatch.setattr(database_module, "_BUSY_S", 0.01)
    with closing(sqlite3.connect(filled)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert lasts_in_memory(directory)
        assert held(directory) == {}
        assert [message for message in reported() if "locked" in message][1:] == []
    assert held(directory) == VALUES


def test_what_another_process_has_locked_is_not_empty(directory, filled: Path, monkeypatch):
    """Such as one that waits for a slow disk: a quarantine that is not read releases everybody."""
    monkeypatch.setattr(database_module, "_BUSY_S", 0.01)
    locks = """
        import sqlite3, sys
        with sqlite3.connect(sys.argv[1], isolation_level=None) as used:
            used.execute("BEGIN EXCLUSIVE")
            print(flush=True)
            sys.stdin.read()
    """
    one = records(directory)
    with subprocess.Popen(
        [sys.executable, "-c", dedent(locks), filled],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        one.refresh()  # which needs no lock, as nothing has changed
        assert dict(one.items()) == VALUES
        assert isinstance(records(directory).shortage, ShortageError)
        other.communicate()
    one.refresh()
    assert one.shortage is None


def test_a_home_without_locks_has_no_records(directory, filled: Path, monkeypatch, reported):
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(database_module, "_BUSY_S", 0.01)
    monkeypatch.setattr(fcntl, "lockf", no_locks)
    with closing(sqlite3.connect(filled)) as other:  # which SQLite reports likewise
        other.execute("BEGIN EXCLUSIVE")
        one = records(directory)
        assert one.shortage is None
        assert dict(one.items()) == {}
        assert lasts_in_memory(directory)
    assert len(reported()) == 1


@pytest.mark.parametrize("error", [MemoryError, sqlite3.OperationalError("disk I/O error")])
def test_what_was_read_before_a_failure_does_not_come_back(
    directory, filled: Path, monkeypatch, error
):
    one = records(directory)

    def fail(*_: object) -> None:
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

    assert held(directory).keys() == {"new", *VALUES} - {"plain"}


FOREIGN = {
    "another program": ("PRAGMA application_id = 7",),
    "newer": (f"PRAGMA user_version = {database_module._VERSION + 1}",),
}


@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN)
def test_what_others_wrote_is_left_alone(directory, filled: Path, statements, reported):
    change(filled, *statements)
    before = filled.read_bytes()

    assert lasts_in_memory(directory)
    assert held(directory) == {}
    assert filled.read_bytes() == before
    assert len(reported()) == 1


def test_tables_of_another_program_are_left_alone(directory: PrivateDirectory, filled: Path):
    filled.unlink()
    change(filled, "CREATE TABLE theirs (x)")
    filled.chmod(0o600)

    assert lasts_in_memory(directory)
    with closing(sqlite3.connect(filled)) as used:
        assert used.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir(mode=0o700)


@pytest.mark.parametrize(
    "deed", [_link, _fifo, _folder, lambda path: path.chmod(0o620), lambda path: path.chmod(0o602)]
)
def test_what_others_could_have_put_there_is_not_believed(directory, filled, deed, reported):
    deed(filled)
    assert held(directory) == {}
    assert lasts_in_memory(directory)
    assert ["LD-071" in message for message in reported()] == [True]


GARBAGE = {
    "zeros": bytes(4096),
    "noise": bytes(range(256)) * 64,
    "a short header": b"SQLite format 3\0",
    "old records": b'"title"\n"key"\t00000000\t1\n',
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_a_damaged_one_is_set_aside_and_begun_anew(directory, filled, content: bytes, reported):
    filled.write_bytes(content)

    assert held(directory) == {}
    again = records(directory)
    again.put("key", "value")
    assert again.save()
    assert held(directory) == {"key": "value"}
    assert filled.with_name(f"{NAME}.damaged").read_bytes() == content
    assert len([message for message in reported() if "damaged" in message]) == 1


@pytest.mark.parametrize("damage", ["cut", "flip", "zero"])
def test_damage_does_no_harm(directory: PrivateDirectory, filled: Path, damage: str):
    """Wherever it hits, what is cut off or zeroed changes no value; the next can be written."""
    one = records(directory)
    for number in range(40):
        one.put(f"key {number}", "y" * 500)
    assert one.save()
    expected = held(directory)
    whole = filled.read_bytes()
    for at in [*range(0, 200, 7), *range(200, len(whole), 1511)]:
        filled.write_bytes(
            {
                "cut": whole[:at],
                "flip": whole[:at] + bytes([whole[at] ^ 0x11]) + whole[at + 1 :],
                "zero": whole[:at] + bytes(512) + whole[at + 512 :],
            }[damage]
        )
        assert damage == "flip" or held(directory).items() <= expected.items(), at
        again = records(directory)
        again.put("new", at)
        again.save()
        again.save()
        assert again.get("new") == at
        for path in filled.parent.iterdir():
            path.unlink()
    filled.write_bytes(whole)


def test_the_rows_of_a_damaged_one_are_not_used(directory, filled: Path, reported):
    one = records(directory)
    for number in range(200):
        one.put(f"key {number}", "y" * 500)
    assert one.save()
    data = filled.read_bytes()
    filled.write_bytes(data[: len(data) - 8192] + b"\xff" * 8192)

    assert held(directory) == {}
    assert len([message for message in reported() if "damaged" in message]) == 1


def test_a_damaged_text_that_reads_like_an_error_is_damage(directory, filled: Path, reported):
    with closing(sqlite3.connect(filled)) as used:
        text = b"'/opt/blocked: readonly\xff'"
        used.execute("UPDATE pair SET value = CAST(? AS TEXT)", (text,))
        used.commit()

    one = records(directory)
    one.put("key", 1)
    assert one.save()
    assert held(directory) == {"key": 1}
    assert len([message for message in reported() if "damaged" in message]) == 1


@pytest.mark.parametrize(
    "value",
    [b"[" * 100_000, b"1" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"nothing", b"", b"NaN "],
    ids=["nested lists", "a long number", "nested objects", "no ASCII", "no JSON", "empty", "NaN"],
)
def test_a_value_may_be_anything(directory, filled: Path, value: bytes):
    with closing(sqlite3.connect(filled)) as used:
        used.execute("UPDATE pair SET value = ? WHERE key = ?", (value, b"plain"))
        used.commit()

    found = records(directory).get("plain")
    assert found is None or isinstance(found, float)
    assert dict(records(directory).items()).items() >= {("", 0)}


# -- room ------------------------------------------------------------------------------------------


def test_the_oldest_go_where_there_is_no_room(directory: PrivateDirectory, monkeypatch):
    monkeypatch.setattr(database_module, "_MOST_PAGES", 18)
    one = records(directory)
    for number in range(200):
        one.put(f"key{number}", "x" * 1000)
        one.save()
        assert held(directory)[f"key{number}"] == "x" * 1000
    left = held(directory).keys()

    assert left == {f"key{number}" for number in range(200 - len(left), 200)}
    assert 10 < len(left) < 100
    assert (Path(directory.path or "") / NAME).stat().st_size <= 40 * 4096


def test_the_rows_of_old_hosts_go_first(directory: PrivateDirectory, monkeypatch):
    monkeypatch.setattr(database_module, "_MOST_PAGES", 18)
    for number in range(60):
        one = records(directory, f"host {number}")
        one.put("key", "x" * 2000)
        assert one.save()

    assert dict(records(directory, "host 0").items()) == {}
    assert dict(records(directory, "host 59").items()) == {"key": "x" * 2000}


def test_a_huge_value_is_not_kept(directory: PrivateDirectory):
    one = records(directory)
    one.put("huge", "x" * 2_000_000)
    one.put("small", "x")
    one.save()

    assert held(directory) == {"small": "x"}


# -- shortages, threads, forks, ends ---------------------------------------------------------------


def test_a_shortage_costs_nobody_a_record(directory: PrivateDirectory, filled: Path, monkeypatch):
    """What cannot be read now is not empty."""

    def no_descriptor_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    one = records(directory)
    one.put("new", 1)
    with monkeypatch.context() as patch:
        patch.setattr(os, "stat", no_descriptor_left)
        assert not one.save()
        one.refresh()
        assert isinstance(one.shortage, ShortageError)
        assert dict(one.items()) == {**VALUES, "new": 1}
    assert held(directory) == VALUES
    one.refresh()
    assert one.shortage is None
    assert one.save()
    assert held(directory) == {**VALUES, "new": 1}


def test_a_shortage_within_sqlite_is_one(run_python, directory: PrivateDirectory, filled: Path):
    subject = """
        import os, sys, sqlite3
        from modular_tf.service.storage.private_directory import PrivateDirectory
        one = Pairs(PrivateDirectory(sys.argv[1]), "some.sqlite")
        before = dict(one.items())
        used = []
        try:
            while True:
                used.append(os.dup(0))
        except OSError:
            pass
        while used:
            one.refresh()
            if one.shortage is None:
                break
            assert dict(one.items()) == before
            os.close(used.pop())
        assert dict(one.items()) == before
        assert one.shortage is None
    """
    run_python(FIND_TESTS + dedent(subject), directory.path or "")


def test_what_threads_change_while_one_saves_is_not_lost(directory: PrivateDirectory):
    one = records(directory)
    count = 100

    def fill(thread: int) -> None:
        for number in range(count):
            one.put(f"{thread} {number}", number)
            if number % 20 == 0:
                one.save()
                one.refresh()
                list(one.items())

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(fill, thread) for thread in range(4)]:
            future.result()
    one.save()

    expected = {f"{thread} {number}": number for thread in range(4) for number in range(count)}
    assert dict(one.items()) == expected
    assert held(directory) == expected


@pytest.mark.parametrize("read", ["get", "items"])
def test_what_is_saved_while_it_is_read_is_seen(directory: PrivateDirectory, read: str):
    """Saving moves it from the changes to the rows, whichever of them is read first."""
    one = records(directory)
    one.put("key", 1)

    class Rows(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            found = super().get(key, default)
            assert one.save()
            return found

        def __iter__(self) -> Any:  # which `{**rows}` calls where there is one, by `keys`
            found = list(super().__iter__())
            assert one.save()
            return iter(found)

    one.pairs.rows = Rows()
    assert (one.get("key") if read == "get" else dict(one.items())["key"]) == 1


@pytest.mark.filterwarnings("ignore:.*fork")  # libraries of other tests have threads
def test_children_that_are_forked_all_the_time_neither_hang_nor_do_harm(
    directory: PrivateDirectory, filled: Path
):
    """A thread writes meanwhile, in whose transaction no child may begin."""
    is_over = threading.Event()
    one = records(directory)

    def write() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            one.put("counted", number)
            assert one.save()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(40):
            if (child := os.fork()) == 0:
                signal.alarm(30)
                child_s = records(directory)
                child_s.put("of a child", 1)
                is_well = child_s.save() and held(directory).keys() >= VALUES.keys()
                os._exit(0 if is_well else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        is_over.set()
        thread.join()
    assert held(directory).keys() == {*VALUES, "counted", "of a child"}
    with closing(sqlite3.connect(filled)) as used:
        assert used.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_signal_handler_may_use_them_in_the_middle_of_a_fork(run_python, directory):
    subject = """
        import os, signal, sys

        def send():
            signal.raise_signal(signal.SIGALRM)

        # Such as those of `logging`, which run while a fork has the lock of the databases.
        os.register_at_fork(before=send, after_in_parent=send, after_in_child=send)
        from modular_tf.service.storage.private_directory import PrivateDirectory
        one, saved = Pairs(PrivateDirectory(sys.argv[1]), "some.sqlite"), []

        def handler(*_):
            one.put(f"{os.getpid()} {len(saved)}", 1)
            saved.append(one.save())

        signal.signal(signal.SIGALRM, handler)
        child = os.fork()
        assert saved == [True, True]
        if not child:
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    """
    run_python(FIND_TESTS + dedent(subject), directory.path or "")
    assert len(held(directory)) == 3


WRITES = f"""{FIND_TESTS}
import sys
from modular_tf.service.storage.private_directory import PrivateDirectory
number = 0
while True:
    number += 1
    one = Pairs(PrivateDirectory(sys.argv[1]), "some.sqlite")
    one.put(f"{{sys.argv[2]}} {{number % 50}}", [number, "z" * 3000])
    assert one.save()
    print(number, flush=True)
"""


def test_processes_that_are_killed_at_any_time_do_no_damage(
    directory: PrivateDirectory, filled: Path
):
    """A sample; `scripts/kill_starts` does so to whole starts."""
    command = [sys.executable, "-c", WRITES, directory.path or ""]
    for attempt in range(6):
        running = [
            subprocess.Popen([*command, f"{attempt} {n}"], stdout=subprocess.PIPE) for n in range(2)
        ]
        for process in running:
            assert process.stdout is not None
            for _ in range(attempt + 1):
                assert process.stdout.readline()
            process.kill()
        for process in running:
            process.communicate()
        assert held(directory).items() >= VALUES.items()
    assert not filled.with_name(f"{NAME}.damaged").exists()
    with closing(sqlite3.connect(filled)) as used:
        assert used.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_the_directory_may_go_while_it_is_used(directory: PrivateDirectory, filled: Path):
    one = records(directory)
    shutil.rmtree(filled.parent)
    one.put("new", 1)
    assert one.save()
    assert held(directory) == {"new": 1}
