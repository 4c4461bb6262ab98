"""Files whose opening, writing or closing a signal handler interrupts, at every point in turn."""

from __future__ import annotations

import errno
import io
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from modular_tf.errors import ModularTFError, ResourceExhaustedError
from modular_tf.filesystem import plugin_files
from modular_tf.filesystem.files import WritableFile
from modular_tf.filesystem.writer_streams import WriterStream
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import Interrupt, interrupt, points

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.filesystem.filesystem import Filesystem

OPENERS: dict[str, Callable[[Filesystem, str], object]] = {
    "reader": lambda fs, uri: fs.new_random_access_file(uri),
    "writer": lambda fs, uri: fs.new_writable_file(uri),
    "appender": lambda fs, uri: fs.new_appendable_file(uri),
    "region": lambda fs, uri: fs.new_read_only_memory_region_from_file(uri),
    "whole file": lambda fs, uri: fs.read_file(uri),
    "stream to read": lambda fs, uri: fs.open(uri, "rb"),
    "stream to write": lambda fs, uri: fs.open(uri, "w"),
}


@pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS)
def test_a_file_whose_opening_is_interrupted_is_closed(opener, place):
    uri = place.write("f", b"content")
    for point in points():
        opened: list[object] = []  # kept: an interrupt of a finalizer would be another matter
        more = interrupt(lambda opened=opened: opened.append(opener(place.fs, uri)), point=point)
        opened.clear()
        assert place.fs.open_count == 0
        if not more:
            assert point
            break


@pytest.mark.parametrize("buffering", [5, 1 << 16])
@pytest.mark.parametrize("mode", ["w", "wb"])
def test_what_is_written_on_after_an_interrupt_is_written_once(mode, buffering, place):
    """Also where the interrupt came when the plugin had taken the bytes."""
    first, second = ("abcd", "efgh") if mode == "w" else (b"abcd", b"efgh")
    for point in points():
        file = place.fs.open(place / "f", mode, buffering)
        file.write(first)
        more = interrupt(file.flush, point=point)
        assert more or place.read("f") == b"abcd"
        assert mode == "w" or file.tell() == 4
        file.write(second)
        file.close()
        assert place.read("f") == b"abcdefgh"
        if not more:
            assert point
            break


def test_what_two_interrupts_delay_is_written_once(place):
    """The first comes when the plugin has taken the bytes, the second when they are told again."""
    for first in points():
        file, was_taken = _interrupted_flush(place, first)
        file.close()
        if was_taken:
            break
    for second in points():
        file, was_taken = _interrupted_flush(place, first)
        more = interrupt(file.flush, point=second)
        assert was_taken
        assert file.tell() == 4
        file.write(b"efgh")
        file.close()
        assert place.read("f") == b"abcdefgh"
        if not more:
            assert second
            break


class _TakenAndInterrupted(WritableFile):
    """Takes the first bytes, and is interrupted before it can say so."""

    uri = "x://f"

    def __init__(self):
        self.content = b""

    def append(self, data):
        is_first = not self.content
        self.content += bytes(data)
        if is_first:
            raise Interrupt

    def appended(self):
        return len(self.content)

    tell = appended

    def close(self):
        """Nothing is open."""


def test_a_second_interrupt_before_the_first_is_noted_writes_nothing_twice():
    """As two signals do that come during one append."""
    for point in points():
        file = _TakenAndInterrupted()
        stream = io.BufferedWriter(WriterStream(file, 0, "wb", 5), 5)
        stream.write(b"abcd")
        more = interrupt(stream.flush, point=point)
        with suppress(Interrupt):  # of the append, where the other one came before it
            stream.flush()
        assert stream.tell() == 4
        stream.write(b"efgh")
        stream.close()
        assert file.content == b"abcdefgh"
        if not more:
            assert point
            break


def _interrupted_flush(place, point):
    """Return a file of four bytes, and whether the plugin has them in spite of the interrupt."""
    file = place.fs.open(place / "f", "wb")
    file.write(b"abcd")
    interrupt(file.flush, point=point)
    return file, bool(file.raw._told_late)


def test_what_follows_an_interrupted_write_of_the_size_of_the_buffer_is_kept(place):
    """From Python 3.13 on such a write passes the buffer by: it comes once or not at all."""
    for point in points():
        file = place.fs.open(place / "f", "wb", 4)
        more = interrupt(lambda file=file: file.write(b"abcd") and file.flush(), point=point)
        file.write(b"ef")
        file.write(b"gh")
        file.close()
        assert place.read("f") in {b"efgh", b"abcdefgh"}
        if not more:
            assert place.read("f") == b"abcdefgh"
            assert point
            break


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_an_interrupted_close_is_finished_by_the_next(mode, place):
    content = "content" if mode == "w" else b"content"
    for point in points():
        file = place.fs.open(place / "f", mode)
        file.write(content)
        more = interrupt(file.close, point=point)
        file.close()
        assert file.closed
        assert place.fs.open_count == 0
        assert place.read("f") == b"content"
        if not more:
            assert point
            break


def test_text_that_has_no_room_in_the_buffer_survives_an_interrupted_close(place):
    """The buffer holds 12000 bytes, and io holds back 6000 when the file is closed."""
    for point in points():
        file = place.fs.open(place / "f", "w", 1 << 14)
        for letter in "abc":
            file.write(letter * 6000)
        more = interrupt(file.close, point=point)
        file.close()
        assert place.read("f") == b"".join(letter * 6000 for letter in (b"a", b"b", b"c"))
        if not more:
            assert point
            break


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_a_close_that_a_signal_handler_ends_with_an_exception_is_finished_by_the_next(
    mode, place, monkeypatch
):
    file = place.fs.open(place / "f", mode)
    file.write("content" if mode == "w" else b"content")
    with monkeypatch.context() as patch:
        patch.setattr(plugin_files, "_close_writer", _time_out)
        with pytest.raises(TimeoutError):
            file.close()

    file.close()

    assert file.closed
    assert place.fs.open_count == 0
    assert place.read("f") == b"content"


def _time_out(_):
    raise TimeoutError


@pytest.mark.parametrize("buffering", [0, -1])
def test_the_position_is_right_after_an_interrupt(buffering, place):
    for point in points():
        with place.fs.open(place / "f", "wb", buffering) as file:
            more = interrupt(lambda: file.write(bytes(1 << 17)), point=point)
            assert file.tell() in {0, 1 << 17}
            expected = file.tell()
        assert place.fs.get_file_size(place / "f") == expected
        if not more:
            assert point
            break


@pytest.fixture
def failing_close(fixture_plugin):
    with PluginService(plugin_paths=[fixture_plugin("close-fails")], bundled=False) as service:
        service.load()
        yield service.filesystem("fixture")


def test_what_an_interrupted_close_has_to_tell_is_told_by_the_next(failing_close):
    """The second point is the first line of ours after the plugin's close."""
    writer = failing_close.new_writable_file("fixture://h/f")
    assert interrupt(writer.close, point=1)

    with pytest.raises(ModularTFError, match="the upload was refused"):
        writer.close()
    writer.close()
    assert writer.closed


def test_what_an_interrupted_end_of_a_filesystem_has_to_tell_is_told_by_the_next(failing_close):
    failing_close.new_writable_file("fixture://h/f")
    writer = failing_close.new_writable_file("fixture://h/f")
    for point in points():
        assert interrupt(failing_close.close, point=point)
        if failing_close.open_count == 0:
            break

    assert "the upload was refused" in str(failure_of(failing_close.close))
    assert failure_of(failing_close.close) is None
    writer.close()


def failure_of(function):
    try:
        function()
    except ModularTFError as failure:
        return failure
    return None


class _FullStore:
    """A store that keeps half of what it has no room for, and forgets that it failed."""

    def __init__(self, error):
        self.content = b""
        self.room = 6
        self.error = error
        self.closes = 0

    def new_writable_file(self, _):
        return _FullFile(self)


class _FullFile(WritableFile):
    uri = "full://f"

    def __init__(self, store):
        self._store = store

    def append(self, data):
        store, data = self._store, bytes(data)
        store.content += data[: store.room]
        if len(store.content) >= store.room:
            raise store.error

    def tell(self):
        return len(self._store.content)

    def close(self):
        self._store.closes += 1


@pytest.mark.parametrize(
    "error",
    [ResourceExhaustedError("the store is full"), OSError(errno.ENOSPC, "the store is full")],
    ids=["of the package", "of Python"],
)
def test_what_failed_in_part_is_not_written_again(error):
    """Nobody knows which part: a second try could write it twice, and call that a success."""
    store = _FullStore(error)
    with PluginService(bundled=False) as service:
        service.register_filesystem("full", store)
        file = service.filesystem("full").open("full://f", "wb")
        file.write(b"0123456789")
        with pytest.raises(type(error), match="the store is full"):
            file.flush()
        store.room = 1000
        with pytest.raises(type(error), match="the store is full"):
            file.close()

    assert file.closed
    assert store.closes == 1
    assert store.content == b"012345"


def test_a_flush_reaches_the_store(place):
    for mode, content in (("w", "early"), ("wb", b"early")):
        with place.fs.open(place / "f", mode) as file:
            file.write(content)
            file.flush()
            assert place.read("f") == b"early"


def test_streams_are_still_what_io_makes(place):
    with place.fs.open(place / "f", "w") as text, place.fs.open(place / "g", "wb") as binary:
        assert isinstance(text, io.TextIOWrapper)
        assert isinstance(text.buffer, io.BufferedWriter)
        assert isinstance(binary, io.BufferedWriter)


def test_a_store_keeps_nothing_of_a_file_whose_append_was_interrupted_at_any_point(
    place, monkeypatch
):
    monkeypatch.setattr(type(place.fs), "is_object_store", True)
    for point in itertools.count(1):  # at the first it has not begun
        file = place.fs.new_writable_file(place / "f")
        file.append(b"first")
        more = interrupt(lambda file=file: file.append(b"second"), point=point)
        assert file.is_torn == more
        file.close()
        if not more:
            assert point > 1
            break


def test_a_store_keeps_a_file_that_was_given_what_is_no_bytes(place, monkeypatch):
    monkeypatch.setattr(type(place.fs), "is_object_store", True)
    with place.fs.new_writable_file(place / "f") as file:
        with pytest.raises(TypeError):
            file.append("text")
        assert not file.is_torn
