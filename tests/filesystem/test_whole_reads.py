"""Whole files: by one native call where they are short, and closed whatever happens."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from modular_tf.filesystem import plugin_filesystem
from modular_tf.filesystem.files import SHORT_FILE, RandomAccessFile
from modular_tf.filesystem.store_files import PiecewiseReader
from tests.fixtures.interrupts import interrupted


def test_a_file_that_tells_no_length_is_read_to_its_end(service):
    """As all under /proc, whose length is 0."""
    file, fs = Path("/proc/version"), service.filesystem("")

    assert file.stat().st_size == 0
    assert fs.read_file(str(file)) == file.read_bytes()
    with fs.open(str(file), "rb") as stream:
        assert stream.read() == file.read_bytes()


def test_first_bytes_come_with_the_open_file_or_with_none_where_it_ended(service, tmp_path):
    fs, uri = service.filesystem(""), str(tmp_path / "f")
    (tmp_path / "f").write_bytes(b"some text")
    for n in (9, 10, SHORT_FILE - 1):
        assert fs.read_first(uri, n) == (b"some text", None)
    assert fs.open_count == 0
    for n in (0, 4, SHORT_FILE):
        data, file = fs.read_first(uri, n)
        with file:
            assert (data, file.read(0, 9)) == (b"some text"[:n], b"some text")


def test_a_long_file_whose_reading_is_interrupted_is_closed(place):
    uri = place.write("f", b"x" * 3 * SHORT_FILE)
    for _ in interrupted(lambda: None, lambda _: place.fs.read_file(uri)):
        assert place.fs.open_count == 0


class FileOfPython(RandomAccessFile):
    """A file of zeros, which notes what is read."""

    uri = "store://bucket/file"

    def __init__(self, length, before_read=lambda offset: None):
        self.reads = []
        self._length = length
        self._before_read = before_read

    def readinto(self, offset, buffer):
        self._before_read(offset)
        self.reads.append((offset, len(buffer)))
        return len(buffer)

    def known_length(self):
        return self._length

    def close(self):
        self.reads.append("closed")


def test_a_read_in_pieces_ends_when_all_of_them_have_come():
    began = threading.Event()
    file = FileOfPython(10, lambda offset: began.set() if offset else began.wait(60))

    assert PiecewiseReader(file, 4, length=10).read(0, 10) == bytes(10)
    assert sorted(offset for offset, _ in file.reads) == [0, 4, 8]


def test_bringing_pages_changes_no_byte():
    data = bytearray(os.urandom(5 << 20))
    before = bytes(data)
    for part in (memoryview(data), memoryview(data)[100:300], memoryview(data)[:0]):
        plugin_filesystem.bring_pages(part)
    assert data == before
