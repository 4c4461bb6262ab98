"""What the bytes say of a file that is on its way, and what the kernel says of its writers."""

from __future__ import annotations

import mmap
import os

import pytest

from modular_tf.service.reload.watching.completeness import why_incomplete, why_unfinished
from modular_tf.service.reload.watching.open_for_writing import is_open_for_writing


@pytest.fixture
def file(tmp_path):
    return tmp_path / "libx.so"


def test_a_library_is_whole(file, library):
    file.write_bytes(library)

    assert why_incomplete(str(file)) is None


def test_no_beginning_of_a_library_is_whole(file, library):
    wrong = []
    for length in {*range(200), *range(0, len(library), 997), len(library) - 1}:
        file.write_bytes(library[:length])
        if why_incomplete(str(file)) is None:
            wrong.append(length)

    assert wrong == []


def test_no_beginning_of_a_library_is_whole_where_room_is_made_for_all(file, library):
    wrong = []
    for length in {*range(0, len(library) - 4096, 997), 0, 4}:
        file.write_bytes(library[:length].ljust(len(library), b"\0"))
        if why_incomplete(str(file)) is None:
            wrong.append(length)

    assert wrong == []


@pytest.mark.parametrize("content", [b"#!/bin/sh\n", b"GROUP ( libx.so.1 )", b"\x7fELG"])
def test_what_is_no_library_is_whole(file, content):
    file.write_bytes(content)

    assert why_incomplete(str(file)) is None


def test_a_missing_file_is_nobodys(file):
    assert why_incomplete(str(file)) is None
    assert is_open_for_writing(str(file)) is None


def test_a_file_that_nobody_writes(file, library):
    file.write_bytes(library)

    with file.open("rb"):
        assert is_open_for_writing(str(file)) is False


def test_a_file_that_somebody_writes(file, library):
    with file.open("wb", buffering=0) as stream:
        stream.write(library)
        assert is_open_for_writing(str(file)) is True
    assert is_open_for_writing(str(file)) is False


def test_a_file_that_somebody_maps(file, library):
    file.write_bytes(library)
    with file.open("r+b") as stream:
        mapped = mmap.mmap(stream.fileno(), 0)

    assert is_open_for_writing(str(file)) is True
    mapped.close()
    assert is_open_for_writing(str(file)) is False


def test_nobody_tells_of_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "libx.so")

    assert is_open_for_writing(str(tmp_path / "libx.so")) is None


def test_a_writer_that_comes_in_that_instant_kills_nobody(run_python, file, library):
    file.write_bytes(library)

    run_python(
        """
        import os, sys, threading
        from modular_tf.service.reload.watching.open_for_writing import is_open_for_writing

        stop, path = threading.Event(), sys.argv[1]

        def write():
            while not stop.is_set():
                os.close(os.open(path, os.O_WRONLY))

        threads = [threading.Thread(target=write) for _ in range(3)]
        for thread in threads:
            thread.start()
        answers = {is_open_for_writing(path) for _ in range(20000)}
        stop.set()
        for thread in threads:
            thread.join()
        assert answers <= {True, False}, answers
        """,
        file,
    )


def test_a_file_is_unfinished_while_it_is_open_for_writing_or_cut_off(tmp_path, library):
    file = tmp_path / "libx.so"
    file.write_bytes(library)
    assert why_unfinished(str(file)) is None

    with file.open("r+b"):
        assert why_unfinished(str(file)) == "it is open for writing"
    file.write_bytes(library[: len(library) // 2])
    assert "is cut off" in why_unfinished(str(file))
