"""What a listing has of its names is kept for TensorFlow's next questions."""

from __future__ import annotations

import pytest

from modular_tf.tensorflow import bridge
from tests.filesystem.memory_store import MemoryStore, filesystem_of

ROOT = "mem://h/d"


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(bridge.found_here, "seconds", 3600)
    bridge.found_here.clear()
    store = MemoryStore()
    store.dirs |= {"/d", "/d/sub"}
    store.files |= {"/d/one": b"1", "/d/two": b"22"}
    yield store
    bridge.found_here.clear()


def asked(fs, store):
    """Walk as TensorFlow does; return what the store was asked."""
    store.calls.clear()
    names = bridge.children(fs, ROOT)
    kinds = {name: bridge.is_directory(fs, f"{ROOT}/{name}") for name in names}
    assert kinds == {"one": False, "sub": True, "two": False}
    assert bridge.exists(fs, f"{ROOT}/two")
    assert bridge.file_size(fs, f"{ROOT}/two") == bridge.stat(fs, f"{ROOT}/two").length
    return [operation for operation, *_ in store.calls]


def test_a_walk_asks_for_no_kind_that_is_listed(store):
    fs = filesystem_of(store, also=("get_children_statistics",))

    assert asked(fs, store) == ["get_children_statistics"]


def test_what_is_not_listed_is_asked_each_time(store):
    assert asked(filesystem_of(store), store).count("stat") == 5


def test_a_file_that_was_replaced_since_it_was_listed_is_not_read_by_its_old_length(store):
    fs = filesystem_of(store, also=("get_children_statistics",))
    bridge.children(fs, ROOT)
    store.files["/d/two"] = b"4444"

    assert bridge.file_size(fs, f"{ROOT}/two") == 2
    with bridge.open_file(fs, f"{ROOT}/two") as file:  # of a length that it does not know
        assert file.read(0, 9) == b"4444"
    assert bridge.file_size(fs, f"{ROOT}/two") == 4
