"""A file of a store that changes while it is copied in pieces: no target joins two versions."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import fsspec
import pytest

from modular_tf import errors
from modular_tf.filesystem.copying import CopyWatch, copy_through, read_all
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.store_files import PiecewiseReader
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


TWO_THREADS_SEE_ONE_BUFFER = """
    import itertools, threading
    from queue import SimpleQueue
    from modular_tf.filesystem import copying
    from modular_tf.filesystem.location import Location
    from tests.filesystem.memory_store import MemoryStore, filesystem_of

    both, returned, taken = threading.Barrier(2), threading.Event(), threading.Event()
    asked = itertools.count()
    is_second = threading.local()

    class Late(SimpleQueue):
        def empty(self):
            number = next(asked)
            if number in (1, 2):
                returned.wait(10)
            is_empty = super().empty()
            if number in (1, 2):
                is_second.value = number == 1
                both.wait(10)
            return is_empty

        def get(self):
            if getattr(is_second, "value", False):
                taken.wait(10)
            buffer = super().get()
            taken.set()
            return buffer

        def put(self, buffer):
            super().put(buffer)
            returned.set()

    copying.SimpleQueue = Late
    store = MemoryStore()
    store.files["/f"] = bytes(range(256))
    fs = filesystem_of(store)
    opened = fs.new_random_access_file

    def with_known_length(uri):
        file = opened(uri)
        file.known_length = lambda: 256
        return file

    fs.new_random_access_file = with_known_length
    blocks = []
    copying.read_all(Location(fs, "mem://h/f"), lambda block: blocks.append(bytes(block)), block=1)
    print("whole" if b"".join(blocks) == store.files["/f"] else "torn")
    """


def test_two_threads_that_read_ahead_never_wait_for_one_buffer(run_python):
    """Both may see the last free buffer: who waits for it may read what the target waits for."""
    ended = run_python(TWO_THREADS_SEE_ONE_BUFFER, timeout=20)

    assert ended.stdout == "whole\n", ended.stderr


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


class Found:
    """An object store whose file was found, and what its copies do with it."""

    def __init__(self, *, is_found_now: bool = False) -> None:
        self.store, self.target_store = MemoryStore(), MemoryStore()
        filesystem = filesystem_of(self.store)
        self.opened = filesystem.new_random_access_file
        self.source = as_object_store(filesystem)
        self.store.files["/source"] = OLD
        self.reads: list[int] = []
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
        copy_through(self.source, "mem://h/source", target, "mem://h/t", block=BLOCK,
                     is_landing=True)  # fmt: skip
        return self.target_store.files["/t"]

    @property
    def looks(self):
        return sum(operation == "stat" for operation, _ in self.store.calls)


@pytest.mark.parametrize(("is_found_now", "looks"), [(True, 1), (False, 2)])
def test_a_look_up_of_the_opening_is_not_repeated(is_found_now, looks):
    found = Found(is_found_now=is_found_now)

    assert found.copy() == OLD
    assert found.looks == looks
    assert sorted(found.reads) == list(range(0, len(OLD), BLOCK))


def test_a_file_that_was_replaced_since_it_was_found_is_copied_as_it_is():
    found, begun = Found(), []
    found.store.files["/source"] = NEW

    class Lengths(CopyWatch):
        def begun(self, length):
            begun.append(length)

    assert found.copy() == NEW
    blocks = []
    read_all(Location(found.source, "mem://h/source"), blocks.append, Lengths(), BLOCK)
    assert begun == [len(NEW)]


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
        assert is_found_now or looked.wait(10)
        found.store.files["/source"] = NEW

    found.store.statistics_of, found.while_read = look, change
    with pytest.raises(errors.AbortedError, match="it changed while it was read; try again"):
        found.copy()

    assert found.target_store.files == {}


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


class Shrinking(CopyWatch):
    """Takes the end of a file away when the first piece of its copy was written."""

    def __init__(self, path):
        self.path = path

    def advance(self, n_bytes):
        os.truncate(self.path, 10)


@pytest.mark.parametrize("length", [10 * BLOCK, 10 * BLOCK - 1, BLOCK + 1])
def test_a_file_of_this_machine_that_shrinks_replaces_nothing(length, service, tmp_path):
    source, ram = tmp_path / "log", service.filesystem("ram")
    with ram.new_writable_file("ram://target") as file:
        file.append(b"as it was")
    for target_fs, target in ((ram, "ram://target"), (ram, "ram://new")):
        source.write_bytes(bytes(length))
        with pytest.raises(errors.AbortedError, match="it changed while it was read; try again"):
            copy_through(
                service.filesystem("file"), f"file://{source}", target_fs, target,
                Shrinking(source), BLOCK, is_landing=True,
            )  # fmt: skip
    assert ram.read_file("ram://target") == b"as it was"
    assert not ram.path_exists("ram://new")


def test_what_is_rotated_or_grows_is_copied_as_it_was_opened(service, tmp_path):
    source = tmp_path / "log"
    source.write_bytes(bytes(10 * BLOCK))

    class Rotating(CopyWatch):
        def advance(self, n_bytes):
            source.unlink(missing_ok=True)

    ram = service.filesystem("ram")
    copy_through(
        service.filesystem("file"), f"file://{source}", ram, "ram://target", Rotating(), BLOCK,
        is_landing=True,
    )  # fmt: skip
    assert ram.get_file_size("ram://target") == 10 * BLOCK


def test_a_file_of_the_system_that_is_shorter_than_it_says_is_copied(service):
    source = Path("/sys/devices/system/cpu/online")
    content = source.read_bytes()
    assert len(content) < source.stat().st_size
    copy_through(
        service.filesystem("file"), f"file://{source}", service.filesystem("ram"), "ram://target"
    )
    assert service.filesystem("ram").read_file("ram://target") == content


def test_a_file_of_fsspec_that_shrinks_does_not_arrive(service):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/shrinks", bytes(40 * BLOCK))  # more than is read ahead
    service.register_filesystem("memory", memory)
    source, ram = service.filesystem("memory"), service.filesystem("ram")

    class Writing(CopyWatch):
        def advance(self, n_bytes):
            memory.pipe_file("/shrinks", bytes(10))

    with pytest.raises(errors.DataLossError, match="it ended after"):
        copy_through(source, "memory://shrinks", ram, "ram://f", Writing(), BLOCK, is_landing=True)
    assert not ram.path_exists("ram://f")
