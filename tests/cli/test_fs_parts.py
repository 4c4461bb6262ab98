"""`fs head`, `fs tail` and ranges of `fs cat`: parts of files, and no more than these is read."""

import os
import random

import pytest

from modular_tf.cli.fs import reading
from modular_tf.cli.fs.reading import first_lines, last_lines
from modular_tf.filesystem.files import RandomAccessFile
from tests.filesystem.memory_store import MemoryStore
from tests.fsspec.far_store import FarStore

LINES = [f"line {number}\n".encode() for number in range(100_000)]


class Stored(RandomAccessFile):
    """A file of a store that notes what is asked for, and may be shorter than it was."""

    uri = "mem://host/f"

    def __init__(self, content, length=None):
        self.content = content
        self.length = len(content) if length is None else length
        self.asked = set()

    def known_length(self):
        return self.length

    def readinto(self, offset, buffer):
        size = len(memoryview(buffer))
        self.asked.add((offset, size))
        piece = self.content[offset : offset + size]
        memoryview(buffer)[: len(piece)] = piece
        return len(piece)

    def close(self):
        """Nothing to do."""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"".join(LINES))
    return path


@pytest.mark.parametrize("count", [0, 20_000, 99_999, 200_000])
def test_head_and_tail_write_so_many_lines(mtf, file, count):
    assert mtf("fs", "head", "-n", count, file).out == b"".join(LINES[:count])
    assert mtf("fs", "tail", "-n", count, file).out == b"".join(
        LINES[len(LINES) - count :] if count < len(LINES) else LINES
    )


def test_any_lines_in_any_blocks(monkeypatch):
    monkeypatch.setattr(reading, "_FIRST_BLOCK", 4)
    monkeypatch.setattr(reading, "_KEPT", 40)
    choice = random.Random(7)
    for _ in range(500):
        content = bytes(choice.choice(b"ab\n") for _ in range(choice.randrange(90)))
        lines, count = content.splitlines(keepends=True), choice.randrange(1, 40)

        assert b"".join(last_lines(Stored(content), count, len(content))) == b"".join(
            lines[-count:]
        )
        wanted = lines[:count]
        if len(wanted) < len(lines):
            assert b"".join(first_lines(Stored(content), count)) == b"".join(wanted)


def test_ten_lines_are_usual_and_bytes_may_have_a_unit(mtf, file):
    content = file.read_bytes()

    assert mtf("fs", "head", file).out == b"".join(LINES[:10])
    assert mtf("fs", "tail", file).out == b"".join(LINES[-10:])
    assert mtf("fs", "head", "-c", "64K", file).out == content[:65536]
    assert mtf("fs", "tail", "-c", 5, file).out == content[-5:]
    assert mtf("fs", "tail", "-c", "1G", file).out == content
    assert mtf("fs", "head", "-c", 0, file).out == b""


def test_several_files_have_headings(mtf, file):
    other = file.with_name("other")
    other.write_bytes(b"one\ntwo\n")

    assert mtf("fs", "head", "-n", 1, f"{file.parent}/*").out == (
        f"==> {file} <==\nline 0\n\n==> {other} <==\none\n".encode()
    )
    ended = mtf("fs", "tail", "-n", 1, other, file.with_name("none"))
    assert (ended.code, ended.out) == (1, f"==> {other} <==\ntwo\n".encode())
    assert {mtf("fs", verb, "--json", file).code for verb in ("head", "tail")} == {2}


def test_cat_of_a_range(mtf, tmp_path):
    content = os.urandom(3_500_000)
    (tmp_path / "f").write_bytes(content)
    for wanted, begin, end in [
        ("0-0", 0, 1), ("0-99", 0, 100), ("5-", 5, None), ("-7", -7, None), ("0-", 0, None),
        ("100-99999999", 100, None), ("-99999999", 0, None), ("1000000-3200000", 10**6, 3_200_001),
    ]:  # fmt: skip
        ended = mtf("fs", "cat", "-r", wanted, tmp_path / "f")
        assert ended.out == content[begin:end], wanted


@pytest.mark.parametrize("verb", ["head", "tail"])
def test_parts_of_files_in_a_store_are_read_at_once_and_written_in_order(mtf, serving, verb):
    store = FarStore()
    store.files |= {f"/f{number:02}": b"%d\n" % number for number in range(32)}
    store.meet("new_random_access_file")
    serving(store)
    uris = [f"mem://host{path}" for path in store.files]
    ended = mtf("fs", verb, *uris)

    headed = [f"==> {uri} <==\n{number}\n" for number, uri in enumerate(uris)]
    assert (ended.code, ended.out.decode()) == (0, "\n".join(headed))
    assert store.has_met("new_random_access_file")


@pytest.fixture
def stored(serving):
    """Have commands find a file that is opened already."""

    def serve(file):
        store = MemoryStore()
        store.new_random_access_file = lambda _: file
        serving(store)
        return file

    return serve


@pytest.mark.parametrize(
    ("words", "read"),
    [
        ("cat -r 0-99", {(0, 100)}),
        ("cat -r 100000-100000", {(100_000, 1)}),
        ("head -c 100", {(0, 100)}),
        ("tail -c 100", {(199_900, 100)}),
    ],
)
def test_no_other_bytes_of_a_store_are_read(mtf, stored, words, read):
    file = stored(Stored(bytes(200_000)))

    assert mtf("fs", *words.split(), file.uri).code == 0
    assert file.asked == read


@pytest.mark.parametrize("part", ["-n3", "-c50"])
def test_the_end_of_a_file_that_became_shorter_is_an_error(mtf, stored, part):
    file = stored(Stored(b"a\n" * 30, length=100))
    ended = mtf("fs", "tail", part, file.uri)

    assert ended.code == 1
    assert "it ended after" in ended.err


def test_cat_of_what_matches_keeps_the_order(mtf, tmp_path):
    for number in range(30):
        (tmp_path / f"f{number:02}").write_bytes(b"%02d" % number * (number * 40_000))

    assert mtf("fs", "cat", f"{tmp_path}/f*").out == b"".join(
        (tmp_path / f"f{number:02}").read_bytes() for number in range(30)
    )
