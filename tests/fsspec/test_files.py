"""Open files: what they read and write, and how they behave as Python's file objects."""

from __future__ import annotations

import gc
import os
import pickle

import pytest

CONTENT = os.urandom(100_017)


@pytest.fixture
def path(ram, ram_path):
    """A path with CONTENT in it."""
    ram.pipe_file(f"{ram_path}/content", CONTENT)
    return f"{ram_path}/content"


def test_appending_continues_where_the_file_ends_and_text_is_compressed(ram, ram_path):
    path = f"{ram_path}/log"
    for line in (b"one ", b"two"):
        with ram.open(path, "ab") as f:
            start = f.tell()
            f.write(line)
            assert f.tell() == start + len(line)

    assert start == 4
    assert ram.cat_file(path) == b"one two"
    with ram.open(f"{path}.gz", "wt", compression="infer", encoding="utf-8") as f:
        f.write("ümlaut" * 1000)
    assert ram.size(f"{path}.gz") < 1000
    with ram.open(f"{path}.gz", "rt", compression="infer", encoding="utf-8") as f:
        assert f.read() == "ümlaut" * 1000


def test_an_open_file_knows_where_it_is_and_is_pickled_with_its_position(ram, path):
    with ram.open(path) as f:
        assert (f.path, f.full_name) == (path, f"ram://{path}")
        assert f.info()["size"] == len(CONTENT)
        assert (f.seekable(), f.writable()) == (True, False)
        f.seek(1000)
        with pickle.loads(pickle.dumps(f)) as again:
            assert again.read(10) == CONTENT[1000:1010]
    for mode, position in (("ab", len(CONTENT)), ("wb", 0)):
        with ram.open(path, mode) as f:
            assert (f.path, f.full_name, f.tell()) == (path, f"ram://{path}", position)


def test_what_is_missing_is_a_file_not_found_error(ram, ram_path):
    for action in (ram.open, ram.cat_file, ram.info, ram.rm, ram.ls, ram.modified, ram.rmdir):
        with pytest.raises(FileNotFoundError):
            action(f"{ram_path}/missing")
    with pytest.raises(IsADirectoryError):
        ram.open(ram_path)


@pytest.mark.parametrize(
    ("mode", "options"),
    [
        ("r+b", {}),
        ("w", {"encoding": "none-such"}),
        ("w", {"newline": "no newline"}),
        ("wb", {"compression": "none-such"}),
        ("w", {"compression": "gzip", "encoding": "none-such"}),
        ("wb", {"block_size": -1}),
    ],
    ids=str,
)
def test_what_is_refused_keeps_its_content(ram, path, mode, options):
    with pytest.raises((LookupError, ValueError), match=r"r\+b" if mode == "r+b" else None):
        ram.open(path, mode, **options)
    gc.collect()

    assert ram.cat_file(path) == CONTENT
