"""A file of a store that changes while it is copied in pieces: no target joins two versions."""

from __future__ import annotations

import io

import pytest

from modular_tf import errors
from modular_tf.filesystem.copy_watch import CopyWatch
from modular_tf.filesystem.copying import copy_through
from tests.filesystem.memory_store import MemoryStore, filesystem_of
from tests.fsspec.far_store import TOP, FarStore, serve

OLD, NEW = b"old" * 200_000, b"new" * 200_001
BLOCK = 1 << 17


class Replacing(CopyWatch):
    """Replaces a file once, when the first piece of its copy was written."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    def advance(self, n_bytes: int) -> None:
        self.store.files["/source"] = NEW


def as_object_store(filesystem):
    """Have a filesystem follow object stores, whose files know their length."""
    opened = filesystem.new_random_access_file

    def with_known_length(uri):
        file, length = opened(uri), filesystem.stat(uri).length
        file.known_length = lambda: length
        return file

    filesystem.is_object_store = True
    filesystem.new_random_access_file = with_known_length
    return filesystem


def test_a_copy_of_two_versions_fails_and_leaves_nothing():
    store = MemoryStore()
    source, target_store = as_object_store(filesystem_of(store)), MemoryStore()
    store.files["/source"] = OLD
    target = filesystem_of(target_store)

    with pytest.raises(errors.AbortedError, match="it changed while it was read; try again"):
        copy_through(
            source, "mem://h/source", target, "mem://h/target", Replacing(store), BLOCK,
            is_landing=True,
        )  # fmt: skip

    assert target_store.files == {}


@pytest.mark.parametrize(("length", "looks"), [(BLOCK, 1), (BLOCK + 1, 3)])
def test_a_short_file_is_not_looked_at_again(length, looks):
    store = MemoryStore()
    source, target_store = as_object_store(filesystem_of(store)), MemoryStore()
    store.files["/source"] = bytes(length)
    target = filesystem_of(target_store)
    target.plugin = "other"  # the files of one plugin are compared before
    copy_through(source, "mem://h/source", target, "mem://h/t", is_landing=True)

    assert target_store.files["/t"] == bytes(length)
    assert sum(operation == "stat" for operation, *_ in store.calls) == looks


@pytest.fixture
def far():
    store = FarStore()
    store.files["/file"] = OLD * 20  # more than a piece
    service, fs = serve(store)
    as_object_store(fs.filesystem)
    with service:
        yield store, fs


@pytest.mark.parametrize("kind", ["path", "open file"])
def test_a_download_of_two_versions_fails(far, tmp_path, kind):
    target = tmp_path / "target"
    places = {"path": {"lpath": target}, "open file": {"outfile": io.BytesIO()}}
    store, fs = far
    reads = []

    def change(_):
        reads.append(1)
        if len(reads) == 2:
            store.files["/file"] = NEW * 20

    store.hooks["read"] = change
    with pytest.raises(errors.AbortedError, match="it changed while it was read"):
        fs.get_file(f"{TOP}/file", **places[kind])

    assert len(reads) > 1
    assert not target.exists()


class Trickle(io.RawIOBase):
    """A raw file that takes a part of what it is given, and nothing at all at last."""

    def __init__(self, room: float = float("inf")) -> None:
        self.taken = bytearray()
        self.room = room

    def writable(self) -> bool:
        return True

    def write(self, data) -> int | None:
        if len(self.taken) >= self.room:
            return None
        self.taken += data[:100_001]
        return min(len(data), 100_001)


def test_a_file_that_takes_a_part_at_a_time_gets_all(far):
    store, fs = far
    target = Trickle()
    fs.get_file(f"{TOP}/file", outfile=target)

    assert target.taken == store.files["/file"]


def test_a_file_that_takes_no_more_is_an_error(far):
    with pytest.raises(BlockingIOError, match="takes no more bytes"):
        far[1].get_file(f"{TOP}/file", outfile=Trickle(room=300_000))
