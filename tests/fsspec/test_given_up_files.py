"""Files of fsspec's clients that are given up: which of them a store keeps nothing of."""

from __future__ import annotations

import gc
import itertools
import weakref

import pytest
from fsspec.implementations.ftp import FTPFile
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from fsspec.spec import AbstractBufferedFile

from modular_tf import errors, gfile
from modular_tf.filesystem.copying import write_whole
from modular_tf.filesystem.fsspec_bridge import FsspecOps
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import interrupt


class _Store(MemoryFileSystem):
    """A store that gets each file at its end, as most clients do it."""

    cachable = False

    def __init__(self):
        super().__init__()
        self.stored = {}
        self.is_full = False

    def _open(self, path, mode="rb", **_options):
        return _File(self, path, mode)


class _File(AbstractBufferedFile):
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
    return _Store()


@pytest.fixture
def service(store):
    with PluginService(bundled=False) as service:
        service.register_filesystem("kept", store)
        yield service


@pytest.fixture
def fs(service):
    return service.filesystem("kept")


class _Cycle:
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
    cycle = _Cycle()
    cycle.holds = (cycle, file, raised)
    ended = weakref.ref(cycle)
    del file, write, raised, cycle
    gc.collect()

    assert ended() is None
    assert store.stored == {}


def test_an_append_that_finds_no_memory_is_our_error_and_stores_nothing(fs, store, monkeypatch):
    class NoMemory(bytes):
        def __new__(cls, _data):
            raise MemoryError

    file = fs.new_writable_file("kept://f")
    file.append(b"first")
    monkeypatch.setattr("modular_tf.filesystem.fsspec_bridge.bytes", NoMemory, raising=False)
    with pytest.raises(errors.ResourceExhaustedError):
        file.append(bytearray(b"second"))
    del file
    gc.collect()

    assert store.stored == {}


def test_a_file_whose_append_was_interrupted_at_any_point_is_not_stored(fs, store):
    for point in itertools.count(1):  # at the first it has not begun
        store.stored.clear()
        file = fs.new_writable_file("kept://f")
        file.append(b"first")
        more = interrupt(lambda file=file: file.append(bytearray(b"second")), point=point)
        del file
        gc.collect()
        assert bool(store.stored) != more
        if not more:
            assert point > 1
            break


def test_a_file_that_was_given_what_is_no_bytes_is_stored(fs, store):
    file = fs.new_writable_file("kept://f")
    file.append(b"first")
    with pytest.raises(errors.InvalidArgumentError):
        file.append("text")
    del file
    gc.collect()

    assert [*store.stored.values()] == [b"first"]


@pytest.mark.parametrize("closes", [True, False])
def test_a_torn_file_that_somebody_ends_is_as_that_wants(closes, fs, store):
    file = fs.new_writable_file("kept://f")
    file.append(b"first")
    store.is_full = True
    with pytest.raises(errors.ResourceExhaustedError):
        file.append(b"second")
    if closes:
        file.close()
    else:
        file.discard()
    del file
    gc.collect()

    assert [*store.stored.values()] == ([b"first"] if closes else [])


@pytest.mark.parametrize("mode", ["w", "wb", "a"])
def test_a_gfile_that_is_left_before_its_first_write_stores_nothing(mode, service, store):
    with pytest.raises(ArithmeticError), gfile.GFile("kept://f", mode, service=service):
        raise ArithmeticError

    assert store.stored == {}


class _Ftp(_Store):
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
    ftp = _Ftp()
    with PluginService(bundled=False) as service:
        service.register_filesystem("served", ftp)
        fs = service.filesystem("served")
        file = fs.new_writable_file("served://f")
        file.append(b"12345678")
        file.append(b"9")
        file.__exit__(ArithmeticError, ArithmeticError(), None)

    assert list(ftp.stored.values()) == [b"123456789"]


class _Dbfs(_Store):
    """A server that has the blocks of a file as they are sent, instead of the old file."""

    def _create_handle(self, path):
        self.stored[path] = b""
        return path

    def _add_data(self, handle, data):
        self.stored[handle] += data

    def _close_handle(self, handle):
        pass

    def _open(self, path, mode="rb", **options):
        dbfs = pytest.importorskip("fsspec.implementations.dbfs")  # requests may be missing
        return dbfs.DatabricksFile(self, path, mode)


@pytest.mark.parametrize("client", [_Ftp, _Dbfs])
def test_a_client_that_sends_at_once_stores_nothing_by_its_close(client):
    file = FsspecOps(client()).new_writable_file("served://f")

    assert not file.is_stored_by_close


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


def _write_and_fail(writer):
    writer.append(b"new")
    raise ArithmeticError


def test_what_fails_leaves_the_file_of_such_a_store_as_it_was(overwritten, store):
    with pytest.raises(ArithmeticError):
        write_whole(*overwritten, _write_and_fail)

    assert store.stored == {}
    assert store.cat_file("/f") == b"old"


def test_what_fails_deletes_nothing_of_such_a_store_where_nothing_is_renamed(overwritten, store):
    with pytest.raises(ArithmeticError):
        write_whole(*overwritten, _write_and_fail, may_rename=False)

    assert store.cat_file("/f") == b"old"
