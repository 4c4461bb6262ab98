"""`ReadBuffer` against Python's own file over the same bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modular_tf.errors import OutOfRangeError, UnavailableError
from modular_tf.filesystem.files import RandomAccessFile
from modular_tf.gfile import read_buffer
from modular_tf.gfile.read_buffer import ReadBuffer

if TYPE_CHECKING:
    from collections.abc import Buffer, Callable, Iterator  # type: ignore[attr-defined,unused-ignore]

CONTENTS = st.lists(st.sampled_from([b"\n", b"a", b"line\n", b"xyz" * 5]), max_size=60).map(
    b"".join
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 80)),
        st.tuples(st.just("readline"), st.just(0)),
        st.tuples(st.just("rest"), st.just(0)),
        st.tuples(st.just("seek"), st.integers(0, 400)),
        st.tuples(st.just("forget"), st.just(0)),
    ),
    max_size=25,
)


class BytesFile(RandomAccessFile):
    """A random-access file that remembers what it was asked."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.asked: list[tuple[int, int]] = []

    def readinto(self, offset: int, buffer: Buffer) -> int:
        view = memoryview(buffer)
        self.asked.append((offset, len(view)))
        piece = self.content[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self.asked.clear()


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read_buffer, "FIRST_BLOCK", 4)
        patch.setattr(read_buffer, "LARGEST_BLOCK", 32)
        patch.setattr(read_buffer, "SHORT_FILE", 16)
        yield


@settings(deadline=None)
@given(content=CONTENTS, operations=OPERATIONS)
def test_reads_what_a_python_file_reads(content: bytes, operations: list[tuple[str, int]]) -> None:
    reader = ReadBuffer(BytesFile(content), lambda: len(content))
    model = io.BytesIO(content)
    for name, argument in operations:
        if name == "seek":
            model.seek(min(argument, len(content)))
            if argument > len(content):
                with pytest.raises(OutOfRangeError):
                    reader.seek(argument)
            else:
                reader.seek(argument)
        elif name == "read":
            assert reader.read(argument) == model.read(argument)
        elif name == "readline":
            assert reader.readline() == model.readline()
        elif name == "rest":
            assert reader.read_rest() == model.read()
        else:
            reader.forget()
        assert reader.position == model.tell()


def test_blocks_grow_while_it_scans() -> None:
    file = BytesFile(b"x" * 200)
    reader = ReadBuffer(file, lambda: 200)

    while reader.read(4):
        pass

    assert [size for _, size in file.asked][:5] == [4, 8, 16, 32, 32]


def test_a_short_file_is_read_whole_without_its_size() -> None:
    def no_size() -> int:
        raise AssertionError("the size was asked for")

    assert ReadBuffer(BytesFile(b"short"), no_size).read_rest() == b"short"


def test_a_long_file_is_read_in_one_piece() -> None:
    file = BytesFile(b"y" * 1000)

    assert ReadBuffer(file, lambda: 1000).read_rest() == b"y" * 1000
    assert file.asked[-1] == (0, 1000)


def test_what_was_forgotten_is_read_again() -> None:
    file = BytesFile(b"old old")
    reader = ReadBuffer(file, lambda: 7)
    reader.read(1)
    file.content = b"new new"
    reader.forget()
    reader.seek(0)

    assert reader.read(3) == b"new"


@settings(deadline=None)
@given(content=CONTENTS, operations=OPERATIONS, failures=st.sets(st.integers(0, 60)))
def test_a_read_that_failed_loses_nothing_when_it_is_tried_again(
    content: bytes, operations: list[tuple[str, int]], failures: set[int]
) -> None:
    file = UnsteadyFile(content, failures)
    reader = ReadBuffer(file, lambda: len(content))
    model = io.BytesIO(content)
    for name, argument in operations:
        if name == "read":
            found = until_it_succeeds(lambda n=argument: reader.read(n))
            assert found == model.read(argument)
        elif name == "readline":
            assert until_it_succeeds(reader.readline) == model.readline()
        elif name == "rest":
            assert until_it_succeeds(reader.read_rest) == model.read()


class UnsteadyFile(BytesFile):
    """A file some of whose reads fail."""

    def __init__(self, content: bytes, failures: set[int]) -> None:
        super().__init__(content)
        self._failures = failures
        self._n_reads = 0

    def readinto(self, offset: int, buffer: Buffer) -> int:
        self._n_reads += 1
        if self._n_reads in self._failures:
            raise UnavailableError("the connection was reset")
        return super().readinto(offset, buffer)


def until_it_succeeds(read: Callable[[], bytes]) -> bytes:
    while True:
        try:
            return read()
        except UnavailableError:
            continue
