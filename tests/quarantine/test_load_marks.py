"""A process that ends while it loads something names the culprit to the next one."""

from __future__ import annotations

import errno
import json
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from modular_tf.loading.task import Task
from modular_tf.rules.shortage import ShortageError
from modular_tf.service.storage import notes as notes_module
from modular_tf.service.storage.notes import Note, Notes
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import QuarantineStore
from tests.quarantine.conftest import SHA256

if TYPE_CHECKING:
    from pathlib import Path

LOADING = """
    import os, signal, sys
    from modular_tf.service.storage.notes import Notes
    with Notes.of_process().around("loading", "plug", "/where/plug.so", sys.argv[1]):
        {deed}
"""
DEEDS = {
    "crash": ("os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
    "abort": ("os.abort()", -signal.SIGABRT),
    "exit": ("os._exit(7)", 7),
}


def notes() -> Notes:
    return Notes.of_process()


def take() -> QuarantineStore:
    """Record the notes of ended processes, as a process that starts now does."""
    here, store = notes(), QuarantineStore.of_process()
    store.take(here.of_ended(), here)
    return store


def files(own_state: Path) -> list[Path]:
    folder = own_state / "notes"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def leave_mark(own_state: Path, **changes: Any) -> Path:
    """Leave the mark of this process, as if it had been another."""
    before = set(files(own_state))
    with notes().around("loading", "plug", "/where/plug.so", SHA256):
        (mark,) = set(files(own_state)) - before
        value = json.loads(mark.read_bytes()) | changes
    left = mark.with_name(f"left{len(before)}.mark")
    left.write_text(json.dumps(value))
    left.chmod(0o600)
    return left


@pytest.mark.parametrize(
    ("changes", "is_certain"),
    [
        ({}, True),
        ({"kind": "loading"}, False),
        ({"boot": "another", "pid": 1}, False),  # a power cut, perhaps
    ],
)
def test_a_trial_that_nobody_outlived_names_the_culprit(own_state, changes, is_certain):
    leave_mark(own_state, **{"kind": "trying", "start": "1", **changes})
    memory = take()

    assert [entry.sha256 for entry in memory.entries()] == [SHA256] * is_certain
    assert (memory.suspicion(SHA256) is None) is is_certain


def test_trials_of_processes_that_one_of_them_may_have_ended_make_suspects(own_state):
    for number, path in ((1, "/where/a.so"), (2, "/where/b.so")):
        sha256 = f"{number}" * 64
        leave_mark(own_state, kind="trying", path=path, start="1", pid=number, sha256=sha256)
    store = take()

    assert store.entries() == []
    assert all(store.suspicion(f"{number}" * 64) for number in (1, 2))


def test_a_trial_whose_watcher_outlived_the_application_makes_a_suspect(own_state):
    mark = leave_mark(own_state, kind="trying", start="1")
    Task("plug", "/where/plug.so", mark=str(mark)).mark_watcher_survived()

    store = take()

    assert store.entries() == []
    assert store.suspicion(SHA256) is not None
    assert files(own_state) == []


def test_the_watcher_of_an_application_that_ended_just_now_gets_time(own_state, monkeypatch):
    """Those that waited for the application look at its marks before its watcher does."""
    mark = leave_mark(own_state, kind="trying", start="1")
    task = Task("plug", "/where/plug.so", mark=str(mark))
    monkeypatch.setattr(notes_module, "sleep", lambda _: task.mark_watcher_survived())

    store = take()

    assert store.entries() == []
    assert store.suspicion(SHA256) is not None
    assert files(own_state) == []


def test_what_came_back_leaves_nothing(own_state: Path):
    with notes().around("loading", "plug", "/where/plug.so", SHA256):
        assert len(files(own_state)) == 1

    assert files(own_state) == []
    assert notes().of_ended() == []


def test_a_clock_that_was_set_back_does_not_hide_a_culprit(own_state: Path):
    left = leave_mark(own_state, boot="another")
    os.utime(left, (2**32, 2**32))

    assert len(notes().of_ended()) == 1


def test_what_raised_came_back(own_state: Path):
    with pytest.raises(ZeroDivisionError), notes().around("loading", "p", "/p", SHA256):
        _ = 1 // 0

    assert files(own_state) == []


@pytest.mark.parametrize("deed", DEEDS)
def test_what_ended_the_process_is_named(run_python, own_state: Path, deed: str):
    code, status = DEEDS[deed]
    before = time.time()
    run_python(LOADING.format(deed=code), SHA256, status=status)
    (note,) = notes().of_ended()

    assert note[:4] == ("plug", "/where/plug.so", SHA256, "loading")
    assert note.pid != os.getpid()
    assert before <= note.time <= time.time()
    take()
    assert files(own_state) == []
    assert notes().of_ended() == []


def test_an_orderly_end_is_none(run_python):
    run_python(LOADING.format(deed="sys.exit(3)"), SHA256, status=3)

    assert notes().of_ended() == []


def test_the_incident_says_that_it_may_have_been_something_else(own_state: Path):
    leave_mark(own_state, start="1")
    incident = notes().of_ended()[0].incident()

    assert incident.violation.rule_id == "LD-070"
    assert "power cut" in incident.violation.message
    assert "retry" in incident.violation.rule.remedy


def test_a_running_process_is_no_culprit(own_state: Path):
    with notes().around("loading", "plug", "/plug.so", SHA256):
        assert notes().of_ended() == []
        assert len(files(own_state)) == 1


@pytest.mark.filterwarnings("ignore:.*fork")  # libraries of other tests have threads
def test_a_process_that_nobody_waited_for_is_gone():
    child = os.fork()
    if child == 0:
        with notes().around("loading", "plug", "/plug.so", SHA256):
            os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    try:
        assert [note.pid for note in notes().of_ended()] == [child]
    finally:
        os.waitpid(child, 0)


def test_a_later_process_of_that_number_is_another(own_state: Path):
    leave_mark(own_state, start="1")

    assert [note.pid for note in notes().of_ended()] == [os.getpid()]


def test_a_process_before_the_last_start_of_the_machine_is_gone(own_state: Path):
    leave_mark(own_state, boot="another")

    assert len(notes().of_ended()) == 1


@pytest.mark.parametrize("elsewhere", ["machine", "namespace"])
def test_a_process_elsewhere_may_still_run(own_state: Path, elsewhere: str):
    left = leave_mark(own_state, **{elsewhere: "another"}, start="1")
    assert notes().of_ended() == []
    assert left.exists()

    os.utime(left, (1, 1))
    assert notes().of_ended() == []
    assert not left.exists()


class ForkedError(Exception):
    """Leads a child out of what its parent is in."""


@pytest.mark.filterwarnings("ignore:.*fork")  # libraries of other tests have threads
def test_a_forked_child_leaves_the_mark_of_its_parent(own_state: Path):
    try:
        with notes().around("loading", "plug", "/plug.so", SHA256):
            child = os.fork()
            if child == 0:
                raise ForkedError
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert len(files(own_state)) == 1
    except ForkedError:
        os._exit(0)

    assert files(own_state) == []


def test_threads_have_marks_of_their_own(own_state: Path):
    barrier = threading.Barrier(5)

    def load(number: int) -> None:
        with notes().around("loading", f"plug{number}", "/plug.so", SHA256):
            barrier.wait()
            barrier.wait()

    threads = [threading.Thread(target=load, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    barrier.wait()
    names = {json.loads(path.read_bytes())["plugin"] for path in files(own_state)}
    barrier.wait()
    for thread in threads:
        thread.join()

    assert names == {"plug0", "plug1", "plug2", "plug3"}
    assert files(own_state) == []


GARBAGE = {
    "empty": b"",
    "cut": b'{"plugin": "x", "pat',
    "no object": b"[]",
    "nested": b"[" * 10_000,
    "wrong types": b'{"plugin": 1}',
    "zeros": bytes(100),
    "long": b" " * 100_000,
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_garbage_names_nobody_and_goes(own_state: Path, content: bytes):
    """A young one may be a mark that is being written."""
    left = leave_mark(own_state)
    left.write_bytes(content)
    assert notes().of_ended() == []
    assert left.exists()

    os.utime(left, (1, 1))
    assert notes().of_ended() == []
    assert not left.exists()


@pytest.mark.parametrize("field", Note._fields)
@pytest.mark.parametrize("wrong", [None, [], {}, True, 1.5, "x", -1, 10**30])
def test_a_mark_may_say_anything(own_state: Path, field: str, wrong: Any):
    leave_mark(own_state, **{"boot": "another", field: wrong})

    for note in notes().of_ended():
        assert isinstance(note.incident().message, str)


def test_where_nothing_can_be_written_there_are_none(tmp_path: Path):
    (tmp_path / "file").touch()
    for environment in ({"HOME": "/nonexistent"}, {"XDG_STATE_HOME": str(tmp_path / "file")}):
        here = Notes.of_process(environment)
        with here.around("loading", "plug", "/plug.so", SHA256):
            pass
        assert here.of_ended() == []


def test_other_files_are_left_alone(own_state: Path):
    left = leave_mark(own_state, boot="another")
    other = left.with_name("other.txt")
    left.rename(other)

    assert notes().of_ended() == []
    assert other.exists()


@pytest.mark.parametrize("hidden", ["whether a process runs", "the list of marks"])
def test_a_shortage_is_told_and_makes_nobody_a_culprit(own_state: Path, monkeypatch, hidden: str):
    def no_descriptor_left(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with notes().around("loading", "plug", "/where/plug.so", SHA256):
        with monkeypatch.context() as patch:
            if hidden == "the list of marks":
                patch.setattr(os, "listdir", no_descriptor_left)
            else:
                patch.setattr(notes_module, "open", no_descriptor_left, raising=False)
            with pytest.raises(ShortageError):
                notes().of_ended()
        assert len(files(own_state)) == 1


@pytest.mark.parametrize("call", ["fchmod", "write", "unlink", "getppid"])
def test_an_interrupt_leaves_no_mark(own_state: Path, monkeypatch, call: str):
    """Of a trial that never began, or of one that came to its end."""
    real = getattr(os, call)

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if call == "unlink":
            monkeypatch.setattr(os, call, real)
            raise KeyboardInterrupt
        result = real(*arguments, **named)
        if call != "write" or b"/where/plug.so" in bytes(arguments[1]):
            monkeypatch.setattr(os, call, real)
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(os, call, interrupted)
    try:
        with notes().around("trying", "plug", "/where/plug.so", SHA256):
            os.getppid()  # stands for what is tried
        raise AssertionError("nothing was interrupted")
    except KeyboardInterrupt:
        pass

    assert files(own_state) == []


def test_an_interrupt_as_a_mark_was_just_written_leaves_none(own_state: Path, monkeypatch):
    create = PrivateDirectory.create

    def interrupted(*arguments: Any) -> bool:
        assert create(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(PrivateDirectory, "create", interrupted)
    with pytest.raises(KeyboardInterrupt), notes().around("loading", "p", "/plug.so", SHA256):
        raise AssertionError("nothing was interrupted")
    assert files(own_state) == []
