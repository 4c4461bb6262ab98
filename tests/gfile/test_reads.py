"""Reads of a `GFile` against Python's own file over the same bytes, also where some fail."""

import io
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modular_tf import gfile
from modular_tf.errors import OutOfRangeError, UnavailableError
from modular_tf.gfile import file as file_module
from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import ESSENTIAL, Only
from tests.fsspec.far_store import FarStore

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


@pytest.fixture(scope="module")
def store():
    return FarStore()


@pytest.fixture(scope="module")
def functions(store):
    with (
        pytest.MonkeyPatch.context() as patch,
        PluginService(bundled=False) as service,
    ):
        patch.setattr(file_module, "_BUFFER", 4)
        for scheme in ("ram", "zz"):
            service.register_filesystem(scheme, Only(store, ESSENTIAL))
        yield gfile.using(service)


def fill(store, content, failures=()):
    """Have a store give a file, and let reads of these numbers fail."""
    numbers = itertools.count(1)

    def read(_path):
        if next(numbers) in failures:
            raise UnavailableError("the connection was reset")

    store.files["/f"] = content
    store.calls.clear()
    store.hooks["read"] = read


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
    store, functions, scheme, content, operations, failures
):
    fill(store, content, failures)
    reader = functions.GFile(f"{scheme}://h/f", "rb")
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


def test_a_short_file_is_read_whole_without_its_size_and_a_long_one_in_one_piece(store, functions):
    fill(store, b"short")
    assert functions.GFile("ram://h/f", "rb").read() == b"short"
    assert store.count("stat") == 0
    fill(store, b"y" * 100_000)
    assert functions.GFile("ram://h/f", "rb").read() == b"y" * 100_000
    assert store.count("read") <= 2
