"""`get_children_statistics`: names and statistics by one call, where a filesystem offers it."""

from __future__ import annotations

import pytest

from modular_tf.errors import InternalError, InvalidArgumentError, UnimplementedError
from modular_tf.filesystem.files import FileStatistics
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.location import checked_listing
from modular_tf.filesystem.python_filesystem import PythonFilesystem
from tests.filesystem.memory_store import MemoryStore, filesystem_of

OFFERED = ("get_children_statistics",)
FILE, DIRECTORY = FileStatistics(2, 1, is_directory=False), FileStatistics(0, 1, is_directory=True)


@pytest.fixture
def store():
    store = MemoryStore()
    store.dirs.add("/d")
    store.files["/f"] = b"ab"
    return store


def test_an_object_that_offers_it_is_asked_once(store):
    fs = filesystem_of(store, also=OFFERED)

    assert fs.get_children_statistics("mem://h/") == {"d": DIRECTORY, "f": FILE}
    store.calls.clear()
    found = fs.listing("mem://h/", with_statistics=True)
    assert (found.names, found.statistics) == (["d", "f"], {"d": DIRECTORY, "f": FILE})
    assert store.calls == [("get_children_statistics", "mem://h/")]


def test_only_names_are_asked_where_only_names_are_wanted(store):
    found = checked_listing(filesystem_of(store, also=OFFERED), "mem://h/")

    assert (found.names, dict(found.statistics)) == (["d", "f"], {})
    assert store.calls == [("get_children", "mem://h/")]


def test_an_object_that_does_not_offer_it_lists_names(store):
    fs = filesystem_of(store)

    with pytest.raises(UnimplementedError, match="get_children_statistics"):
        fs.get_children_statistics("mem://h/")
    found = fs.listing("mem://h/", with_statistics=True)
    assert (found.names, dict(found.statistics)) == (["d", "f"], {})


def test_names_of_statistics_are_checked_as_others_are(store):
    class Named:
        def get_children_statistics(self, uri):
            if uri == "mem://list":
                return ["no mapping"]
            return {"..": FILE} if uri == "mem://bad" else {"d/": DIRECTORY, "f": FILE}

    fs = PythonFilesystem("mem", Named())

    assert fs.get_children_statistics("mem://h") == {"d": DIRECTORY, "f": FILE}
    with pytest.raises(InternalError, match=r"'\.\.'"):
        fs.get_children_statistics("mem://bad")
    with pytest.raises(InvalidArgumentError):
        fs.get_children_statistics("mem://list")


@pytest.mark.parametrize("given", [None, (2, 1, False), 2])
def test_what_is_no_statistics_is_refused_by_name(given):
    class Careless:
        def get_children_statistics(self, uri):
            return {"d": DIRECTORY, "f": given}

    fs = PythonFilesystem("mem", Careless())

    for ask in (fs.get_children_statistics, lambda uri: fs.listing(uri, with_statistics=True)):
        with pytest.raises(InternalError, match=r"mem://h.*Careless.*FileStatistics.*'f'"):
            ask("mem://h")


def test_a_filesystem_of_ours_under_another_scheme_is_asked_once(store):
    class Ours(Filesystem):
        def get_children(self, uri):
            return store.get_children(uri)

        def get_children_statistics(self, uri):
            return store.get_children_statistics(uri)

    found = PythonFilesystem("other", Ours("mem", "ours")).listing("mem://h/", with_statistics=True)

    assert found.statistics == {"d": DIRECTORY, "f": FILE}
    assert store.calls == [("get_children_statistics", "mem://h/")]


def test_a_pattern_of_several_levels_asks_for_no_kind_that_is_listed(store):
    store.files["/d/g"] = b""
    fs = filesystem_of(store, also=OFFERED)

    assert fs.get_matching_paths("mem://h/*/g") == ["mem://h/d/g"]
    assert [call for call in store.calls if call[0] in ("stat", "is_directory")] == []
    assert fs.get_matching_paths("mem://h/*") == ["mem://h/d", "mem://h/f"]
    assert store.calls[-1] == ("get_children", "mem://h/")


def test_a_deletion_asks_for_no_kind_that_is_listed(store):
    store.dirs.add("/d/e")
    store.files |= {"/d/g": b"", "/d/e/h": b""}
    fs = filesystem_of(store, also=OFFERED)

    assert fs.delete_recursively("mem://h/d") == (0, 0)
    assert (store.files, store.dirs) == ({"/f": b"ab"}, {"/"})
    kinds = [uri for operation, uri in store.calls if operation in ("stat", "is_directory")]
    assert set(kinds) <= {"mem://h/d", "mem://h/d/e"}
    assert kinds.count("mem://h/d/e") == 0
