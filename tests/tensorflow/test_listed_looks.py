"""What a listing has of its names is kept for TensorFlow's next questions."""

from __future__ import annotations

import pytest

from modular_tf.tensorflow import recent_looks
from tests.filesystem.memory_store import MemoryStore, filesystem_of

ROOT = "mem://h/d"


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(recent_looks, "_KEPT_S", 3600)
    recent_looks.forget_looks()
    store = MemoryStore()
    store.dirs |= {"/d", "/d/sub"}
    store.files |= {"/d/one": b"1", "/d/two": b"22"}
    yield store
    recent_looks.forget_looks()


def asked(fs, store):
    """Walk as TensorFlow does; return what the store was asked."""
    store.calls.clear()
    names = recent_looks.children(fs, ROOT)
    kinds = {name: recent_looks.is_directory(fs, f"{ROOT}/{name}") for name in names}
    assert kinds == {"one": False, "sub": True, "two": False}
    assert recent_looks.exists(fs, f"{ROOT}/two")
    assert recent_looks.file_size(fs, f"{ROOT}/two") == recent_looks.stat(fs, f"{ROOT}/two").length
    return [operation for operation, *_ in store.calls]


def test_a_walk_asks_for_no_kind_that_is_listed(store):
    fs = filesystem_of(store, also=("get_children_statistics",))

    assert asked(fs, store) == ["get_children_statistics"]


def test_what_is_not_listed_is_asked_each_time(store):
    assert asked(filesystem_of(store), store).count("stat") == 5


def test_a_change_forgets_what_was_listed(store):
    fs = filesystem_of(store, also=("get_children_statistics",))
    recent_looks.children(fs, ROOT)
    with recent_looks.change():
        store.files["/d/two"] = b"4444"

    assert recent_looks.file_size(fs, f"{ROOT}/two") == 4


def test_a_file_that_was_replaced_since_it_was_listed_is_not_read_by_its_old_length(store):
    fs = filesystem_of(store, also=("get_children_statistics",))
    recent_looks.children(fs, ROOT)
    store.files["/d/two"] = b"4444"

    assert recent_looks.file_size(fs, f"{ROOT}/two") == 2
    with recent_looks.open_file(fs, f"{ROOT}/two") as file:  # of a length that it does not know
        assert file.read(0, 9) == b"4444"
    assert recent_looks.file_size(fs, f"{ROOT}/two") == 4


def test_a_directory_of_very_many_names_is_not_kept(store, monkeypatch):
    monkeypatch.setattr(recent_looks, "_MOST_LOOKS", 2)
    fs = filesystem_of(store, also=("get_children_statistics",))
    recent_looks.children(fs, ROOT)

    assert recent_looks._looks == {}
