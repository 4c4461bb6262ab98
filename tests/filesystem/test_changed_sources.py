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
    """Calls a function after each piece, and notes lengths."""

    def __init__(self, after_piece=lambda: None):
        self.after_piece = after_piece
        self.lengths = []

    def begun(self, length):
        self.lengths.append(length)

    def advance(self, n_bytes):
        self.after_piece()


class Found:
    """An object store whose file was found, and what its copies do with it.

    Attributes:
        while_read: Is called in the middle of a copy.
    """

    def __init__(self, *, is_found_now=False):
        self.store, self.target_store = MemoryStore(), MemoryStore()
        filesystem = filesystem_of(self.store)
        self.opened = filesystem.new_random_access_file
        self.source = as_object_store(filesystem)
        self.store.files["/source"] = OLD
        self.reads = []
        self.while_read = lambda: None
        self.found = self.store.statistics_of("/source")
        self.is_found_now = is_found_now
        self.source.open_to_copy = self.open_to_copy

    def open_to_copy(self, uri):
        file = self.opened(uri)
        readinto = file.readinto

        def noted(offset, buffer):
            self.reads.append(offset)
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


def test_a_copy_of_two_versions_fails_and_leaves_nothing(store):
    source, target_store = as_object_store(filesystem_of(store)), MemoryStore()
    store.files["/source"] = OLD
    watch = Following(lambda: store.files.update({"/source": NEW}))
    places = source, "mem://h/source", filesystem_of(target_store), "mem://h/target"
    with pytest.raises(errors.AbortedError, match=CHANGED):
        copy_through(*places, watch, BLOCK, is_landing=True)

    assert target_store.files == {}


def test_threads_that_read_ahead_wait_for_no_buffer(monkeypatch):
    """Two may see the last free one: who waits for it may read what the target waits for."""

    class Unawaited(SimpleQueue):
        def get(self, block=True, timeout=None):
            assert not block or timeout is not None, "waits for ever"
            return super().get(block, timeout)

    monkeypatch.setattr(copying, "SimpleQueue", Unawaited)
    found, blocks = Found(), []
    found.source.open_to_copy = found.source.new_random_access_file
    read_all(
        Location(found.source, "mem://h/source"), lambda one: blocks.append(bytes(one)), block=999
    )

    assert b"".join(blocks) == OLD


@pytest.mark.parametrize(("length", "looks"), [(BLOCK, 1), (BLOCK + 1, 3)])
def test_a_short_file_is_not_looked_at_again(length, looks):
    found = Found()
    found.store.files["/source"] = bytes(length)
    found.source.open_to_copy = found.source.new_random_access_file

    assert found.copy() == bytes(length)
    assert found.looks == looks


@pytest.mark.parametrize(("is_found_now", "looks"), [(True, 1), (False, 2)])
def test_a_look_up_of_the_opening_is_not_repeated(is_found_now, looks):
    found = Found(is_found_now=is_found_now)

    assert found.copy() == OLD
    assert found.looks == looks
    assert sorted(found.reads) == list(range(0, len(OLD), BLOCK))


def test_a_file_that_was_replaced_since_it_was_found_is_copied_as_it_is():
    found, watch = Found(), Following()
    found.store.files["/source"] = NEW

    assert found.copy() == NEW
    read_all(Location(found.source, "mem://h/source"), [].append, watch, BLOCK)
    assert watch.lengths == [len(NEW)]


def test_a_file_that_was_deleted_since_it_was_found_is_not_found():
    found = Found()
    opened = found.opened("mem://h/source")
    found.opened = lambda _: opened
    del found.store.files["/source"]
    with pytest.raises(errors.NotFoundError):
        found.copy()

    assert found.target_store.files == {}


@pytest.mark.parametrize("is_found_now", [True, False])
def test_blocks_of_two_versions_are_no_copy_however_they_were_found(is_found_now):
    found = Found(is_found_now=is_found_now)
    statistics_of, looked = found.store.statistics_of, threading.Event()

    def look(path):
        statistics = statistics_of(path)
        looked.set()
        return statistics

    def change():
        assert is_found_now or looked.wait(60)
        found.store.files["/source"] = NEW

    found.store.statistics_of, found.while_read = look, change
    with pytest.raises(errors.AbortedError, match=CHANGED):
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


def test_what_is_rotated_or_grows_is_copied_as_it_was_opened(service, ram, tmp_path):
    source = tmp_path / "log"
    source.write_bytes(bytes(10 * BLOCK))
    watch = Following(lambda: source.unlink(missing_ok=True))
    places = service.filesystem("file"), f"file://{source}", ram, "ram://rotated"
    copy_through(*places, watch, BLOCK, is_landing=True)

    assert ram.get_file_size("ram://rotated") == 10 * BLOCK


def test_a_file_of_the_system_that_is_shorter_than_it_says_is_copied(service, ram):
    source = Path("/sys/devices/system/cpu/online")
    content = source.read_bytes()
    assert len(content) < source.stat().st_size
    copy_through(service.filesystem("file"), f"file://{source}", ram, "ram://online")

    assert ram.read_file("ram://online") == content
