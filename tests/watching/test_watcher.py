"""A watcher goes on whatever happens to it, and leaves nothing behind."""

from __future__ import annotations

import errno
import logging
import sys
import threading
from pathlib import Path

import pytest

from modular_tf.service.reload.watching.snapshot import take_snapshot
from modular_tf.service.reload.watching.watcher import Watcher, WatcherSettings
from tests.watching.conftest import PATIENCE_S, Told


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def start(folder):
    """Start a watcher by hand; it ends with the test."""
    made = []

    def make(deliver, **settings):
        places = [str(folder)]
        known = take_snapshot(places)
        made.append(Watcher(lambda: places, known, deliver, WatcherSettings(**settings)))
        made[-1].start()
        return made[-1]

    yield make
    for watcher in made:
        watcher.close()


def test_a_receiver_that_raises_is_told_again(start, folder, library, caplog):
    told, done = [], threading.Event()

    def deliver(changes):
        told.extend((change.path, change.kind.value) for change in changes)
        if len(told) == 1:
            raise RuntimeError("not now")
        done.set()

    with caplog.at_level(logging.WARNING, "modular_tf"):
        start(deliver)
        (folder / "libx.so").write_bytes(library)

        assert done.wait(PATIENCE_S)
    assert told == [(str(folder / "libx.so"), "appeared")] * 2
    assert any("not now" in str(record.msg) for record in caplog.records)


def test_lost_events_lose_no_change(start, folder, library, monkeypatch):
    inotify_hints = pytest.importorskip("modular_tf.service.reload.watching.inotify_hints")
    monkeypatch.setattr(inotify_hints.InotifyHints, "dispatch", lambda _self, _event: None)
    told, done = [], threading.Event()

    watcher = start(lambda changes: (told.extend(changes), done.set()), polling=False)
    (folder / "libx.so").write_bytes(library)

    assert done.wait(PATIENCE_S)
    assert [change.path for change in told] == [str(folder / "libx.so")]
    assert not watcher.is_polling


@pytest.mark.parametrize("fault", ["no watches", "no watchdog"])
def test_without_events_it_polls_and_says_so(start, folder, library, monkeypatch, caplog, fault):
    if fault == "no watchdog":
        monkeypatch.setitem(sys.modules, "modular_tf.service.reload.watching.inotify_hints", None)
    else:
        from modular_tf.service.reload.watching.inotify_hints import InotifyObserver

        def refuse(*_args, **_options):
            raise OSError(errno.ENOSPC, "inotify watch limit reached")

        monkeypatch.setattr(InotifyObserver, "schedule", refuse)
    done = threading.Event()

    with caplog.at_level(logging.WARNING, "modular_tf"):
        watcher = start(lambda _changes: done.set())
        (folder / "libx.so").write_bytes(library)

        assert done.wait(PATIENCE_S)
    assert watcher.is_polling
    assert any("watch.polling" in str(record.msg) for record in caplog.records)


def test_the_kernels_hints_are_used_where_they_can_be(start):
    stepped = threading.Event()

    watcher = start(lambda _changes: stepped.set())
    stepped.wait(0.3)

    assert not watcher.is_polling


def test_it_can_be_closed_by_its_receiver(start, folder, library):
    closed = threading.Event()
    watcher = start(lambda _changes: (watcher.close(), closed.set()))

    (folder / "libx.so").write_bytes(library)

    assert closed.wait(PATIENCE_S)


def test_nothing_stays_behind(watched, folder, library):
    def once():
        watching = watched(folder)
        (folder / "libx.so").write_bytes(library)
        watching.until(Told("libx.so", "appeared", library))
        (folder / "libx.so").unlink()
        watching.until(Told("libx.so", "removed", None))
        watching.watcher.close()
        watching.watcher.close()

    once()
    before = descriptors(), threading.active_count()
    for _ in range(3):
        once()

    assert (descriptors(), threading.active_count()) == before
