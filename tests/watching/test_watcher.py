"""A watcher goes on whatever happens to it, and leaves nothing behind."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from modular_tf.errors import ResourceExhaustedError
from modular_tf.rules.shortage import ShortageError
from modular_tf.service.reload import watching
from modular_tf.service.reload.watching import Delays
from tests.fixtures.interrupts import Interrupt
from tests.fixtures.thread_starts import FAILURES
from tests.watching.conftest import PATIENCE_S, Report

SOON = Delays(settled_s=0.05)


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_stays_behind(watched, folder, library):
    def once():
        watching = watched(folder, delays=SOON)
        (folder / "libx.so").write_bytes(library)
        watching.reports(Report("libx.so", "appeared", library))
        (folder / "libx.so").unlink()
        watching.reports(Report("libx.so", "removed"))
        watching.poller.close()
        watching.poller.close()

    once()
    before = descriptors(), threading.active_count()
    once()

    assert (descriptors(), threading.active_count()) == before


def test_a_change_is_followed_when_a_shortage_is_over(monkeypatch, folder, library):
    """However long it lasts: nothing else would report the file again."""
    monkeypatch.setattr(watching, "_PAUSES_S", (0.0, 0.0))
    followed, attempts = threading.Event(), []

    def follow(changes):
        attempts.append(changes)
        if len(attempts) < 10:
            raise ShortageError("no descriptor left")
        followed.set()
        return []

    watch = watching.Watch(
        lambda: [str(folder)], {}, follow, 0.05, on_change=None, when_ended=lambda _: None
    )
    watch.start()
    with watch:
        (folder / "libnew.so").write_bytes(library)
        assert followed.wait(PATIENCE_S)
    assert len(attempts) == 10


def test_a_folder_that_cannot_be_read_now_is_not_empty(monkeypatch, watched, folder, library):
    """Else each of its plugins would be reported as removed."""
    (folder / "libold.so").write_bytes(library)
    watching = watched(folder, delays=SOON)
    read, listdir = [], os.listdir

    def no_descriptor_left(path):
        read.append(path)
        if len(read) < 5:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", no_descriptor_left)
    (folder / "libnew.so").write_bytes(library)

    watching.reports(Report("libnew.so", "appeared", library))


# ---- Threads that cannot be started, and interrupts ----


def watchers():
    return [thread for thread in threading.enumerate() if thread.name == "modular_tf-watch"]


@pytest.mark.parametrize("how", FAILURES)
def test_a_watch_that_was_refused_leaves_nothing_and_the_next_one_watches(
    how, thread_starts, folder, service
):
    thread_starts.fail(how, "modular_tf-watch")
    with pytest.raises((ResourceExhaustedError, Interrupt)):
        service.watch()
    for thread in watchers():
        thread.join(PATIENCE_S)
    assert watchers() == []
    assert service._hot_reload._watches == set()

    with service.watch() as watch:
        assert len(watchers()) == 1
        assert not watch.closed
    service.close()


def test_a_change_that_no_thread_could_deal_with_is_brought_again(
    thread_starts, folder, library, service
):
    told, done = [], threading.Event()
    thread_starts.fail("no thread left", "modular_tf-change")
    with service.watch(lambda change: (told.append(change.kind.value), done.set())):
        (folder / "libx.so").write_bytes(library)
        assert done.wait(PATIENCE_S)

    assert thread_starts.has_failed
    assert told == ["appeared"]
