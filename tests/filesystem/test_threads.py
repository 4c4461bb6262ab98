"""Many threads on one service: no wrong byte, no lock around a read, no end under a reader."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf.errors import ClosedError, DataLossError
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from tests.filesystem.plugins import built, service_of

_THREADS = 8


def together(work):
    """Run `work(number)` on all threads, which begin together; return the results."""
    barrier = threading.Barrier(_THREADS)

    def begin(number):
        barrier.wait(60)
        return work(number)

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(begin, range(_THREADS)))


# ---- Reads overlap, also with closes ----


def test_eight_reads_of_one_file_run_at_the_same_time():
    """And so do reads into buffers, and through streams; each waits for seven others."""

    def read_by_itself(number):
        if number % 2:
            with fs.open("meet://f", "rb", buffering=0) as stream:
                return stream.read(3)
        with fs.new_random_access_file("meet://f") as file:
            buffer = bytearray(3)
            file.readinto(0, buffer)
            return bytes(buffer)

    with service_of(built("rendezvous", f"COMPANY={_THREADS}")) as service:
        fs = service.filesystem("meet")
        with fs.new_random_access_file("meet://f") as file:
            parts = together(lambda number: file.read(number, 3))
        assert parts == [bytes([ord("a") + number]) * 3 for number in range(_THREADS)]
        assert together(read_by_itself) == [b"aaa"] * _THREADS


@pytest.mark.parametrize("what", ["file", "filesystem", "service"])
def test_a_read_that_is_under_way_ends_before_what_it_reads_from(what):
    library = built("rendezvous", "COMPANY=2")
    with service_of(library) as service, service_of(library) as other_service:
        fs, company = service.filesystem("meet"), other_service.filesystem("meet")
        file = fs.new_random_access_file("meet://f")
        with ThreadPoolExecutor(1) as pool:
            read = pool.submit(file.read, 0, 3)
            while company.get_file_size("meet://f") < 1:
                pass  # until the read is in the plugin
            {"file": file, "filesystem": fs, "service": service}[what].close()
            with pytest.raises(ClosedError):
                file.read(0, 1)
            with company.new_random_access_file("meet://f") as other:
                assert other.read(1, 3) == b"bbb"

            assert read.result(60) == b"aaa"


@pytest.mark.parametrize("is_store", [True, False])
@pytest.mark.parametrize("at_exit", [True, False])
def test_a_close_during_a_failing_append_stores_no_torn_file(
    is_store, at_exit, tmp_path, monkeypatch
):
    def is_closed(fs):
        try:
            fs.new_writable_file(f"tear://h{tmp_path}/other").discard()
        except ClosedError:
            return True
        return False

    monkeypatch.setattr(PluginFilesystem, "is_object_store", is_store)
    pipe, stored = tmp_path / "file", tmp_path / "file.stored"
    os.mkfifo(pipe)
    with service_of(built("tearing")) as service, ThreadPoolExecutor() as pool:
        fs = service.filesystem("tear")
        appending = pool.submit(fs.new_writable_file(f"tear://h{pipe}").append, b"bytes")
        with pipe.open("wb"):  # the append has opened it too
            closing = pool.submit(fs.close, at_exit=at_exit)
            while not is_closed(fs):
                pass
        with pytest.raises(DataLossError):
            appending.result()
        closing.result()

        assert stored.exists() == (not is_store)


# ---- One writer ----


def test_a_writer_of_many_threads_loses_nothing(place):
    with place.fs.new_writable_file(place / "f") as file:
        together(lambda number: [file.append(bytes([number]) * 100) for _ in range(100)])
        assert file.tell() == 100 * 100 * _THREADS
    data = place.read("f")

    assert len(data) == 100 * 100 * _THREADS
    for at in range(0, len(data), 100):  # each append lies in one piece
        assert data[at : at + 100] == data[at : at + 1] * 100
