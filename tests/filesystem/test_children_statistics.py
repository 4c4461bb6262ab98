"""`get_children_statistics`: names and statistics by one call, where a filesystem offers it."""

from __future__ import annotations

import pytest

from modular_tf.errors import InternalError, InvalidArgumentError
from modular_tf.filesystem.files import FileStatistics
from modular_tf.filesystem.python_filesystem import PythonFilesystem
from tests.filesystem.memory_store import filesystem_of

FILE, DIRECTORY = FileStatistics(2, 1, is_directory=False), FileStatistics(0, 1, is_directory=True)
LISTED = {"d": DIRECTORY, "f": FILE}


@pytest.fixture
def store(store):
    store.dirs.add("/d")
    store.files["/f"] = b"ab"
    return store


@pytest.fixture
def offering(store):
    """A filesystem that offers it."""
    return filesystem_of(store, also=("get_children_statistics",))


def test_an_object_that_offers_it_is_asked_once(store, offering):
    assert offering.get_children_statistics("mem://h/") == LISTED
    store.calls.clear()
    found = offering.listing("mem://h/", with_statistics=True)
    assert (found.names, found.statistics) == (["d", "f"], LISTED)
    assert store.calls == [("get_children_statistics", "mem://h/")]


@pytest.fixture
def giving():
    """Return a filesystem whose object gives this."""

    def make(given):
        class Careless:
            def get_children_statistics(self, uri):
                return given

        return PythonFilesystem("mem", Careless())

    return make


def test_names_of_statistics_are_checked_as_others_are(giving):
    assert giving({"d/": DIRECTORY, "f": FILE}).get_children_statistics("mem://h") == LISTED
    with pytest.raises(InternalError, match=r"'\.\.'"):
        giving({"..": FILE}).get_children_statistics("mem://h")
    with pytest.raises(InvalidArgumentError):
        giving(["no mapping"]).get_children_statistics("mem://h")


@pytest.mark.parametrize("given", [None, (2, 1, False), 2])
def test_what_is_no_statistics_is_refused_by_name(given, giving):
    fs = giving({"d": DIRECTORY, "f": given})
    for ask in (fs.get_children_statistics, lambda uri: fs.listing(uri, with_statistics=True)):
        with pytest.raises(InternalError, match=r"mem://h.*Careless.*FileStatistics.*'f'"):
            ask("mem://h")
