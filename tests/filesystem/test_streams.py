"""Files and memory regions of the bundled plugins as Python knows them."""

from __future__ import annotations

import array
import gc
import io

import numpy as np
import pytest

import modular_tf as mtf
from modular_tf.errors import (
    AlreadyExistsError,
    ClosedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from modular_tf.filesystem.files import SHORT_FILE

_LARGE = bytes(range(256)) * 4096 * 3  # 3 MiB, more than any buffer


# ---- What other modules do with files ----


def test_a_reader_is_a_buffered_reader(place):
    uri = place.write("f", _LARGE)
    with place.fs.open(uri, "rb") as file:
        assert isinstance(file, io.BufferedReader)
        assert file.name == uri
        assert (file.readable(), file.seekable(), file.writable()) == (True, True, False)
        assert file.peek(4)[:4] == b"\0\1\2\3"
        assert file.read(3) == b"\0\1\2"
        assert file.seek(-1, io.SEEK_END) == len(_LARGE) - 1
        assert file.read() == b"\xff"
        assert file.read(1) == b""
        assert file.seek(1000) == 1000
        assert file.seek(24, io.SEEK_CUR) == 1024
        assert file.read() == _LARGE[1024:]


def test_whole_files_of_every_size_are_read(place):
    around = (4096, SHORT_FILE, 1 << 17, 5 * SHORT_FILE)
    for size in (0, 1, *(one + more for one in around for more in (-1, 0, 1))):
        uri = place.write("f", _LARGE[:size])
        assert place.fs.read_file(uri) == _LARGE[:size]
        for buffering in (-1, 0):
            with place.fs.open(uri, "rb", buffering=buffering) as file:
                assert file.read() == _LARGE[:size]
        assert place.fs.open_count == 0


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


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        *((mode, {}, "mode") for mode in ("", "rw", "r+", "w+b", "U", "rbt", "rr", "b", "t", "wa")),
        ("wbb", {}, "mode"),
        ("w", {"buffering": 0}, "unbuffered"),
        ("w", {"newline": "no newline"}, "newline"),
        *(("wb", {name: "x"}, "binary") for name in ("encoding", "errors", "newline")),
    ],
    ids=str,
)
def test_what_means_nothing_is_refused_before_anything_is_touched(mode, options, message, place):
    place.write("f", b"kept")
    with pytest.raises(ValueError, match=message):
        place.fs.open(place / "f", mode, **options)
    assert place.read("f") == b"kept"


def test_opening_what_cannot_be_opened_says_why(place):
    for opening in (place.fs.open, place.fs.read_file):
        with pytest.raises(NotFoundError, match="absent") as failure:
            opening(place / "absent")
        assert failure.value.path == place / "absent"
        assert failure.value.plugin == place.fs.plugin
        assert failure.value.operation == "new_random_access_file"
        assert isinstance(failure.value, FileNotFoundError)
    with pytest.raises(FailedPreconditionError):
        place.fs.open(place.root, "w")
    with pytest.raises(NotFoundError):
        place.fs.open(place / "absent/f", "w")


def test_the_wrong_direction_and_places_before_the_start_or_from_nowhere_are_refused(place):
    with place.fs.open(place / "f", "wb") as file, pytest.raises(io.UnsupportedOperation):
        file.read()
    place.write("f", b"abc")
    with place.fs.open(place / "f", "rb", buffering=0) as file:
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"y")
        with pytest.raises(ValueError, match="before the start"):
            file.seek(-1)
        with pytest.raises(ValueError, match="whence"):
            file.seek(0, 9)
        assert file.seek(100) == 100
        assert file.read() == b""


# ---- Positions and buffers ----

BUFFERS = {
    "bytearray": bytearray,
    "array-I": lambda n: array.array("I", bytes(n)),
    "numpy-f8": lambda n: np.zeros((n // 16, 2), np.float64),
    "slice": lambda n: memoryview(bytearray(n + 8))[8:],
}


@pytest.mark.parametrize("kind", BUFFERS)
def test_reads_go_straight_into_any_buffer(kind, place):
    size = 4096
    with place.fs.new_random_access_file(place.write("f", _LARGE)) as file:
        for offset, count in ((100, size), (len(_LARGE) - 10, 10)):
            target = BUFFERS[kind](size)
            assert file.readinto(offset, target) == count
            expected = _LARGE[offset : offset + count] + bytes(size - count)
            assert bytes(memoryview(target).cast("B")) == expected


NO_TARGETS = (b"read-only", memoryview(b"read-only"), np.zeros((4, 4))[:, 1], "text", None, 5)


@pytest.mark.parametrize("target", NO_TARGETS, ids=lambda target: type(target).__name__)
def test_what_is_no_buffer_is_refused(place, target):
    with (
        place.fs.new_random_access_file(place.write("f", _LARGE)) as file,
        pytest.raises((TypeError, BufferError, ValueError)) as caught,
    ):
        file.readinto(0, target)
    if target is None or isinstance(target, str | int):
        assert "expected a buffer that can be written to, found" in str(caught.value)
        with (
            place.fs.new_writable_file(place / "g") as writer,
            pytest.raises(TypeError, match="expected a buffer of bytes, found"),
        ):
            writer.append(target)


def test_any_contiguous_buffer_is_appended(place):
    parts = [b"by", bytearray(b"te"), memoryview(b"s!"), array.array("H", [1])]
    with place.fs.new_writable_file(place / "f") as file:
        for part in [*parts, np.arange(3, dtype="i2")]:
            file.append(part)
        assert file.tell() == 14
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


@pytest.mark.parametrize(
    ("offset", "count"),
    [(-1, 4), (0, -1), (0, 1 << 63), (0, 1 << 64), (1 << 64, 1), (-(1 << 70), 1)],
)
def test_a_place_that_no_file_has_is_refused(offset, count, place):
    with place.fs.new_random_access_file(place.write("f", b"abcd")) as file:
        with pytest.raises(InvalidArgumentError, match="no file has") as caught:
            file.read(offset, count)
        assert (caught.value.path, caught.value.operation) == (place / "f", "read")


def test_more_than_memory_can_hold_is_refused(place):
    with (
        place.fs.new_random_access_file(place.write("f", b"abcd")) as file,
        pytest.raises(ResourceExhaustedError, match="no memory for"),
    ):
        file.read(0, 1 << 62)


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


@pytest.mark.parametrize(
    ("mode", "buffering"),
    [("r", -1), ("rb", -1), ("w", -1), ("wb", -1), ("rb", 0), ("wb", 0)],
)
def test_a_closed_stream_says_so(mode, buffering, place):
    place.write("f", b"abc")
    file = place.fs.open(place / "f", mode, buffering=buffering)
    file.close()
    file.close()
    assert file.closed
    for use in (file.read, file.tell, lambda: file.write(b"x" if "b" in mode else "x"), file.flush):
        with pytest.raises(ValueError):
            use()


# ---- Memory regions: read-only, and alive as long as a view of them ----


def test_a_region_is_a_read_only_buffer(place):
    uri = place.write("f", _LARGE)
    with place.fs.new_read_only_memory_region_from_file(uri) as region:
        assert len(region) == len(_LARGE)
        view = region.view()
        assert view.readonly
        assert view.nbytes == len(_LARGE)
        assert np.array_equal(np.frombuffer(view, np.uint8), np.frombuffer(_LARGE, np.uint8))
        with pytest.raises(TypeError):
            view[0] = 1


def test_a_view_outlives_its_region_and_its_file(place):
    uri = place.write("f", _LARGE)
    region = place.fs.new_read_only_memory_region_from_file(uri)
    view = region.view()[1:]
    numbers = np.frombuffer(region.view(), np.uint8)
    region.close()
    region.close()
    place.fs.delete_file(uri)
    gc.collect()

    assert view == _LARGE[1:]
    assert numbers[-1] == 255
    with pytest.raises(ClosedError, match="closed"):
        region.view()


def test_regions_of_nothing_are_refused_or_empty(place):
    uri = place.write("empty", b"")
    with pytest.raises(InvalidArgumentError):
        place.fs.new_read_only_memory_region_from_file(uri)
    with pytest.raises(NotFoundError):
        place.fs.new_read_only_memory_region_from_file(place / "absent")


# ---- Wrong arguments of a service ----


@pytest.mark.parametrize("scheme", [None, 5, b"zz"])
def test_a_scheme_that_is_no_text_is_refused(service, scheme):
    class Nothing:
        def stat(self, uri):
            raise NotImplementedError

    before = service.schemes()
    with pytest.raises(InvalidArgumentError, match="FS-007"):
        service.register_filesystem(scheme, Nothing())
    assert service.schemes() == before


@pytest.mark.parametrize("name", ["a\0b", "/a\0b", "\ud800/x"])
def test_a_name_that_no_file_can_have_is_explained(service, name):
    assert not service.why(name).known


def test_one_text_is_no_list_of_texts():
    with pytest.raises(TypeError, match="expected a list of paths"):
        mtf.PluginService(plugin_paths="/plugin.so")
    with pytest.raises(TypeError, match=r"Config\.disable"):
        mtf.Config(disable="posix_*")
