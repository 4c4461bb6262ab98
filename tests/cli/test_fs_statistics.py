"""What `fs` asks about names that are listed: nothing where the listing has the statistics."""

import os
from contextlib import contextmanager

import pytest

from modular_tf.service.service import PluginService
from tests.filesystem.memory_store import MemoryStore, filesystem_of

ROOT = "mem://h/b"
OFFERED = ("get_children_statistics",)


class Served:
    """Commands of `fs` on a store in memory, with what they ask it."""

    def __init__(self, mtf, monkeypatch):
        self._mtf = mtf
        self._monkeypatch = monkeypatch
        self.store = MemoryStore()
        self.store.dirs |= {"/b", "/b/d"}
        self.store.files |= {"/b/d/one": b"1", "/b/two": b"22", "/b/three": b"333"}

    def run(self, *words, offered=()):
        """Run a command on a store with these further operations; forget what was asked before."""

        @contextmanager
        def session(_call):
            with PluginService() as service:
                service.load()
                service.register_filesystem("mem", filesystem_of(self.store, also=offered))
                yield service

        self._monkeypatch.setattr("modular_tf.cli.frame.Invocation.session", session)
        self.store.calls.clear()
        return self._mtf("fs", *words)

    def asked(self, *operations):
        """Return the paths that these operations were called for, in order."""
        return [uri for operation, uri, *_ in self.store.calls if operation in operations]


@pytest.fixture
def served(mtf, monkeypatch):
    return Served(mtf, monkeypatch)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["ls", "-l"], ["file\t3", "file\t2"]),
        (["ls", "-R"], ["one", "three"]),
        (["du"], [f"1\t{ROOT}/d", f"6\t{ROOT}"]),
        (["find", "--min-size", "2"], [f"{ROOT}/three", f"{ROOT}/two"]),
    ],
)
def test_listed_statistics_are_not_asked_again(served, words, shown):
    expected = served.run(*words, ROOT)
    ended = served.run(*words, ROOT, offered=OFFERED)

    assert (ended.code, ended.out) == (0, expected.out)
    assert all(text in os.fsdecode(ended.out) for text in shown)
    assert set(served.asked("stat", "is_directory")) == {ROOT}
    assert served.asked("get_children") == []
    assert len(served.asked(*OFFERED)) == (1 if words[0] == "ls" and "-R" not in words else 2)


@pytest.mark.parametrize("is_source", [False, True])
def test_sync_with_nothing_to_do_asks_no_file(served, tmp_path, is_source):
    for path, data in served.store.files.items():
        file = tmp_path / path.removeprefix("/b/")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
        os.utime(file, (0, 0))
    words = [ROOT, tmp_path] if is_source else [tmp_path, ROOT]
    ended = served.run("sync", *words, offered=OFFERED)

    assert (ended.code, ended.err) == (0, "")
    assert served.asked("new_random_access_file", "new_writable_file") == []
    assert {*served.asked("stat", "is_directory")} <= {ROOT}
    assert served.asked("get_children") == []
