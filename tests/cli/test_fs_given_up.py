"""Copies that come to their end while an interrupt gives them up."""

import threading
import time

import pytest

from modular_tf.filesystem.jobs import FileWatch, Totals
from modular_tf.filesystem.trees import Copying, Item, move_all

CONTENT = b"content " * 100_000  # more than a pipe holds


def ends_soon(work):
    """Wait until no call is under way; return if it came to that."""
    end = time.monotonic() + 30
    while work.is_working and time.monotonic() < end:
        time.sleep(0.005)
    return not work.is_working


@pytest.fixture
def source(object_store):
    """A file in the store."""
    location = object_store.location("mem://h/source")
    with location.filesystem.new_writable_file(location.uri) as file:
        file.append(CONTENT)
    return location


@pytest.fixture
def interrupted(object_store, monkeypatch):
    """Work that is interrupted as soon as an event is set."""

    def work(event):
        found = object_store.work()

        def interrupt():
            if event.is_set():
                raise KeyboardInterrupt

        monkeypatch.setattr(found._crew, "_while_waiting", interrupt)
        return found

    return work


@pytest.fixture
def stored_late(monkeypatch):
    """Hold copies that store their file: an event that says so, and one that lets them go on."""
    stores, may_store = threading.Event(), threading.Event()
    storing = FileWatch.storing

    def wait(watch):
        storing(watch)
        stores.set()
        may_store.wait(30)

    monkeypatch.setattr(FileWatch, "storing", wait)
    return stores, may_store


def test_a_move_that_ends_while_it_is_given_up_loses_nothing(
    object_store, source, interrupted, stored_late, monkeypatch, tmp_path
):
    target = object_store.location(tmp_path / "target")
    stores, may_store = stored_late
    work, under_way = interrupted(stores), Totals.under_way

    def the_move_ends_behind_it(totals):
        found = under_way(totals)
        may_store.set()
        assert ends_soon(work)
        return found

    monkeypatch.setattr(Totals, "under_way", the_move_ends_behind_it)
    with pytest.raises(KeyboardInterrupt):
        move_all(work, [Item(source, target)], print)

    assert source.filesystem.read_file(source.uri) == CONTENT
    assert not (tmp_path / "target").exists()


def test_a_copy_that_is_given_up_leaves_nothing_on_the_disk_of_a_client(
    object_store, source, interrupted, stored_late, monkeypatch, tmp_path
):
    local = pytest.importorskip("fsspec").filesystem("file")
    object_store.service.register_filesystem("disk", local)
    (tmp_path / "target").write_text("as it was")
    target = object_store.location(f"disk://{tmp_path}/target")
    stores, may_store = stored_late
    work = interrupted(stores)
    monkeypatch.setattr("modular_tf.cli.fs.work.leave", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        Copying(work, print).run([Item(source, target)])

    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    may_store.set()
    assert ends_soon(work)
    assert (tmp_path / "target").read_text() == "as it was"
