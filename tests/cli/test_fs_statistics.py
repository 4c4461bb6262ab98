"""What `fs` asks about names that are listed: nothing where the listing has the statistics."""

import os

import pytest

from tests.filesystem.memory_store import MemoryStore

ROOT = "mem://h/b"
OFFERED = ("get_children_statistics",)


@pytest.fixture
def store():
    made = MemoryStore()
    made.dirs |= {"/b", "/b/d"}
    made.files |= {"/b/d/one": b"1", "/b/two": b"22", "/b/three": b"333"}
    return made


def asked(store, *operations):
    """Return the paths that these operations were called for, in order."""
    return [uri for operation, uri, *_ in store.calls if operation in operations]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["ls", "-l"], ["file\t3", "file\t2"]),
        (["ls", "-R"], ["one", "three"]),
        (["du"], [f"1\t{ROOT}/d", f"6\t{ROOT}"]),
        (["find", "--min-size", "2"], [f"{ROOT}/three", f"{ROOT}/two"]),
    ],
)
def test_listed_statistics_are_not_asked_again(mtf, serving, store, words, shown):
    serving(store)
    expected = mtf("fs", *words, ROOT)
    serving(store, *OFFERED)
    store.calls.clear()
    ended = mtf("fs", *words, ROOT)

    assert (ended.code, ended.out) == (0, expected.out)
    assert all(text in os.fsdecode(ended.out) for text in shown)
    assert set(asked(store, "stat", "is_directory")) == {ROOT}
    assert asked(store, "get_children") == []
    assert len(asked(store, *OFFERED)) == (1 if words == ["ls", "-l"] else 2)


@pytest.mark.parametrize("is_source", [False, True])
def test_sync_with_nothing_to_do_asks_no_file(mtf, serving, store, tmp_path, is_source):
    for path, data in store.files.items():
        file = tmp_path / path.removeprefix("/b/")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        os.utime(file, (0, 0))
    serving(store, *OFFERED)
    ended = mtf("fs", "sync", *([ROOT, tmp_path] if is_source else [tmp_path, ROOT]))

    assert (ended.code, ended.err) == (0, "")
    assert asked(store, "new_random_access_file", "new_writable_file", "get_children") == []
    assert {*asked(store, "stat", "is_directory")} <= {ROOT}
