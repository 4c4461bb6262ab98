"""Watches where a thread cannot be started, or its start is interrupted."""

from __future__ import annotations

import threading

import pytest

from modular_tf.errors import ResourceExhaustedError
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
