"""Files of a network, opened through fsspec: which reads reach the store."""

from __future__ import annotations

import io
import os

import pytest

from modular_tf.filesystem.readahead import FIRST_BLOCK
from tests.fsspec.far_store import TOP, FarStore, serve

CONTENT = os.urandom(3 * 2**20 + 17)
PATH = f"{TOP}/file"


@pytest.fixture
def store():
    store = FarStore()
    store.files["/file"] = CONTENT
    return store


@pytest.fixture
def fs(store):
    service, fs = serve(store)
    with service:
        yield fs


def test_a_whole_file_is_one_read(fs, store):
    with fs.open(PATH) as file:
        assert file.read() == CONTENT
        assert file.read() == b""
        assert file.read(10) == b""

    assert store.count("read") == 1


def test_small_reads_one_after_the_other_are_few(fs, store):
    with fs.open(PATH) as file:
        assert b"".join(iter(lambda: file.read(1000), b"")) == CONTENT

    assert store.count("read") <= 5


def test_lines_are_read_ahead(fs, store):
    store.files["/file"] = b"a line\n" * 100_000
    with fs.open(PATH, "r") as file:
        assert sum(1 for _ in file) == 100_000

    assert store.count("read") <= 3


def test_reads_here_and_there_and_of_all_sizes_are_right(fs):
    with fs.open(PATH) as file:
        for start, n in ((2**20, 100), (5, 2**21), (len(CONTENT) - 8, 8), (2**20 + 50, 70_000)):
            assert file.seek(start) == start
            assert file.read(n) == CONTENT[start : start + n]
            assert file.tell() == start + n
        assert file.seek(-5, io.SEEK_END) == len(CONTENT) - 5
        assert file.read(100_000) == CONTENT[-5:]
        buffer = bytearray(100)
        file.seek(1)
        assert file.readinto(buffer) == 100
        assert buffer == CONTENT[1:101]
        assert file.read(100_000) == CONTENT[101:100_101]
        assert file.peek(1)[:1] == CONTENT[100_101:100_102]


def test_a_column_is_one_read_of_its_own_length(fs, store):
    with fs.open(PATH) as file:
        file.seek(1000)
        assert file.read(2**20 + 5) == CONTENT[1000 : 1000 + 2**20 + 5]

    assert store.count("read") == 1


@pytest.mark.parametrize("block_size", [None, 1 << 20])
def test_the_first_block_is_as_the_caller_says(fs, store, block_size, monkeypatch):
    lengths = []
    reader = type(fs.filesystem.new_random_access_file(fs.uri(PATH)))
    real = reader.readinto
    monkeypatch.setattr(
        reader, "readinto", lambda self, at, b: lengths.append(len(b)) or real(self, at, b)
    )
    with fs.open(PATH, block_size=block_size) as file:
        file.read(1)

    assert lengths == [block_size or FIRST_BLOCK]


def test_a_file_is_opened_by_one_look_and_closed(fs, store):
    with fs.open(PATH) as file:
        file.read(1)

    assert store.count("new_random_access_file") == store.count("close_reader") == 1
    assert store.count("stat") <= 1


@pytest.mark.parametrize("cache_type", ["readahead", "bytes", "blockcache", "none", "all"])
def test_fsspecs_own_caches_serve_whom_they_are_named_by(fs, cache_type):
    with fs.open(PATH, cache_type=cache_type, block_size=1 << 16) as file:
        file.seek(1000)
        assert file.read(100_000) == CONTENT[1000:101_000]


def test_an_empty_file_needs_no_read(fs, store):
    store.files["/file"] = b""
    with fs.open(PATH) as file:
        assert file.read() == b""
        assert file.read(5) == b""

    assert store.count("read") == 0
