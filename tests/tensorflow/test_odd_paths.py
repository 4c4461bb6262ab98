"""Paths whose bytes are not UTF-8: TensorFlow reads them, and its errors about them are typed."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.xdist_group("tensorflow")]


def test_bytes_that_are_no_utf_8_work_or_give_a_typed_error(run_bridge):
    code = r"""
service = started({"disk": "file"})
folder = b"disk://" + os.getcwdb() + b"/d"
odd = folder + b"/n\xff\xfe"

def fails(kind, call):
    try:
        result = call()
    except kind as error:
        return error.message
    raise AssertionError(f"found {result!r}")

g.makedirs(folder)
with g.GFile(odd, "wb") as file:
    file.write(b"data")
assert g.exists(odd)
assert g.stat(odd).length == 4
assert g.GFile(odd, "rb").read() == b"data"
assert tf.io.read_file(odd).numpy() == b"data"
g.copy(odd, odd + b"2")
g.rename(odd + b"2", odd + b"3")
assert sorted(tf.io.matching_files(folder + b"/*").numpy()) == [odd, odd + b"3"]
g.remove(odd + b"3")
assert [name.numpy() for name in tf.data.Dataset.list_files(folder + b"/*")] == [odd]
with tf.io.TFRecordWriter(os.fsdecode(folder) + "/r") as writer:
    writer.write(b"one")
os.rename("d/r", b"d/r\xfe")
(record,) = tf.data.TFRecordDataset([folder + b"/r\xfe"])
assert record.numpy() == b"one"

for call in (
    lambda: g.stat(odd + b"none"),
    lambda: g.GFile(odd + b"none", "rb").read(),
    lambda: tf.io.read_file(odd + b"none"),
    lambda: list(tf.data.TFRecordDataset([odd + b"none"])),
):
    assert r"n\udcff\udcfenone" in fails(tf.errors.NotFoundError, call)
said = fails(tf.errors.FailedPreconditionError, lambda: g.listdir(folder))
assert "is not UTF-8" in said and r"\xff\xfe" in said, said
g.rmtree(folder)
assert not g.exists(folder)
"""
    run_bridge(code)
