"""`put` of a local tree: all that is in it arrives, links to directories included, or it fails."""

from __future__ import annotations

import os

import pytest

from modular_tf.errors import FailedPreconditionError
from modular_tf.fsspec import ModularFileSystem


@pytest.fixture
def fs(service):
    return ModularFileSystem("ram", service=service)


@pytest.fixture
def tree(tmp_path):
    """A tree with a file, a link to a file, and a link to a directory in a directory."""
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "deep" / "c").write_bytes(b"c")
    (tmp_path / "outside" / "b").write_bytes(b"b")
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    (tmp_path / "tree" / "a").write_bytes(b"a")
    (tmp_path / "tree" / "file").symlink_to("a")
    (tmp_path / "tree" / "sub" / "link").symlink_to(tmp_path / "outside")
    return tmp_path / "tree"


@pytest.fixture
def top(fs, tmp_path):
    fs.makedirs(f"put{tmp_path}")
    return f"put{tmp_path}"


def contents(fs, top):
    return {path.removeprefix(f"{top}/"): fs.cat_file(path) for path in fs.find(top)}


WHOLE = {"a": b"a", "file": b"a", "sub/link/b": b"b", "sub/link/deep/c": b"c"}


def below(directory, files):
    return {f"{directory}/{name}": data for name, data in files.items()}


@pytest.mark.parametrize(
    ("source", "target", "arrived"),
    [
        ("", "/new", below("new", WHOLE)),
        ("", "/", below("tree", WHOLE)),
        ("/", "/new/", below("new", WHOLE)),
        ("/*", "/new", below("new", WHOLE)),
        ("/**", "/new", below("new", WHOLE)),
        ("/sub/l*", "/new", below("new", {"b": b"b", "deep/c": b"c"})),
    ],
)
def test_what_is_behind_a_link_to_a_directory_arrives(fs, tree, top, source, target, arrived):
    fs.put(f"{tree}{source}", f"{top}{target}", recursive=True)

    assert contents(fs, top) == arrived


def test_what_lies_deeper_than_wanted_does_not_arrive(fs, tree, top):
    fs.put(str(tree), f"{top}/new", recursive=True, maxdepth=3)

    assert contents(fs, f"{top}/new") == {name: WHOLE[name] for name in ("a", "file", "sub/link/b")}


def test_a_list_of_trees_arrives(fs, tree, top):
    fs.put([str(tree / "a"), str(tree / "sub")], f"{top}/new/", recursive=True)

    assert sorted(contents(fs, top).values()) == [b"a", b"b", b"c"]


def test_a_link_that_leads_back_is_named_before_anything_is_copied(fs, tree, top):
    (tree / "sub" / "back").symlink_to(tree)

    with pytest.raises(FailedPreconditionError, match=r"sub/back.*leads back"):
        fs.put(str(tree), f"{top}/new", recursive=True)
    assert contents(fs, top) == {}


def test_a_directory_that_cannot_be_listed_is_named(fs, tree, top, monkeypatch):
    listed = os.listdir

    def refuse(path):
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(PermissionError, match="deep"):
        fs.put(str(tree), f"{top}/new", recursive=True)


def test_a_tree_with_links_comes_back_whole(service, fs, tree, tmp_path):
    local = ModularFileSystem("file", service=service)
    local.get(str(tree), str(tmp_path / "copy"), recursive=True)

    assert contents(local, str(tmp_path / "copy")) == WHOLE


@pytest.mark.parametrize("operation", ["copy", "get", "put"])
@pytest.mark.parametrize(
    ("source", "recursive"),
    [("", True), ("/sub", True), ("/sub/*", True), ("/sub/*", False), ("/sub/none", False)],
)
def test_a_link_that_leads_nowhere_is_named(service, tree, tmp_path, operation, source, recursive):
    (tree / "sub" / "none").symlink_to("nothing")
    local = ModularFileSystem("file", service=service)

    with pytest.raises(FileNotFoundError, match="sub/none"):
        getattr(local, operation)(f"{tree}{source}", f"{tmp_path}/new/", recursive=recursive)


def test_a_file_that_cannot_arrive_is_named(service, tree, tmp_path):
    local = ModularFileSystem("file", service=service)

    with pytest.raises(FileNotFoundError, match="missing"):
        local.copy(f"{tree}/a", f"{tmp_path}/missing/b", recursive=True)
