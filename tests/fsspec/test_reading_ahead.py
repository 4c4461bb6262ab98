"""Files of a network, opened through fsspec, are read ahead as the caller says."""

from __future__ import annotations

import os

import pytest

from tests.fsspec.far_store import TOP

CONTENT = os.urandom(3 * 2**20 + 17)
PATH = f"{TOP}/file"


@pytest.fixture
def store(store):
    store.files["/file"] = CONTENT
    return store


@pytest.mark.parametrize(
    ("content", "read", "most"),
    [
        (CONTENT, lambda file: file.read() + file.read() + file.read(10), 1),
        (CONTENT, lambda file: b"".join(iter(lambda: file.read(1000), b"")), 5),
        (b"a line\n" * 100_000, b"".join, 3),
        (b"", lambda file: file.read() + file.read(5), 0),
    ],
    ids=["a whole file", "small reads one after the other", "lines", "an empty file"],
)
def test_reads_are_few_and_a_file_is_opened_by_one_look(far, store, content, read, most):
    store.files["/file"] = content
    with far.open(PATH) as file:
        assert read(file) == content

    assert store.count("read") <= most
    assert store.count("new_random_access_file") == store.count("close_reader") == 1
    assert store.count("stat") <= 1


@pytest.mark.parametrize("cache_type", ["readahead", "bytes", "blockcache", "none", "all"])
def test_fsspecs_own_caches_serve_whom_they_are_named_by(far, store, cache_type):
    with far.open(PATH, cache_type=cache_type, block_size=1 << 16) as file:
        file.seek(1000)
        assert file.read(100_000) == CONTENT[1000:101_000]

    assert store.count("close_reader") == store.count("new_random_access_file") == 1
