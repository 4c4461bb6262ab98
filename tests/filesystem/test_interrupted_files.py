"""Files whose opening, writing or closing a signal handler interrupts, at every point in turn."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

import pytest

from modular_tf.errors import AbortedError, ModularTFError, ResourceExhaustedError
from tests.filesystem.plugins import service_of
from tests.fixtures.interrupts import interrupt, interrupted, points

OPENERS = {
    "reader": lambda fs, uri: fs.new_random_access_file(uri),
    "writer": lambda fs, uri: fs.new_writable_file(uri),
    "appender": lambda fs, uri: fs.new_appendable_file(uri),
    "region": lambda fs, uri: fs.new_read_only_memory_region_from_file(uri),
    "whole file": lambda fs, uri: fs.read_file(uri),
    "stream to read": lambda fs, uri: fs.open(uri, "rb"),
    "stream to write": lambda fs, uri: fs.open(uri, "w"),
}


@pytest.fixture(params=["w", "wb"])
def kind(request):
    """A mode, and what makes the content of such a file of a text."""
    return request.param, str if request.param == "w" else str.encode


def is_whole(file):
    """Close a file; return whether it was stored, rather than ended by an interrupted write."""
    try:
        file.close()
    except AbortedError:
        return False
    finally:
        assert file.closed
    return True


@pytest.mark.parametrize("opener", OPENERS)
def test_a_file_whose_opening_is_interrupted_is_closed(opener, place):
    uri = place.write("f", b"content")
    # What is opened is kept: an interrupt of a finalizer would be another matter.
    for opened, _ in interrupted(list, lambda made: made.append(OPENERS[opener](place.fs, uri))):
        opened.clear()
        assert place.fs.open_count == 0


@pytest.mark.parametrize("buffering", [5, 1 << 16])
def test_a_stream_whose_write_was_interrupted_is_whole_or_has_ended(kind, buffering, place):
    mode, content = kind
    ended = 0

    def begin():
        file = place.fs.open(place / "f", mode, buffering)
        file.write(content("abcd"))
        return file

    for file, more in interrupted(begin, lambda file: file.flush()):
        assert more or place.read("f") == b"abcd"
        with suppress(AbortedError):
            file.write(content("efgh"))
        if is_whole(file):
            assert place.read("f") == b"abcdefgh"
        else:
            assert more
            ended += 1
        assert place.fs.open_count == 0
    assert ended


def test_an_interrupted_write_ends_the_with_block_by_the_interrupt(kind, place):
    mode, content = kind

    def write(file):  # raises what is no interrupt
        with file:
            for _ in range(3):
                file.write(content("content"))

    for file, _ in interrupted(lambda: place.fs.open(place / "f", mode, 5), write):
        with suppress(AbortedError):
            file.close()
        assert place.fs.open_count == 0


@pytest.mark.parametrize(
    ("mode", "buffering", "parts"),
    [
        ("w", -1, ["content"]),
        ("wb", -1, [b"content"]),
        # Of which io holds back 6000 when the file is closed, and the buffer has 12000 bytes.
        ("w", 1 << 14, [letter * 6000 for letter in "abc"]),
    ],
    ids=["text", "bytes", "text that has no room in the buffer"],
)
def test_an_interrupted_close_is_finished_by_the_next(mode, buffering, parts, place):
    whole = 0

    def begin():
        file = place.fs.open(place / "f", mode, buffering)
        for part in parts:
            file.write(part)
        return file

    for file, _ in interrupted(begin, lambda file: file.close()):
        if is_whole(file):
            assert place.read("f") == b"".join(map(os.fsencode, parts))
            whole += 1
        assert place.fs.open_count == 0
    assert whole > 1


def test_what_an_interrupted_close_has_to_report_is_reported_by_the_next(fixture_plugin):
    """The second point is the first line of ours after the plugin's close."""
    with service_of(fixture_plugin("close-fails")) as service:
        writer = service.filesystem("fixture").new_writable_file("fixture://h/f")
        assert interrupt(writer.close, point=1)
        with pytest.raises(ModularTFError, match="the upload was refused"):
            writer.close()
        writer.close()
        assert writer.closed


def test_what_an_interrupted_end_of_a_filesystem_has_to_report_is_reported_by_the_next(
    fixture_plugin,
):
    with service_of(fixture_plugin("close-fails")) as service:
        fs = service.filesystem("fixture")
        writer = fs.new_writable_file("fixture://h/f")
        for point in points():
            assert interrupt(fs.close, point=point)
            if fs.open_count == 0:
                break
        with pytest.raises(ModularTFError, match="the upload was refused"):
            fs.close()
        fs.close()
        writer.close()


@pytest.mark.parametrize(
    "error",
    [ResourceExhaustedError("the store is full"), OSError(errno.ENOSPC, "the store is full")],
    ids=["of the package", "of Python"],
)
def test_what_failed_in_part_is_not_written_again(error, store, fs):
    """Nobody knows which part: a second try could write it twice, and call that a success."""
    file = fs.open("mem://h/f", "wb")
    file.write(b"0123456789")
    store.faults["append", "/f"] = error
    with pytest.raises(type(error), match="the store is full"):
        file.flush()
    store.faults.clear()
    with pytest.raises(type(error), match="the store is full"):
        file.close()

    assert file.closed
    assert store.calls.count(("close_writer", "/f")) == 1
    assert store.files == {"/f": b""}


def test_a_flush_reaches_the_store(kind, place):
    mode, content = kind
    with place.fs.open(place / "f", mode) as file:
        file.write(content("early"))
        file.flush()
        assert place.read("f") == b"early"


def test_a_store_keeps_nothing_of_a_file_whose_append_was_interrupted_at_any_point(
    place, monkeypatch
):
    monkeypatch.setattr(type(place.fs), "is_object_store", True)

    def begin():
        file = place.fs.new_writable_file(place / "f")
        file.append(b"first")
        return file

    # At the first point it has not begun.
    for file, more in interrupted(begin, lambda file: file.append(b"second"), first=1):
        assert file.is_torn == more
        file.close()


def test_a_store_keeps_a_file_that_was_given_what_is_no_bytes(place, monkeypatch):
    monkeypatch.setattr(type(place.fs), "is_object_store", True)
    with place.fs.new_writable_file(place / "f") as file:
        with pytest.raises(TypeError):
            file.append("text")
        assert not file.is_torn
