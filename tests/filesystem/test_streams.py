"""Files of the bundled plugins as Python's io knows them."""

from __future__ import annotations

import array
import gzip
import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)

_TEXT = "Grüße\nzweite Zeile\r\ndritte"
_LARGE = bytes(range(256)) * 4096 * 3  # 3 MiB, more than any buffer


# ---- What other modules do with files ----


def test_a_reader_is_a_buffered_reader(place):
    uri = place.write("f", _LARGE)
    with place.fs.open(uri, "rb") as file:
        assert isinstance(file, io.BufferedReader)
        assert file.name == uri
        assert file.readable()
        assert file.seekable()
        assert not file.writable()
        assert file.peek(4)[:4] == b"\0\1\2\3"
        assert file.read(3) == b"\0\1\2"
        assert file.seek(-1, io.SEEK_END) == len(_LARGE) - 1
        assert file.read() == b"\xff"
        assert file.read(1) == b""
        assert file.seek(1000) == 1000
        assert file.seek(24, io.SEEK_CUR) == 1024
        assert file.read() == _LARGE[1024:]


def test_whole_files_of_every_size_are_read(place):
    for size in (0, 1, 2, 4095, 4096, 65535, 65536, 65537, (1 << 17) - 1, 1 << 17, (1 << 17) + 1):
        uri = place.write("f", _LARGE[:size])
        for buffering in (-1, 0):
            with place.fs.open(uri, "rb", buffering=buffering) as file:
                assert file.read() == _LARGE[:size]


def test_text_is_decoded_and_lines_are_lines(place):
    with place.fs.open(place / "t", "w", newline="") as file:
        assert isinstance(file, io.TextIOWrapper)
        file.write(_TEXT)
    with place.fs.open(place / "t", encoding="utf-8") as file:
        assert file.read() == _TEXT.replace("\r\n", "\n")
    with place.fs.open(place / "t", newline="") as file:
        assert list(file) == _TEXT.splitlines(keepends=True)
    with place.fs.open(place / "t", encoding="ascii", errors="replace") as file:
        assert file.readline() == "Gr����e\n"


def test_zip_archives_are_written_and_read(place):
    with place.fs.open(place / "z", "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", b"one")
        archive.writestr("b/c", _LARGE)
    with place.fs.open(place / "z", "rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        assert archive.read("b/c") == _LARGE


def test_pickle_gzip_json_and_numpy_use_files(place):
    values = {"x": list(range(1000)), "y": _LARGE[:100]}
    with place.fs.open(place / "p", "wb") as file:
        pickle.dump(values, file)
    with place.fs.open(place / "p", "rb") as file:
        assert pickle.load(file) == values
    with place.fs.open(place / "g", "wb") as file, gzip.open(file, "wb") as packed:
        packed.write(_LARGE)
    with place.fs.open(place / "g", "rb") as file, gzip.open(file) as packed:
        assert packed.read() == _LARGE
    with place.fs.open(place / "j", "w") as file:
        json.dump({"ü": 1}, file)
    with place.fs.open(place / "j") as file:
        assert json.load(file) == {"ü": 1}
    with place.fs.open(place / "n", "wb") as file:
        np.save(file, np.arange(10_000))
    with place.fs.open(place / "n", "rb") as file:
        assert np.array_equal(np.load(file), np.arange(10_000))


# ---- Modes ----


def test_append_goes_on_where_the_file_ends(place):
    with place.fs.open(place / "f", "ab") as file:
        assert file.tell() == 0
        file.write(b"one")
    with place.fs.open(place / "f", "ab") as file:
        assert file.tell() == 3
        file.write(b" two")
        assert file.tell() == 7

    assert place.read("f") == b"one two"


def test_write_empties_and_exclusive_refuses(place):
    place.write("f", b"long content")
    with pytest.raises(AlreadyExistsError, match="it exists"):
        place.fs.open(place / "f", "x")
    assert place.read("f") == b"long content"
    place.fs.open(place / "f", "w").close()
    assert place.read("f") == b""
    with place.fs.open(place / "new", "xb") as file:
        file.write(b"x")
    assert place.read("new") == b"x"


@pytest.mark.parametrize("mode", ["", "rw", "r+", "w+b", "U", "rbt", "rr", "b", "t", "q", "wa"])
def test_a_mode_that_means_nothing_is_refused_before_anything_is_touched(mode, place):
    place.write("f", b"kept")
    with pytest.raises(ValueError, match="mode"):
        place.fs.open(place / "f", mode)
    assert place.read("f") == b"kept"


def test_arguments_that_exclude_each_other_are_refused(place):
    place.write("f", b"kept")
    with pytest.raises(ValueError, match="unbuffered"):
        place.fs.open(place / "f", "w", buffering=0)
    for argument in ("encoding", "errors", "newline"):
        with pytest.raises(ValueError, match="binary"):
            place.fs.open(place / "f", "wb", **{argument: "x"})
    assert place.read("f") == b"kept"


def test_the_wrong_direction_is_refused(place):
    place.write("f", b"x")
    with place.fs.open(place / "f", "rb") as file, pytest.raises(io.UnsupportedOperation):
        file.write(b"y")
    with place.fs.open(place / "f", "wb") as file, pytest.raises(io.UnsupportedOperation):
        file.read()


def test_opening_what_cannot_be_opened_says_why(place):
    with pytest.raises(NotFoundError, match="absent") as failure:
        place.fs.open(place / "absent")
    assert failure.value.path == place / "absent"
    assert failure.value.plugin == place.fs.plugin
    assert isinstance(failure.value, FileNotFoundError)
    with pytest.raises(FailedPreconditionError):
        place.fs.open(place.root, "w")
    with pytest.raises(NotFoundError):
        place.fs.open(place / "absent/f", "w")


def test_seeking_before_the_start_or_from_nowhere_is_refused(place):
    place.write("f", b"abc")
    with place.fs.open(place / "f", "rb", buffering=0) as file:
        with pytest.raises(ValueError, match="before the start"):
            file.seek(-1)
        with pytest.raises(ValueError, match="whence"):
            file.seek(0, 9)
        assert file.seek(100) == 100
        assert file.read() == b""


# ---- Positions and buffers ----


@pytest.mark.parametrize(
    "make",
    [
        bytearray,
        lambda n: memoryview(bytearray(n)),
        lambda n: array.array("B", bytes(n)),
        lambda n: array.array("I", bytes(n)),
        lambda n: np.zeros(n, np.uint8),
        lambda n: np.zeros((n // 16, 2), np.float64),
        lambda n: memoryview(bytearray(n + 8))[8:],
    ],
    ids=["bytearray", "memoryview", "array-B", "array-I", "numpy-u1", "numpy-f8", "slice"],
)
def test_reads_go_straight_into_any_buffer(make, place):
    size = 4096
    with place.fs.new_random_access_file(place.write("f", _LARGE)) as file:
        target = make(size)
        assert file.readinto(100, target) == size
        assert bytes(memoryview(target).cast("B")) == _LARGE[100 : 100 + size]
        short = make(size)
        assert file.readinto(len(_LARGE) - 10, short) == 10
        assert bytes(memoryview(short).cast("B")) == _LARGE[-10:] + bytes(size - 10)


def test_buffers_that_cannot_be_filled_are_refused(place):
    with place.fs.new_random_access_file(place.write("f", _LARGE)) as file:
        for target in (b"read-only", memoryview(b"read-only"), np.zeros((4, 4))[:, 1], "text", 5):
            with pytest.raises((TypeError, BufferError, ValueError)):
                file.readinto(0, target)


def test_any_contiguous_buffer_is_appended(place):
    parts = [
        b"by",
        bytearray(b"te"),
        memoryview(b"s!"),
        array.array("H", [1]),
        np.arange(3, dtype="i2"),
    ]
    with place.fs.new_writable_file(place / "f") as file:
        for part in parts:
            file.append(part)
        assert file.tell() == 14
        with pytest.raises(TypeError):
            file.append("text")
        with pytest.raises((BufferError, ValueError, TypeError)):
            file.append(np.zeros((4, 4))[:, 1])
        file.append(b"")
        file.flush()
        file.sync()

    assert place.read("f") == b"bytes!" + array.array("H", [1, 0, 1, 2]).tobytes()


def test_a_read_past_the_end_is_the_end(place):
    with place.fs.new_random_access_file(place.write("f", b"abcd")) as file:
        assert file.read(0, 4) == b"abcd"
        assert file.read(0, 0) == b""
        assert file.read(1, 1) == b"b"
        assert file.read(2, 100) == b"cd"
        assert file.read(4, 1) == file.read(1 << 40, 5) == b""


@pytest.mark.parametrize(("offset", "count"), [(-1, 4), (0, -1), (1 << 64, 1)])
def test_impossible_positions_are_refused(offset, count, place):
    with (
        place.fs.new_random_access_file(place.write("f", b"abcd")) as file,
        pytest.raises(InvalidArgumentError, match="read"),
    ):
        file.read(offset, count)


def test_one_bytes_are_not_shared(place):
    with place.fs.new_random_access_file(place.write("f", b"\x00A")) as file:
        assert file.read(1, 1) == b"A"
        assert bytes([0]) == b"\x00"  # the interpreter's own one-byte string is untouched
        assert file.read(2, 1) == b""


# ---- Closing ----


def test_closing_twice_is_fine_and_use_after_is_an_error(place):
    place.write("f", b"abc")
    reader = place.fs.new_random_access_file(place / "f")
    writer = place.fs.new_writable_file(place / "g")
    for file in (reader, writer):
        file.close()
        file.close()
        assert file.closed
    for use in (
        lambda: reader.read(0, 1),
        lambda: reader.readinto(0, bytearray(1)),
        lambda: writer.append(b"x"),
        writer.tell,
        writer.flush,
        writer.sync,
    ):
        with pytest.raises(ClosedError, match="closed"):
            use()


@pytest.mark.parametrize("mode", ["r", "rb", "w", "wb", "a"])
@pytest.mark.parametrize("buffering", [-1, 0])
def test_a_closed_stream_says_so(mode, buffering, place):
    if buffering == 0 and "b" not in mode:
        mode += "b"
    place.write("f", b"abc")
    file = place.fs.open(place / "f", mode, buffering=buffering)
    file.close()
    file.close()
    assert file.closed
    for use in (file.read, file.tell, lambda: file.write(b"x" if "b" in mode else "x"), file.flush):
        with pytest.raises(ValueError):
            use()


def test_a_file_that_is_deleted_while_it_is_read_goes_on(place):
    uri = place.write("f", _LARGE)
    with place.fs.open(uri, "rb") as file:
        assert file.read(2) == _LARGE[:2]
        place.fs.delete_file(uri)
        if place.fs.scheme != "ram":  # memory may go with its name
            assert file.read() == _LARGE[2:]


def test_a_file_whose_size_lies_is_read_whole(service):
    expected = Path("/proc/self/cmdline").read_bytes()
    with service.filesystem("").open("/proc/self/cmdline", "rb") as file:
        assert file.read() == expected


def test_the_current_directory_is_where_plain_paths_begin(service, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with service.filesystem("").open("relative", "w") as file:
        file.write("x")

    assert (tmp_path / "relative").read_text() == "x"
    assert list(tmp_path.iterdir()) == [tmp_path / "relative"]
