"""Files that are read ahead: what is fetched, what is kept, and that every byte is right."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.filesystem.readahead import (
    FIRST_BLOCK,
    LARGEST_BLOCK,
    LARGEST_BLOCK_OVER_HOLES,
    MOST_BYTES,
    FetchTimes,
    ReadaheadFile,
    read_ahead,
)

MIB = 1 << 20


class Noted(RandomAccessFile):
    """A file in memory that notes what is read, and gives as much at once as it is told to."""

    def __init__(self, data):
        self.uri = "far://file"
        self.data = data
        self.most = len(data)
        self.reads = []
        self.closed = False

    def readinto(self, offset, buffer):
        self.reads.append((offset, len(buffer)))
        data = self.data[offset : offset + min(len(buffer), self.most)]
        memoryview(buffer)[: len(data)] = data
        return len(data)

    def close(self):
        self.closed = True


class Known(FetchTimes):
    """What is known of a store, and is not learned."""

    def __init__(self, reach):
        super().__init__()
        self.reach = reach

    def note(self, n, seconds):
        """Learn nothing."""


def random_bytes(size):
    """Return bytes that are other ones in each block; more of them than a MiB are not all drawn."""
    drawn = os.urandom(min(size, MIB + 1))
    return (drawn * (size // len(drawn) + 1))[:size] if drawn else b""


def opened(size, reach=0, **options):
    file = Noted(random_bytes(size))
    return file, ReadaheadFile(file, size, times=Known(reach), **options)


def read_on(ahead, start, end, step):
    return b"".join(ahead.read(offset, step) for offset in range(start, end, step))


def test_blocks_grow_while_reads_are_sequential():
    file, ahead = opened(26 * MIB)

    assert read_on(ahead, 0, 26 * MIB, 1 << 16) == file.data
    lengths = [n for _, n in file.reads]
    assert lengths[:6] == [FIRST_BLOCK << n for n in range(6)]
    assert max(lengths) == LARGEST_BLOCK
    assert sum(lengths) == 26 * MIB
    file.reads.clear()
    ahead.read(17 * MIB, 100)
    assert file.reads == [(17 * MIB, FIRST_BLOCK)]


@pytest.mark.parametrize(
    ("places", "lengths"),
    [
        (range(30, 23, -1), [FIRST_BLOCK] * 7),
        (range(30, 58, 4), [FIRST_BLOCK] * 7),
        ((40, 41, 10, 50, 51, 5, 30, 31, 20), [FIRST_BLOCK] * 9),
        ((10, 12, 40, 42), [FIRST_BLOCK, FIRST_BLOCK, FIRST_BLOCK, 6 * MIB]),
    ],
    ids=["back", "far", "one short jump is chance", "another order here and there"],
)
def test_jumps_fetch_little_but_for_short_ones_one_after_the_other(places, lengths):
    file, ahead = opened(60 * MIB, reach=3 * MIB)
    for place in places:
        ahead.read(place * MIB, 100)

    assert [n for _, n in file.reads] == lengths


def test_a_block_over_holes_has_its_bound_and_no_more_is_stored_than_allowed():
    file, ahead = opened(120 * MIB, reach=100 * MIB)
    for place in range(MIB, 120 * MIB, 8 * MIB):
        ahead.read(place, 100)
        assert sum(len(block) for _, block in ahead._blocks) <= MOST_BYTES

    assert max(n for _, n in file.reads) == LARGEST_BLOCK_OVER_HOLES


def test_the_reach_is_what_comes_within_one_latency():
    times = FetchTimes()
    times.note(100, 0.02)
    assert times.reach == 0
    times.note(8 * MIB, 0.02 + 0.1)  # 80 MiB a second
    assert times.reach == pytest.approx(1.6 * MIB, rel=0.01)
    times.note(MIB, 5.0)  # something else may have held it up
    assert MIB < times.reach < 1.6 * MIB
    times.note(8 * MIB, 5.0)
    assert times.reach < MIB // 10


def test_several_blocks_are_stored_and_those_used_last():
    file, ahead = opened(4 * MIB, most=2 * FIRST_BLOCK)
    for place in (0, MIB, 0, 2 * MIB):
        ahead.read(place, 10)
    file.reads.clear()

    for place in (0, 2 * MIB):
        assert ahead.read(place + 10, 10) == file.data[place + 10 : place + 20]
    assert file.reads == []
    ahead.read(MIB, 10)
    assert len(file.reads) == 1


def test_a_file_may_grow_behind_what_was_known():
    file, ahead = opened(1000)
    ahead.read(0, 1000)
    file.data += b"more"
    file.most = 5000

    assert ahead.read(1000, 10) == b"more"


def fail_once(file, at):
    """Let the first read from an offset on fail."""
    real, failures = file.readinto, [OSError("cut off")]

    def readinto(offset, buffer):
        if failures and offset >= at:
            raise failures.pop()
        return real(offset, buffer)

    file.readinto = readinto


@given(
    st.lists(
        st.tuples(st.integers(0, 5200), st.integers(0, 700), st.booleans()), min_size=1, max_size=30
    ),
    st.integers(1, 300),
    st.integers(0, 2000),
)
def test_every_byte_is_right(reads, first, reach):
    file, ahead = opened(5000, first=first, most=900, reach=reach)
    for offset, n, into in reads:
        expected = file.data[offset : offset + n]
        if into:
            buffer = bytearray(n)
            assert bytes(buffer[: ahead.readinto(offset, buffer)]) == expected
        else:
            assert ahead.read(offset, n) == expected


class Measured(Noted):
    """A file that knows its length."""

    def known_length(self):
        return len(self.data)


@pytest.fixture
def serving(fs):
    """Return the filesystem that opens a file."""

    def serve(file):
        fs.new_random_access_file = lambda _uri: file
        return fs

    return serve


@pytest.mark.parametrize("kind", [Noted, Measured])
def test_a_stream_of_a_store_that_is_read_in_small_steps_makes_few_requests(kind, serving):
    file = kind(random_bytes(16 * MIB + 5))
    with serving(file).open("mem://h/file", "rb") as stream:
        assert b"".join(iter(lambda: stream.read(8192), b"")) == file.data
        assert len(file.reads) <= 12
        file.reads.clear()
        stream.seek(5 * MIB)
        assert stream.read(3) == file.data[5 * MIB : 5 * MIB + 3]
        assert sum(length for _, length in file.reads) <= MIB
    assert file.closed


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_stream_that_failed_to_read_the_rest_reads_it_again(buffering, serving):
    file = Noted(random_bytes(100_000))
    file.most = 30_000
    fail_once(file, 1)
    with serving(file).open("mem://h/file", "rb", buffering=buffering) as stream:
        with pytest.raises(OSError, match="cut off"):
            stream.read()
        assert stream.read() == file.data


def test_a_file_of_this_machine_is_not_read_ahead(fs):
    file = Noted(bytes(MIB))
    assert read_ahead(fs, file) is not file
    fs.scheme = "file"
    assert read_ahead(fs, file) is file


def test_a_file_without_a_known_length_is_read_to_its_end():
    noted = Noted(random_bytes(MIB + 3))
    file = ReadaheadFile(noted, None)
    assert file.known_length() is None
    assert file.read(MIB, 10) == noted.data[MIB:]
    assert file.read(MIB + 3, 10) == b""
    noted.data += b"more"
    noted.most = len(noted.data)
    assert file.read(MIB + 3, 10) == b"more"
