"""Files that are read ahead: what is fetched, what is kept, and that every byte is right."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.readahead import FIRST_BLOCK, LARGEST_BLOCK, MOST_BYTES, ReadaheadFile

MIB = 1 << 20


class Noted(RandomAccessFile):
    """A file in memory that notes what is read, and gives as much at once as it is told to."""

    def __init__(self, data: bytes) -> None:
        self.uri = "far://file"
        self.data = data
        self.most = len(data)
        self.reads: list[tuple[int, int]] = []
        self.closed = False

    def readinto(self, offset, buffer):
        self.reads.append((offset, len(buffer)))
        data = self.data[offset : offset + min(len(buffer), self.most)]
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def close(self):
        self.closed = True


def opened(size, **options):
    file = Noted(os.urandom(size))
    return file, ReadaheadFile(file, size, **options)


def read_on(ahead, start, end, step):
    return b"".join(ahead.read(offset, step) for offset in range(start, end, step))


def test_blocks_grow_while_reads_are_sequential():
    file, ahead = opened(20 * MIB)

    assert read_on(ahead, 0, 20 * MIB, 1 << 16) == file.data
    lengths = [n for _, n in file.reads]
    assert lengths[:6] == [FIRST_BLOCK << n for n in range(6)]
    assert max(lengths) == LARGEST_BLOCK
    assert sum(lengths) == 20 * MIB


def test_a_jump_fetches_little():
    file, ahead = opened(20 * MIB)
    read_on(ahead, 0, 8 * MIB, 1 << 16)
    file.reads.clear()

    ahead.read(17 * MIB, 100)
    assert file.reads == [(17 * MIB, FIRST_BLOCK)]
    ahead.read(0, 100)
    assert file.reads[1:] == [(0, FIRST_BLOCK)]


def test_a_long_read_is_passed_on_as_it_is():
    file, ahead = opened(20 * MIB)

    assert ahead.read(MIB, 9 * MIB) == file.data[MIB : 10 * MIB]
    assert file.reads == [(MIB, 9 * MIB)]


def test_several_blocks_are_kept_and_those_used_last():
    file, ahead = opened(4 * MIB, most=2 * FIRST_BLOCK)
    for place in (0, MIB, 0, 2 * MIB):
        ahead.read(place, 10)
    file.reads.clear()

    for place in (0, 2 * MIB):
        assert ahead.read(place + 10, 10) == file.data[place + 10 : place + 20]
    assert file.reads == []
    ahead.read(MIB, 10)
    assert len(file.reads) == 1


def test_no_more_is_kept_than_allowed():
    _, ahead = opened(80 * MIB)
    for place in range(0, 80 * MIB, MIB // 2):
        ahead.read(place, 10)
        assert sum(len(block) for _, block in ahead._blocks) <= MOST_BYTES
    for place in range(0, 80 * MIB, MIB):
        ahead.read(place, MIB)
        assert sum(len(block) for _, block in ahead._blocks) <= MOST_BYTES


def test_nothing_is_read_ahead_behind_the_end():
    file, ahead = opened(FIRST_BLOCK + 10)
    read_on(ahead, 0, FIRST_BLOCK + 10, 1000)

    assert file.reads[0] == (0, FIRST_BLOCK)
    assert all(offset < FIRST_BLOCK + 10 and n <= 1000 for offset, n in file.reads[1:])


def test_a_short_block_is_not_the_end():
    file, ahead = opened(MIB)
    file.most = 1000

    assert ahead.read(0, 1000) == file.data[:1000]
    file.most = MIB
    assert ahead.read(1000, 5000) == file.data[1000:6000]


def test_a_file_may_grow_behind_what_was_known():
    file, ahead = opened(1000)
    ahead.read(0, 1000)
    file.data += b"more"
    file.most = 5000

    assert ahead.read(1000, 10) == b"more"


def test_a_failed_read_is_tried_again():
    file, ahead = opened(MIB)
    real, failures = file.readinto, [OSError("cut off")]

    def readinto(offset, buffer):
        if failures:
            raise failures.pop()
        return real(offset, buffer)

    file.readinto = readinto
    with pytest.raises(OSError, match="cut off"):
        ahead.read(0, 10)
    assert ahead.read(0, 10) == file.data[:10]


def test_closing_it_closes_the_file_and_frees_the_blocks():
    file, ahead = opened(MIB)
    ahead.read(0, 10)
    ahead.close()

    assert file.closed
    assert ahead._blocks == ()


@given(
    st.lists(
        st.tuples(st.integers(0, 5200), st.integers(0, 700), st.booleans()), min_size=1, max_size=30
    ),
    st.integers(1, 300),
)
def test_every_byte_is_right(reads, first):
    file, ahead = opened(5000, first=first, most=900)
    for offset, n, into in reads:
        expected = file.data[offset : offset + n]
        if into:
            buffer = bytearray(n)
            assert bytes(buffer[: ahead.readinto(offset, buffer)]) == expected
        else:
            assert ahead.read(offset, n) == expected
