"""Watches where a thread cannot be started, or its start is interrupted."""

from __future__ import annotations

import threading

import pytest

from modular_tf.errors import ResourceExhaustedError
from modular_tf.service.reload.watching.inotify_hints import InotifyHints
from modular_tf.service.reload.watching.snapshot import take_snapshot
from modular_tf.service.reload.watching.watch_points import WatchPoints
from modular_tf.service.reload.watching.watcher import Watcher, WatcherSettings
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import Interrupt
from tests.fixtures.thread_starts import FAILURES
from tests.watching.conftest import PATIENCE_S


def watchers():
    return [thread for thread in threading.enumerate() if thread.name == "modular_tf-watch"]


@pytest.mark.parametrize("how", FAILURES)
def test_a_watch_that_was_refused_leaves_nothing_and_the_next_one_watches(
    how, thread_starts, folder, plugin_service
):
    thread_starts.fail(how, "modular_tf-watch")
    with pytest.raises((ResourceExhaustedError, Interrupt)):
        plugin_service.watch()
    for thread in watchers():
        thread.join(PATIENCE_S)
    assert watchers() == []
    assert plugin_service._hot_reload._watches == set()

    with plugin_service.watch() as watch:
        assert len(watchers()) == 1
        assert not watch.closed
    plugin_service.close()


@pytest.fixture
def plugin_service(folder):
    with PluginService(plugin_dirs=[folder], bundled=False) as service:
        yield service


@pytest.mark.parametrize("how", ["no thread left", "no memory left"])
def test_a_change_that_no_thread_could_deal_with_is_brought_again(
    how, thread_starts, folder, library, plugin_service
):
    told, done = [], threading.Event()

    def note(change):
        told.append(change.kind.value)
        done.set()

    thread_starts.fail(how, "modular_tf-change")
    with plugin_service.watch(note):
        (folder / "libx.so").write_bytes(library)
        assert done.wait(PATIENCE_S)

    assert thread_starts.has_failed
    assert told == ["appeared"]


@pytest.mark.parametrize("method", ["start", "schedule"])
def test_without_threads_for_hints_places_are_polled(method, folder, library, monkeypatch):
    inotify_hints = pytest.importorskip("modular_tf.service.reload.watching.inotify_hints")
    told, done = [], threading.Event()

    def deliver(changes):
        told.extend(change.path for change in changes)
        done.set()

    def fail(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(inotify_hints.InotifyObserver, method, fail)
    places = [str(folder)]
    watcher = Watcher(lambda: places, take_snapshot(places), deliver, WatcherSettings())
    watcher.start()
    assert watcher.is_polling
    (folder / "libx.so").write_bytes(library)

    assert done.wait(PATIENCE_S)
    watcher.close()
    assert told == [str(folder / "libx.so")]


def test_hints_that_are_closed_leave_no_thread(tmp_path):
    hints = InotifyHints(lambda: None)
    hints.follow(WatchPoints([str(tmp_path)]))
    before = set(threading.enumerate())
    hints.close()

    ended = before - set(threading.enumerate())
    assert hints._observer in ended
