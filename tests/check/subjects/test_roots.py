"""Making and removing the directories of checks, whatever a plugin offers for it."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import Answer
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.filesystem.session import Roots, remove_tree
from modular_tf.check.memory_watch import Breach
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

_STEPS = ("create_dir", "get_children", "delete_file", "delete_dir")


class _Store:
    """Directories and files by their names; slots that are not named are NULL."""

    def __init__(self, *slots, entries=(), failing=None):
        self.entries = dict.fromkeys(entries, "directory")
        self.deleted = []
        self._slots, self._failing = slots, failing

    def has(self, slot):
        return slot in self._slots

    offers = has

    def __getattr__(self, slot):
        if slot not in self._slots:
            raise Unsupported(slot)
        return getattr(self, f"_{slot}")

    def _create_dir(self, uri):
        code = self._failing or (Code.ALREADY_EXISTS if uri in self.entries else 0)
        if not self._failing:
            self.entries[uri] = "directory"
        return Answer(int(code), "not here")

    def _get_children(self, uri):
        inside = [p.removeprefix(f"{uri}/") for p in self.entries if p.startswith(f"{uri}/")]
        return Answer(0, value=["", ".", "..", *(name for name in inside if "/" not in name)])

    def _delete_file(self, uri):
        return self._delete(uri, "file")

    def _recursively_create_dir(self, uri):
        self.entries[uri] = "directory"
        return Answer(0)

    def _delete_recursively(self, uri):
        for path in [path for path in self.entries if f"{path}/".startswith(f"{uri}/")]:
            del self.entries[path]
        return Answer(0)

    def _delete_dir(self, uri):
        return self._delete(uri, "directory")

    def _delete(self, uri, kind):
        self.deleted.append(uri)
        if self.entries.get(uri) != kind:
            return Answer(int(Code.FAILED_PRECONDITION))
        del self.entries[uri]
        return Answer(0)


def _roots():
    return Roots(Target("/x.so", "filesystem", Pass.RAW, scheme="zz", root="zz://host/mine"))


def _made(store):
    return _roots().make(store, "FS-156")


def test_a_root_that_cannot_be_made_blocks_and_says_what_to_do():
    with pytest.raises(Blocked, match="below zz://host/mine") as raised:
        _made(_Store(*_STEPS, failing=Code.PERMISSION_DENIED))

    assert raised.value.wants_root


def test_no_other_root_is_asked_for_where_one_has_worked():
    store, roots = _Store(*_STEPS), _roots()
    roots.make(store, "FS-156")
    store._failing = Code.UNAVAILABLE
    with pytest.raises(Blocked) as raised:
        roots.make(store, "FS-157")

    assert not raised.value.wants_root
    assert raised.value.found == "UNAVAILABLE (14): not here"


@pytest.mark.parametrize(
    "store", [_Store(), _Store("create_dir", failing=Code.UNIMPLEMENTED)], ids=["NULL", "no"]
)
def test_a_store_without_directories_has_a_root_all_the_same(store):
    assert _made(store).startswith("zz://host/mine/")


@pytest.mark.parametrize(
    ("slots", "levels"),
    [
        (_STEPS, ["zz://host", "zz://host/mine"]),  # parents are made one by one, or by the plugin
        ((*_STEPS, "recursively_create_dir", "delete_recursively"), []),
    ],
    ids=["one by one", "at once"],
)
def test_a_root_has_its_parents_and_in_the_end_nothing_of_ours_is_left(slots, levels):
    store = _Store(*slots)
    made = _made(store)
    assert [*store.entries][: len(levels)] == levels
    assert [*store.entries][-1] == made

    entries = ["zz://host", "zz://host/mine", "zz://host/mine/other"]
    store, roots = _Store(*slots, entries=entries), _roots()
    made = roots.make(store, "FS-156")
    store.entries |= {f"{made}/d": "directory", f"{made}/d/e": "directory", f"{made}/d/f": "file"}
    roots.remove(store, made)
    roots.close(store)
    assert list(store.entries) == entries

    untouched = _Store(*slots, entries=["zz://host"])  # nothing was made in it
    _roots().close(untouched)
    assert untouched.deleted == []


def test_harm_that_is_done_while_a_root_is_removed_is_a_finding():
    store, roots = _Store(*_STEPS), _roots()
    roots.make(store, "FS-156")

    def harm(uri):
        raise Breach("FS-329", f"delete_dir({uri}) wrote to its input")

    store._delete_dir = harm
    with pytest.raises(Breach, match="wrote to its input"):
        roots.close(store)


def test_names_that_lead_elsewhere_are_not_followed():
    store = _Store(*_STEPS, entries=["zz://h", "zz://h/t"])
    remove_tree(store, "zz://h/t")

    assert store.deleted == ["zz://h/t"]
