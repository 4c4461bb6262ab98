"""Reads of a `GFile` against Python's own file over the same bytes, also where some fail."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modular_tf import gfile
from modular_tf.errors import OutOfRangeError, UnavailableError
from modular_tf.filesystem.files import FileStatistics, RandomAccessFile
from modular_tf.gfile import file as file_module
from modular_tf.service.service import PluginService

CONTENTS = st.lists(st.sampled_from([b"\n", b"a", b"line\n", b"xyz" * 5]), max_size=60).map(
    b"".join
)
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.integers(0, 80)),
        st.tuples(st.just("seek"), st.integers(0, 400)),
        st.tuples(st.sampled_from(["readline", "readlines", "read"])),
    ),
    max_size=25,
)
# Files of "ram" are read as they are, those of "zz" are read ahead.
SCHEMES = st.sampled_from(["ram", "zz"])


class BytesFile(RandomAccessFile):
    """A random-access file, some of whose reads fail, that remembers what it was asked."""

    uri = "zz://f"

    def __init__(self, store):
        self._store = store

    def readinto(self, offset, buffer):
        view = memoryview(buffer)
        self._store.asked.append((offset, len(view)))
        if len(self._store.asked) in self._store.failures:
            raise UnavailableError("the connection was reset")
        piece = self._store.content[offset : offset + len(view)]
        view[: len(piece)] = piece
        return len(piece)

    def close(self):
        pass


class Store:
    """A filesystem of one file."""

    def __init__(self):
        self.reset(b"")

    def reset(self, content, failures=frozenset()):
        self.content = content
        self.failures = failures
        self.asked = []

    def new_random_access_file(self, _):
        return BytesFile(self)

    def stat(self, _):
        return FileStatistics(len(self.content), 1, is_directory=False)


@pytest.fixture(scope="module")
def store():
    return Store()


@pytest.fixture(scope="module")
def stored(store):
    with (
        pytest.MonkeyPatch.context() as patch,
        PluginService(bundled=False) as service,
    ):
        patch.setattr(file_module, "_BUFFER", 4)
        service.register_filesystem("zz", store)
        service.register_filesystem("ram", store)
        yield gfile.using(service)


def until_it_succeeds(call, *arguments):
    while True:
        try:
            return call(*arguments)
        except UnavailableError:
            continue


@settings(deadline=None)
@given(
    scheme=SCHEMES,
    content=CONTENTS,
    operations=OPERATIONS,
    failures=st.sets(st.integers(0, 60)),
)
def test_it_reads_what_a_python_file_reads_and_a_failure_loses_nothing(
    store, stored, scheme, content, operations, failures
):
    store.reset(content, failures)
    reader = stored.GFile(f"{scheme}://f", "rb")
    model = io.BytesIO(content)
    for name, *arguments in operations:
        call = getattr(reader, name)
        if name != "seek":
            found = until_it_succeeds(call, *arguments)
            assert found == getattr(model, name)(*arguments)
        elif arguments[0] > len(content):
            with pytest.raises(OutOfRangeError):
                until_it_succeeds(call, *arguments)
            model.seek(len(content))
        else:
            until_it_succeeds(call, *arguments)
            model.seek(*arguments)
        assert until_it_succeeds(reader.tell) == model.tell()


def test_a_short_file_is_read_whole_without_its_size(store, stored):
    store.reset(b"short")
    store.stat = None  # type: ignore[assignment,method-assign]
    try:
        assert stored.GFile("ram://f", "rb").read() == b"short"
    finally:
        del store.stat


def test_a_long_file_is_read_in_one_piece(store, stored):
    store.reset(b"y" * 100_000)

    assert stored.GFile("ram://f", "rb").read() == b"y" * 100_000
    assert store.asked[-1] == (0, 100_000)
