"""Open files: what they read and write, and how they behave as Python's file objects."""

from __future__ import annotations

import gc
import io
import os
import pickle

import pytest

from modular_tf.fsspec import ModularFileSystem

CONTENT = os.urandom(3 * 2**20 + 17)


@pytest.fixture
def path(ram, ram_path):
    """A path with CONTENT in it."""
    ram.pipe_file(f"{ram_path}/content", CONTENT)
    return f"{ram_path}/content"


@pytest.mark.parametrize(
    "options", [{}, {"block_size": 1000}, {"cache_type": "readahead"}], ids=str
)
def test_a_file_reads_whole_in_parts_and_backwards(ram, path, options):
    with ram.open(path, "rb", **options) as f:
        assert f.read() == CONTENT
        assert f.read() == b""
        assert f.seek(-5, io.SEEK_END) == len(CONTENT) - 5
        assert f.read(100) == CONTENT[-5:]
        f.seek(1234)
        assert f.read(70_000) == CONTENT[1234:71_234]
        assert f.tell() == 71_234
        assert f.size == len(CONTENT)


def test_large_reads_go_straight_into_the_callers_memory(ram, path, monkeypatch):
    plugin_file = type(ram.filesystem.new_random_access_file(ram.uri(path)))
    targets = []
    real = plugin_file.readinto

    def watched(self, offset, buffer):
        with memoryview(buffer) as view:
            targets.append(view.nbytes)
        return real(self, offset, buffer)

    monkeypatch.setattr(plugin_file, "readinto", watched)
    buffer = bytearray(2**20)
    with ram.open(path, "rb", block_size=4096) as f:
        assert f.readinto(buffer) == 2**20

    assert buffer == CONTENT[: 2**20]
    assert targets == [2**20]


def test_text_and_compression_are_fsspecs(ram, ram_path):
    with ram.open(f"{ram_path}/text", "w", encoding="utf-8") as f:
        f.write("erste\nzweite\nümlaut")
    with ram.open(f"{ram_path}/text", "r", encoding="utf-8") as f:
        assert list(f) == ["erste\n", "zweite\n", "ümlaut"]
    with ram.open(f"{ram_path}/x.gz", "wb", compression="infer") as f:
        f.write(b"squeezed" * 1000)
    assert ram.size(f"{ram_path}/x.gz") < 1000
    with ram.open(f"{ram_path}/x.gz", "rb", compression="infer") as f:
        assert f.read() == b"squeezed" * 1000


def test_appending_continues_where_the_file_ends(ram, ram_path):
    path = f"{ram_path}/log"
    for line in (b"one ", b"two"):
        with ram.open(path, "ab") as f:
            start = f.tell()
            f.write(line)
            assert f.tell() == start + len(line)

    assert start == 4
    assert ram.cat_file(path) == b"one two"


def test_writes_of_every_size_arrive_in_order(ram, ram_path):
    pieces = [CONTENT[:1], CONTENT[1:5000], CONTENT[5000:5001], CONTENT[5001:]]
    with ram.open(f"{ram_path}/pieces", "wb", block_size=1024) as f:
        for piece in pieces:
            assert f.write(piece) == len(piece)

    assert ram.cat_file(f"{ram_path}/pieces") == CONTENT


def test_a_flushed_file_can_be_read_by_others_before_it_is_closed(ram, ram_path):
    with ram.open(f"{ram_path}/f", "wb") as f:
        f.write(b"early")
        f.flush()
        assert ram.cat_file(f"{ram_path}/f") == b"early"


def test_a_file_that_was_never_written_to_is_empty(ram, ram_path):
    ram.open(f"{ram_path}/empty", "wb").close()

    assert ram.cat_file(f"{ram_path}/empty") == b""
    assert ram.info(f"{ram_path}/empty")["size"] == 0
    with ram.open(f"{ram_path}/empty") as f:
        assert f.read() == b""


@pytest.mark.parametrize(
    ("start", "end"),
    [
        *((None, None), (0, 10), (5, None), (None, 7), (-10, None), (-10, -3), (3, -3), (9, 9)),
        *((9, 3), (len(CONTENT) - 2, len(CONTENT) + 50), (len(CONTENT) + 10, len(CONTENT) + 50)),
    ],
)
def test_ranges_are_those_of_a_slice(ram, path, start, end):
    assert ram.cat_file(path, start, end) == CONTENT[start:end]
    assert ram.cat_ranges([path, path], [start, 0], [end, 5]) == [CONTENT[start:end], CONTENT[:5]]


def test_blocks_end_at_delimiters(ram, ram_path):
    ram.pipe_file(f"{ram_path}/csv", b"a,1\nb,2\nc,3\n")

    assert ram.read_block(f"{ram_path}/csv", 2, 4, delimiter=b"\n") == b"b,2\n"


def test_an_open_file_knows_where_it_is_and_is_pickled_with_its_position(ram, path):
    with ram.open(path) as f:
        assert (f.path, f.full_name) == (path, f"ram://{path}")
        assert f.info()["size"] == len(CONTENT)
        assert (f.seekable(), f.writable()) == (True, False)
        f.seek(1000)
        with pickle.loads(pickle.dumps(f)) as again:
            assert again.read(10) == CONTENT[1000:1010]


@pytest.mark.parametrize("mode", ["rb", "wb"])
def test_closed_twice_is_fine_used_after_that_is_not(ram, path, mode):
    f = ram.open(path, mode)
    f.close()
    f.close()

    assert f.closed
    with pytest.raises(ValueError, match="closed"):
        f.tell()


def test_what_is_missing_is_a_file_not_found_error(ram, ram_path):
    for action in (ram.open, ram.cat_file, ram.info, ram.rm, ram.ls, ram.modified, ram.rmdir):
        with pytest.raises(FileNotFoundError):
            action(f"{ram_path}/missing")


def test_a_missing_directory_is_made_only_if_asked_for(service, ram, ram_path):
    willing = ModularFileSystem("ram", service=service, auto_mkdir=True)
    with pytest.raises(FileNotFoundError):
        ram.pipe_file(f"{ram_path}/a/b/c", b"x")
    assert not ram.exists(f"{ram_path}/a")
    willing.pipe_file(f"{ram_path}/a/b/c", b"x")

    assert ram.cat_file(f"{ram_path}/a/b/c") == b"x"


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


def test_a_directory_is_not_opened(ram, ram_path):
    with pytest.raises(IsADirectoryError):
        ram.open(ram_path)
