"""`put` of a local tree: all that is in it arrives, links to directories included, or it fails."""

from __future__ import annotations

import os

import pytest

from modular_tf.errors import FailedPreconditionError


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


def contents(fs, top):
    return {path.removeprefix(f"{top}/"): fs.cat_file(path) for path in fs.find(top)}


WHOLE = {"a": b"a", "file": b"a", "sub/link/b": b"b", "sub/link/deep/c": b"c"}


def below(directory, *names):
    return {f"{directory}/{name}": WHOLE[name] for name in names or WHOLE}


@pytest.mark.parametrize(
    ("source", "target", "options", "arrived"),
    [
        ("", "/new", {}, below("new")),
        ("", "/", {}, below("tree")),
        ("/", "/new/", {}, below("new")),
        ("/*", "/new", {}, below("new")),
        ("/**", "/new", {}, below("new")),
        ("/sub/l*", "/new", {}, {"new/b": b"b", "new/deep/c": b"c"}),
        ("", "/new", {"maxdepth": 3}, below("new", "a", "file", "sub/link/b")),
        (["/a", "/sub"], "/new/", {}, {"new/a": b"a", "new/b": b"b", "new/c": b"c"}),
    ],
)
def test_what_is_behind_a_link_to_a_directory_arrives(
    ram, tree, ram_path, source, target, options, arrived
):
    is_list = isinstance(source, list)
    sources = [f"{tree}{one}" for one in source] if is_list else f"{tree}{source}"
    ram.put(sources, f"{ram_path}{target}", recursive=True, **options)

    assert contents(ram, ram_path) == arrived


def test_a_link_that_leads_back_is_named_before_anything_is_copied(ram, tree, ram_path):
    (tree / "sub" / "back").symlink_to(tree)

    with pytest.raises(FailedPreconditionError, match=r"sub/back.*leads back"):
        ram.put(str(tree), f"{ram_path}/new", recursive=True)
    assert contents(ram, ram_path) == {}


def test_a_directory_that_cannot_be_listed_is_named(ram, tree, ram_path, monkeypatch):
    listed = os.listdir

    def refuse(path):
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(PermissionError, match="deep"):
        ram.put(str(tree), f"{ram_path}/new", recursive=True)


@pytest.mark.parametrize("recursive", [False, True])
def test_a_link_that_matches_a_pattern_and_leads_nowhere_is_named(local, tree, tmp_path, recursive):
    """`tests.trees` has those of whole trees."""
    (tree / "sub" / "none").symlink_to("nothing")

    with pytest.raises(FileNotFoundError, match="sub/none"):
        local.copy(f"{tree}/sub/n*", f"{tmp_path}/new/", recursive=recursive)
