"""A process that ends while it loads something names the culprit to the next one."""

import errno
import json
import os
import signal
import time

import pytest

from modular_tf.loading.task import Task
from modular_tf.rules.shortage import ShortageError, raise_shortage
from modular_tf.service.storage import notes as notes_module
from modular_tf.service.storage.notes import Note
from modular_tf.service.storage.private_directory import PrivateDirectory
from tests.quarantine.conftest import SHA256, files, leave_mark, notes, take


def loading(plugin="plug", kind="loading"):
    return notes().around(kind, plugin, "/where/plug.so", SHA256)


@pytest.mark.parametrize(
    ("changes", "is_certain"),
    [
        ([{"kind": "trying"}], True),
        ([{"kind": "loading"}], False),
        ([{"kind": "trying", "boot": "another", "pid": 1}], False),  # a power cut, perhaps
        ([{"kind": "trying", "pid": 1}, {"kind": "trying", "pid": 2, "path": "/b.so"}], False),
    ],
    ids=["trial", "load", "power cut", "one of two"],
)
def test_a_trial_that_nobody_outlived_names_the_culprit(own_state, changes, is_certain):
    digests = [f"{number}" * 64 for number, _ in enumerate(changes)]
    for sha256, change in zip(digests, changes, strict=True):
        leave_mark(own_state, **{"start": "1", "sha256": sha256, **change})
    store = take()

    assert [entry.sha256 for entry in store.entries()] == (digests if is_certain else [])
    assert all((store.suspicion(sha256) is None) is is_certain for sha256 in digests)


@pytest.mark.parametrize("when", ["before", "just now"])
def test_a_trial_whose_watcher_outlived_the_application_makes_a_suspect(
    own_state, monkeypatch, when
):
    """Those that waited for the application look at its marks before its watcher does."""
    mark = leave_mark(own_state, kind="trying", start="1")
    task = Task("plug", "/where/plug.so", mark=str(mark))
    if when == "before":
        task.mark_watcher_survived()
    else:
        monkeypatch.setattr(notes_module, "sleep", lambda _: task.mark_watcher_survived())

    store = take()

    assert store.entries() == []
    assert store.suspicion(SHA256) is not None
    assert files(own_state) == []


def test_what_came_back_or_raised_leaves_nothing(own_state):
    with loading(), loading("other"):
        names = {json.loads(path.read_bytes())["plugin"] for path in files(own_state)}
        assert names == {"plug", "other"}
        assert notes().of_ended() == []  # a running process is no culprit
    assert files(own_state) == notes().of_ended() == []

    with pytest.raises(ZeroDivisionError), loading():
        _ = 1 // 0
    assert files(own_state) == []


# -- how processes end -------------------------------------------------------------------------

LOADING = """
    import os, signal, sys
    from modular_tf.service.storage.notes import Notes
    with Notes.of_process().around("loading", "plug", "/where/plug.so", sys.argv[1]):
        {deed}
"""


@pytest.mark.parametrize(
    ("deed", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("os._exit(7)", 7),
        ("sys.exit(3)", 3),  # in order
    ],
)
def test_what_ended_the_process_is_named(run_forked, own_state, deed, status):
    before = time.time()
    run_forked(LOADING.format(deed=deed), SHA256, status=status)
    for note in notes().of_ended():
        assert note[:4] == ("plug", "/where/plug.so", SHA256, "loading")
        assert note.pid != os.getpid()
        assert before <= note.time <= time.time()
        incident = note.incident()
        assert incident.violation.rule_id == "LD-070"
        assert "power cut" in incident.violation.message  # it may have been something else
        assert "retry" in incident.violation.rule.remedy

    assert len(notes().of_ended()) == (0 if status == 3 else 1)
    take()
    assert files(own_state) == notes().of_ended() == []


def test_a_process_that_nobody_waited_for_is_gone():
    child = os.fork()
    if child == 0:
        with loading():
            os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    try:
        assert [note.pid for note in notes().of_ended()] == [child]
    finally:
        os.waitpid(child, 0)


@pytest.mark.parametrize("changes", [{"start": "1"}, {"boot": "another"}])
@pytest.mark.parametrize("age", ["new", "of the future"])
def test_a_process_of_another_start_is_gone(own_state, changes, age):
    """Of the machine or of a later process of that number; a clock may have been set back."""
    left = leave_mark(own_state, **changes)
    if age == "of the future":
        os.utime(left, (2**32, 2**32))

    assert [note.pid for note in notes().of_ended()] == [os.getpid()]


class ForkedError(Exception):
    """Leads a child out of what its parent is in."""


def test_a_forked_child_leaves_the_mark_of_its_parent(own_state):
    try:
        with loading():
            child = os.fork()
            if child == 0:
                raise ForkedError
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert len(files(own_state)) == 1
    except ForkedError:
        os._exit(0)

    assert files(own_state) == []


# -- what is read ------------------------------------------------------------------------------

GARBAGE = {
    "empty": b"",
    "cut": b'{"plugin": "x", "pat',
    "no object": b"[]",
    "nested": b"[" * 10_000,
    "wrong types": b'{"plugin": 1}',
    "zeros": bytes(100),
    "long": b" " * 100_000,
}


@pytest.mark.parametrize("written_at", [1, 2**32], ids=["past", "future"])
@pytest.mark.parametrize("name", [*GARBAGE, "machine", "namespace"])
def test_what_may_be_of_a_running_process_names_nobody_and_goes_in_the_end(
    own_state, name, written_at
):
    """Garbage may be a mark that is being written; a process elsewhere may still run.

    What was written in the future, before a clock was set back, goes too.
    """
    left = leave_mark(own_state, start="1", **({} if name in GARBAGE else {name: "another"}))
    if name in GARBAGE:
        left.write_bytes(GARBAGE[name])
    assert notes().of_ended() == []
    assert left.exists()

    os.utime(left, (written_at, written_at))
    assert notes().of_ended() == []
    assert not left.exists()


def test_a_mark_may_say_anything(own_state):
    for field in Note._fields:
        for wrong in (None, [], {}, True, 1.5, "x", -1, 10**30):
            leave_mark(own_state, **{"boot": "another", field: wrong})

    for note in notes().of_ended():
        assert isinstance(note.incident().message, str)


def test_where_nothing_can_be_written_there_are_none(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/nonexistent")
    with loading():
        pass
    assert notes().of_ended() == []


def test_other_files_stay(own_state):
    other = leave_mark(own_state, boot="another").rename(own_state / "notes" / "other.txt")
    assert notes().of_ended() == []
    assert other.exists()


@pytest.mark.parametrize(
    ("module", "name"), [(os, "listdir"), (PrivateDirectory, "read"), (notes_module, "open")]
)
def test_a_shortage_is_an_error_and_makes_nobody_a_culprit(own_state, monkeypatch, module, name):
    """Whether it hides the list of marks, one of them, or whether a process runs."""

    def no_descriptor_left(*_, **__):
        raise_shortage(OSError(errno.EMFILE, "Too many open files"))

    with loading():
        with monkeypatch.context() as patch:
            patch.setattr(module, name, no_descriptor_left, raising=False)
            with pytest.raises(ShortageError):
                notes().of_ended()
        assert len(files(own_state)) == 1


@pytest.mark.parametrize(
    ("module", "call"),
    [(os, "fchmod"), (os, "write"), (os, "unlink"), (os, "getppid"), (PrivateDirectory, "create")],
)
def test_an_interrupt_leaves_no_mark(own_state, monkeypatch, module, call):
    """Of a trial that never began, or of one that came to its end."""
    real = getattr(module, call)

    def interrupted(*arguments, **named):
        if call == "unlink":
            monkeypatch.setattr(module, call, real)
            raise KeyboardInterrupt
        result = real(*arguments, **named)
        if call != "write" or b"/where/plug.so" in bytes(arguments[1]):
            monkeypatch.setattr(module, call, real)
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(module, call, interrupted)
    with pytest.raises(KeyboardInterrupt), loading(kind="trying"):
        os.getppid()  # stands for what is tried

    assert files(own_state) == []
