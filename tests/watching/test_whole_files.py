"""What the bytes of a file say that is being written."""

from __future__ import annotations

import pytest

from modular_tf.service.reload.watching import why_incomplete


@pytest.fixture
def file(tmp_path):
    return tmp_path / "libx.so"


def test_a_library_is_whole_and_no_beginning_of_it_is_even_with_room_for_all(file, library):
    def lengths_taken_for_whole(first, room):
        for length in {*first, *range(0, len(library) - room, 997)}:
            file.write_bytes(library[:length].ljust(len(library) if room else 0, b"\0"))
            if why_incomplete(str(file)) is None:
                yield length

    file.write_bytes(library)
    assert why_incomplete(str(file)) is None
    assert list(lengths_taken_for_whole([*range(200), len(library) - 1], room=0)) == []
    assert list(lengths_taken_for_whole([4], room=4096)) == []


@pytest.mark.parametrize("content", [b"#!/bin/sh\n", b"GROUP ( libx.so.1 )", b"\x7fELG"])
def test_neither_other_content_nor_a_missing_file_is_waited_for(file, content):
    assert why_incomplete(str(file)) is None

    file.write_bytes(content)

    assert why_incomplete(str(file)) is None
