"""Files of fsspec's clients that are given up: which of them a store keeps nothing of."""

from __future__ import annotations

import gc
import weakref

import pytest
from fsspec.implementations.ftp import FTPFile
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

from modular_tf import errors, gfile
from modular_tf.filesystem.copying import write_whole
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import interrupted


class Store(MemoryFileSystem):
    """A store that gets each file at its end, as most clients do it."""

    cachable = False

    def __init__(self):
        super().__init__()
        self.stored = {}
        self.is_full = False

    def _open(self, path, mode="rb", **_options):
        return File(self, path, mode)


class File(AbstractBufferedFile):
    def _initiate_upload(self):
        self.parts = b""

    def _upload_chunk(self, final=False):
        self.parts += self.buffer.getvalue()
        if final:
            self.fs.stored[self.path] = self.parts
        return True

    def write(self, data):
        if self.fs.is_full:
            raise OSError(28, "no space left")
        return super().write(data)


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def service(store):
    with PluginService(bundled=False) as service:
        service.register_filesystem("kept", store)
        yield service


@pytest.fixture
def fs(service):
    return service.filesystem("kept")


@pytest.fixture
def begin(fs):
    """Open a file and write a first part."""

    def open_and_append():
        file = fs.new_writable_file("kept://f")
        file.append(b"first")
        return file

    return open_and_append


class Cycle:
    """What only the collector ends."""


OPENERS = {
    "file": lambda fs, service: fs.new_writable_file("kept://f"),
    "raw": lambda fs, service: fs.open("kept://f", "wb", 0),
    "stream": lambda fs, service: fs.open("kept://f", "wb"),
    "gfile": lambda fs, service: gfile.GFile("kept://f", "wb", service=service),
}


@pytest.mark.parametrize("opener", OPENERS)
def test_a_torn_file_is_not_stored_in_whichever_order_the_collector_ends_it(
    opener, fs, service, store
):
    """What holds its error holds itself by the traceback, and the client's file is the older."""
    file = OPENERS[opener](fs, service)
    write = file.append if opener == "file" else file.write
    write(bytes(9 << 20))
    store.is_full = True
    with pytest.raises(errors.ResourceExhaustedError) as raised:
        write(bytes(9 << 20))
    cycle = Cycle()
    cycle.holds = (cycle, file, raised)
    ended = weakref.ref(cycle)
    del file, write, raised, cycle
    gc.collect()

    assert ended() is None
    assert store.stored == {}


def test_a_file_whose_append_was_interrupted_at_any_point_is_not_stored(begin, store):
    def append(files):
        files[0].append(bytearray(b"second"))

    # At the first point it has not begun.
    for files, more in interrupted(lambda: [begin()], append, first=1):
        files.clear()
        gc.collect()
        assert bool(store.stored) != more
        store.stored.clear()


def test_a_file_that_was_given_what_is_no_bytes_is_stored(begin, store):
    files = [begin()]
    with pytest.raises(errors.InvalidArgumentError):
        files[0].append("text")
    files.clear()
    gc.collect()

    assert [*store.stored.values()] == [b"first"]


@pytest.mark.parametrize("mode", ["w", "wb", "a"])
def test_a_gfile_that_is_left_before_its_first_write_stores_nothing(mode, service, store):
    with pytest.raises(ArithmeticError), gfile.GFile("kept://f", mode, service=service):
        raise ArithmeticError

    assert store.stored == {}


# ---- Clients that send at once ----


class Ftp(Store):
    """A server that has each part of a file as soon as it is sent."""

    def __init__(self):
        super().__init__()
        self.ftp = self

    def storbinary(self, command, data, blocksize, rest):
        path = command.removeprefix("STOR ")
        self.stored[path] = self.stored.get(path, b"")[: rest or 0] + data.read()

    def rm(self, path, *_arguments, **_options):
        del self.stored[path]

    def _open(self, path, mode="rb", **options):
        return FTPFile(self, path, mode, block_size=4)


def test_a_file_that_arrives_as_it_is_written_stays_as_far_as_it_was_written():
    ftp = Ftp()
    with PluginService(bundled=False) as service:
        service.register_filesystem("served", ftp)
        file = service.filesystem("served").new_writable_file("served://f")
        file.append(b"12345678")
        file.append(b"9")
        file.__exit__(ArithmeticError, ArithmeticError(), None)

    assert list(ftp.stored.values()) == [b"123456789"]


@pytest.mark.parametrize("client", ["dbfs", "ftp", "webhdfs"])
def test_a_client_that_sends_at_once_stores_nothing_by_its_close(client, begin, monkeypatch):
    assert begin().is_stored_by_close
    monkeypatch.setattr(File, "__module__", f"fsspec.implementations.{client}")

    assert not begin().is_stored_by_close


# ---- Files that replace others ----


@pytest.fixture(params=["client", "wrapped"])
def overwritten(request, fs, store, service, monkeypatch):
    """A filesystem and the URI of a file of it."""
    monkeypatch.setitem(store.store, "/f", MemoryFile(store, "/f", b"old"))
    if request.param == "wrapped":
        service.register_filesystem("again", fs)
        return service.filesystem("again"), "again://f"
    return fs, "kept://f"


def test_a_store_that_keeps_a_file_until_it_is_closed_gets_a_new_one_by_its_name(
    overwritten, store
):
    write_whole(*overwritten, lambda writer: writer.append(b"new"))

    assert store.stored == {"/f": b"new"}


@pytest.mark.parametrize("may_rename", [True, False])
def test_what_fails_leaves_the_file_of_such_a_store_as_it_was(overwritten, store, may_rename):
    def write_and_fail(writer):
        writer.append(b"new")
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        write_whole(*overwritten, write_and_fail, may_rename=may_rename)

    assert store.stored == {}
    assert store.cat_file("/f") == b"old"


def test_the_failure_of_a_write_rises_again_from_close_which_stores_nothing(service, store):
    file = gfile.GFile("kept://f", "wb", service=service)
    file.write(b"first")
    store.is_full = True
    for call in (lambda: file.write(b"more than there is room"), file.close):
        with pytest.raises(errors.ResourceExhaustedError):
            call()
    file.close()

    assert file.closed
    assert store.stored == {}
