"""A file of a store that changes while it is copied in pieces: no target joins two versions."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from queue import SimpleQueue

import pytest

from modular_tf import errors
from modular_tf.filesystem import copying
from modular_tf.filesystem.copying import CopyWatch, copy_through, read_all
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.store_files import PiecewiseReader
from tests.filesystem.memory_store import MemoryStore, as_object_store, filesystem_of

OLD, NEW = b"old" * 200_000, b"new" * 200_001
BLOCK = 1 << 17
CHANGED = "it changed while it was read; try again"


class Following(CopyWatch):
    """Calls a function after each piece."""

    def __init__(self, after_piece):
        self.after_piece = after_piece

    def advance(self, n_bytes):
        self.after_piece()


class Found:
    """An object store with a file that was found, by the look-up of its opening or an earlier one.

    Attributes:
        while_read: Is called in the middle of a copy.
    """

    def __init__(self, *, is_found_now=False):
        self.store, self.target_store = MemoryStore(), MemoryStore()
        self.store.files["/source"] = OLD
        self.found = self.store.statistics_of("/source")
        self.is_found_now = is_found_now
        self.while_read = lambda: None
        filesystem = filesystem_of(self.store)
        self.opened = filesystem.new_random_access_file
        self.source = as_object_store(filesystem)
        self.source.open_to_copy = self.open_to_copy

    def open_to_copy(self, uri):
        file = self.opened(uri)
        readinto = file.readinto

        def noted(offset, buffer):
            if offset == 2 * BLOCK:
                self.while_read()
            return readinto(offset, buffer)

        file.readinto = noted
        reader = PiecewiseReader(file, None, BLOCK, length=self.found.length)
        reader.found, reader.is_found_now = self.found, self.is_found_now
        return reader

    def copy(self):
        self.store.calls.clear()
        target = filesystem_of(self.target_store)
        target.plugin = "other"
        places = self.source, "mem://h/source", target, "mem://h/t"
        copy_through(*places, block=BLOCK, is_landing=True)
        return self.target_store.files["/t"]

    @property
    def looks(self):
        return sum(operation == "stat" for operation, _ in self.store.calls)


def test_threads_that_read_ahead_wait_for_no_buffer(store, monkeypatch):
    """Two may see the last free one: who waits for it may read what the target waits for."""

    class Unawaited(SimpleQueue):
        def get(self, block=True, timeout=None):
            assert not block or timeout is not None, "waits for ever"
            return super().get(block, timeout)

    monkeypatch.setattr(copying, "SimpleQueue", Unawaited)
    source = as_object_store(filesystem_of(store))
    store.files["/source"], blocks = OLD, []
    read_all(Location(source, "mem://h/source"), lambda one: blocks.append(bytes(one)), block=999)
    assert b"".join(blocks) == OLD


@pytest.mark.parametrize(("is_found_now", "looks"), [(True, 1), (False, 2)])
def test_blocks_of_two_versions_are_no_copy_however_they_were_found(is_found_now, looks):
    found = Found(is_found_now=is_found_now)
    assert found.copy() == OLD
    assert found.looks == looks
    statistics_of, looked = found.store.statistics_of, threading.Event()

    def look(path):
        statistics = statistics_of(path)
        looked.set()
        return statistics

    def change():
        assert is_found_now or looked.wait(60)
        found.store.files["/source"] = NEW

    found.store.statistics_of, found.while_read = look, change
    found.target_store.files.clear()
    with pytest.raises(errors.AbortedError, match=CHANGED):
        found.copy()

    assert found.target_store.files == {}


def test_what_was_replaced_or_deleted_since_it_was_found_is_copied_as_it_is_or_not_found():
    found = Found()
    found.store.files["/source"] = NEW
    assert found.copy() == NEW
    opened = found.opened("mem://h/source")
    found.opened = lambda _: opened
    del found.store.files["/source"], found.target_store.files["/t"]
    with pytest.raises(errors.NotFoundError):
        found.copy()

    assert found.target_store.files == {}


# ---- files of this machine ----


@pytest.fixture
def ram(service):
    return service.filesystem("ram")


@pytest.mark.parametrize(
    ("length", "old"), [(10 * BLOCK, None), (10 * BLOCK - 1, b"old"), (BLOCK + 1, b"old")]
)
def test_a_file_of_this_machine_that_shrinks_replaces_nothing(length, old, service, ram, tmp_path):
    source, target = tmp_path / "log", f"ram://shrinks{length}{old}"
    if old is not None:
        with ram.new_writable_file(target) as file:
            file.append(old)
    source.write_bytes(bytes(length))
    watch = Following(lambda: os.truncate(source, 10))
    places = service.filesystem("file"), f"file://{source}", ram, target
    with pytest.raises(errors.AbortedError, match=CHANGED):
        copy_through(*places, watch, BLOCK, is_landing=True)
    assert (ram.read_file(target) if ram.path_exists(target) else None) == old


def test_a_file_of_the_system_that_is_shorter_than_it_says_is_copied(service, ram):
    source = Path("/sys/devices/system/cpu/online")
    content = source.read_bytes()
    assert len(content) < source.stat().st_size
    copy_through(service.filesystem("file"), f"file://{source}", ram, "ram://online")

    assert ram.read_file("ram://online") == content
