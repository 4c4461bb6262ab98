"""Reads of stores are read ahead in growing blocks, and small writes are gathered."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.xdist_group("tensorflow")]

_START = """
from modular_tf import FileStatistics, RandomAccessFile, WritableFile

KiB = 1 << 10
data = bytearray(b"x" * (40 << 20))
asked, written = [], []

class Reader(RandomAccessFile):
    def __init__(self, uri):
        self.uri = uri
    def readinto(self, offset, buffer):
        size = memoryview(buffer).nbytes
        asked.append((offset // KiB, size // KiB))
        found = data[offset : offset + size]
        memoryview(buffer)[: len(found)] = found
        return len(found)
    def close(self):
        pass

class Writer(WritableFile):
    uri = "far://w"
    def append(self, block):
        written.append(memoryview(block).nbytes)
    def tell(self):
        return sum(written)
    def close(self):
        written.append("close")

class Far:
    def new_random_access_file(self, uri):
        return Reader(uri)
    def new_writable_file(self, uri):
        return Writer()
    def stat(self, uri):
        return FileStatistics(len(data), 0, False)

mtft.register_filesystem("far", Far(), service=started())
"""


@pytest.fixture
def run(run_bridge):
    """Return what a subject prints last, as JSON."""
    return lambda code: json.loads(run_bridge(_START + code).stdout.splitlines()[-1])


def test_blocks_grow_while_reads_go_on_and_a_jump_makes_them_small_again(run):
    asked = run("""
records = tf.data.FixedLengthRecordDataset("far://r", 64 * KiB, buffer_size=64 * KiB)
assert sum(1 for _ in records) == 40 * 16
sequential = list(asked)
asked.clear()
file = tf.io.gfile.GFile("far://r", "rb")
for offset in (30 << 20, 10 << 20, 20 << 20):
    file.seek(offset)
    assert file.read(100) == b"x" * 100
print(json.dumps([sequential, asked]))
""")
    sequential, jumping = asked
    sizes = [size for _, size in sequential]
    assert sizes[:4] == [256, 1024, 4096, 16384]
    assert max(sizes) == 16384
    assert len(sizes) < 9
    assert max(size for _, size in jumping) == 1024  # GFile itself asks for two times 256 KiB


# TensorFlow reads records at any place, as in TensorBoard: it asks the file for each piece, and
# remembers no end, which GFile does.
_RECORDS = """
from tensorflow.python.lib.io._pywrap_record_io import RandomRecordReader
import random
chance = random.Random(1)

def made(sizes):
    records = [chance.randbytes(size) for size in sizes]
    made_of = f"ram://made-{len(data)}"
    with tf.io.TFRecordWriter(made_of) as writer:
        for record in records:
            writer.write(record)
    data.extend(tf.io.gfile.GFile(made_of, "rb").read())
    return records

del data[:]
"""


def test_reads_of_any_size_at_any_place_are_those_of_the_file(run):
    different = run(
        _RECORDS
        + """
sizes = [chance.choice([0, 1, 50, 5000, 100_000, 300_000, 2 << 20]) for _ in range(200)]
records = made(sizes)
offsets = [sum(sizes[:at]) + 16 * at for at in range(len(sizes))]
reader = RandomRecordReader("far://r")
different, at = [], 0
for _ in range(600):
    at = chance.randrange(len(sizes)) if at == len(sizes) or chance.random() < 0.2 else at
    found, end = reader.read(offsets[at])
    if found != records[at] or end != offsets[at] + sizes[at] + 16:
        different.append(at)
    at += 1
print(json.dumps(different))
"""
    )
    assert different == []


def test_what_was_short_is_asked_for_again_when_the_file_has_grown(run):
    found = run(
        _RECORDS
        + """
first, second = made([1000]), None
reader = RandomRecordReader("far://r")
one, end = reader.read(0)
try:
    reader.read(end)
except IndexError:
    print("the end")
second = made([500])
two, _ = reader.read(end)
print(json.dumps([one == first[0], two == second[0]]))
"""
    )
    assert found == [True, True]


def test_appends_of_records_are_gathered(run):
    written = run("""
with tf.io.TFRecordWriter("far://w") as writer:
    for _ in range(1000):
        writer.write(b"z" * 1000)
print(json.dumps(written))
""")
    *blocks, closed = written
    assert closed == "close"
    assert sum(blocks) == 1000 * 1016
    assert len(blocks) <= 6
