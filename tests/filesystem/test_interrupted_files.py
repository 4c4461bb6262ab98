"""Files whose opening, writing or closing a signal handler interrupts, at every point in turn."""

from __future__ import annotations

import errno
import io
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from modular_tf.errors import AbortedError, ModularTFError, ResourceExhaustedError
from modular_tf.filesystem import plugin_filesystem
from modular_tf.filesystem.files import WritableFile
from modular_tf.service.service import PluginService
from tests.fixtures.interrupts import interrupt, points

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


def is_whole(file) -> bool:
    """Close a file; return whether it was stored, rather than ended by an interrupted write."""
    try:
        file.close()
    except AbortedError:
        return False
    finally:
        assert file.closed
    return True


@pytest.mark.parametrize("buffering", [5, 1 << 16])
@pytest.mark.parametrize("mode", ["w", "wb"])
def test_a_stream_whose_write_was_interrupted_is_whole_or_has_ended(mode, buffering, place):
    first, second = ("abcd", "efgh") if mode == "w" else (b"abcd", b"efgh")
    ended = 0
    for point in points():
        file = place.fs.open(place / "f", mode, buffering)
        file.write(first)
        more = interrupt(file.flush, point=point)
        assert more or place.read("f") == b"abcd"
        with suppress(AbortedError):
            file.write(second)
        if is_whole(file):
            assert place.read("f") == b"abcdefgh"
        else:
            assert more
            ended += 1
        assert place.fs.open_count == 0
        if not more:
            break
    assert ended


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_an_interrupted_write_ends_the_with_block_by_the_interrupt(mode, place):
    def write(file):
        with file:
            for _ in range(3):
                file.write("content" if mode == "w" else b"content")

    for point in points():
        file = place.fs.open(place / "f", mode, 5)
        more = interrupt(lambda file=file: write(file), point=point)  # raises what is no interrupt
        with suppress(AbortedError):
            file.close()
        assert place.fs.open_count == 0
        if not more:
            assert point
            break


@pytest.mark.parametrize("mode", ["w", "wb"])
def test_an_interrupted_close_is_finished_by_the_next(mode, place):
    content = "content" if mode == "w" else b"content"
    whole = 0
    for point in points():
        file = place.fs.open(place / "f", mode)
        file.write(content)
        more = interrupt(file.close, point=point)
        if is_whole(file):
            assert place.read("f") == b"content"
            whole += 1
        assert file.closed
        assert place.fs.open_count == 0
        if not more:
            assert point
            break
    assert whole > 1


def test_text_that_has_no_room_in_the_buffer_is_not_lost_in_silence(place):
    """The buffer holds 12000 bytes, and io holds back 6000 when the file is closed."""
    for point in points():
        file = place.fs.open(place / "f", "w", 1 << 14)
        for letter in "abc":
            file.write(letter * 6000)
        more = interrupt(file.close, point=point)
        if is_whole(file):
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
        patch.setattr(plugin_filesystem, "_close_writer", _time_out)
        with pytest.raises(TimeoutError):
            file.close()

    file.close()

    assert file.closed
    assert place.fs.open_count == 0
    assert place.read("f") == b"content"


def _time_out(_):
    raise TimeoutError


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
