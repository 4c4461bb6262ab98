"""Making and removing the directories of checks, whatever a plugin offers for it."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.filesystem.session import Roots, remove_tree
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target


class Store:
    """Directories as sets of names, and files; what is not in `slots` is NULL."""

    def __init__(self, *slots, entries=()):
        self.slots = set(slots)
        self.entries = dict.fromkeys(entries, "directory")
        self.failing = None
        self.deleted = []

    def has(self, slot):
        return slot in self.slots

    offers = has

    def _slot(self, name):
        if name not in self.slots:
            raise Unsupported(name)

    def create_dir(self, uri):
        self._slot("create_dir")
        if self.failing is not None:
            return Answer(int(self.failing), "not here")
        found = uri in self.entries
        self.entries[uri] = "directory"
        return Answer(int(Code.ALREADY_EXISTS) if found else 0)

    def recursively_create_dir(self, uri):
        self._slot("recursively_create_dir")
        self.entries[uri] = "directory"
        return Answer(0)

    def get_children(self, uri):
        self._slot("get_children")
        inside = [p.removeprefix(f"{uri}/") for p in self.entries if p.startswith(f"{uri}/")]
        return Answer(0, value=["", ".", "..", *(name for name in inside if "/" not in name)])

    def delete_file(self, uri):
        self._slot("delete_file")
        return self._delete(uri, "file")

    def delete_dir(self, uri):
        self._slot("delete_dir")
        return self._delete(uri, "directory")

    def delete_recursively(self, uri):
        self._slot("delete_recursively")
        for path in [path for path in self.entries if f"{path}/".startswith(f"{uri}/")]:
            del self.entries[path]
        return Answer(0)

    def _delete(self, uri, kind):
        self.deleted.append(uri)
        if self.entries.get(uri) != kind:
            return Answer(int(Code.FAILED_PRECONDITION))
        del self.entries[uri]
        return Answer(0)


_STEPS = ("create_dir", "get_children", "delete_file", "delete_dir")


def _roots(uri="zz://host/mine"):
    return Roots(Target("/x.so", "filesystem", Pass.RAW, scheme="zz", root=uri))


def _made(store, uri="zz://host/mine"):
    return _roots(uri).make(store, "FS-156")


def test_parents_are_made_one_by_one_or_at_once():
    store = Store(*_STEPS, entries=["zz://host"])
    made = _made(store)
    assert made.startswith("zz://host/mine/")
    assert {"zz://host/mine", made} <= store.entries.keys()

    store = Store("recursively_create_dir")  # where the plugin can
    assert list(store.entries) == []
    assert [_made(store)] == list(store.entries)

    store = Store(*_STEPS)  # a plain path has no parent above the root
    made = _made(store, "/mine")
    assert min(store.entries) == "/mine"
    assert made in store.entries


def test_a_root_that_cannot_be_made_blocks_and_says_what_to_do():
    store = Store(*_STEPS)
    store.failing = Code.PERMISSION_DENIED

    with pytest.raises(Blocked, match=r"below zz://host/mine: .*--root"):
        _made(store)


@pytest.mark.parametrize("failing", [None, Code.UNIMPLEMENTED])
def test_a_store_without_directories_has_a_root_all_the_same(failing):
    store = Store(*(() if failing is None else ("create_dir",)))
    store.failing = failing

    assert _made(store).startswith("zz://host/mine/")


def test_in_the_end_nothing_of_ours_is_left():
    entries = ["zz://host", "zz://host/mine", "zz://host/mine/other"]
    store, roots = Store(*_STEPS, entries=entries), _roots()
    made = roots.make(store, "FS-156")
    store.entries[f"{made}/file"] = "file"
    roots.remove(store, made)
    roots.close(store)
    assert list(store.entries) == entries

    untouched = Store(*_STEPS, entries=["zz://host"])  # nothing was made in it
    _roots().close(untouched)
    assert untouched.deleted == []


@pytest.mark.parametrize("slots", [_STEPS, (*_STEPS, "delete_recursively")])
def test_a_tree_is_removed_and_nothing_beside_it(slots):
    store = Store(*slots, entries=["zz://h", "zz://h/t", "zz://h/t/d", "zz://h/t/d/e", "zz://h/u"])
    store.entries["zz://h/t/d/f"] = "file"
    remove_tree(store, "zz://h/t")

    assert list(store.entries) == ["zz://h", "zz://h/u"]


def test_names_that_lead_elsewhere_are_not_followed():
    store = Store(*_STEPS, entries=["zz://h", "zz://h/t"])
    remove_tree(store, "zz://h/t")

    assert store.deleted == ["zz://h/t"]
