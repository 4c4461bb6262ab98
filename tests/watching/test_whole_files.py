"""What the bytes of a file say that is being written."""

from __future__ import annotations

import pytest

from modular_tf.service.reload.watching import why_incomplete


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
