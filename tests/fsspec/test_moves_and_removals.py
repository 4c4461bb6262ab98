"""`mv` and `rm` of lists, patterns and levels: exactly what was meant, and nothing behind links."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from modular_tf.errors import FailedPreconditionError
from modular_tf.fsspec import ModularFileSystem


@pytest.fixture
def linked(tmp_path):
    """A directory d with a link in it to a directory outside."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("kept")
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "sub" / "g").write_text("g")
    (tmp_path / "d" / "link").symlink_to(tmp_path / "outside")
    return tmp_path


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("d/**", {"recursive": True}),
        ("d/*", {"recursive": True, "maxdepth": 2}),
        ("d/link", {}),
        ("d/li*", {}),
    ],
)
def test_of_a_link_the_link_is_removed(local, linked, path, options):
    local.rm(f"{linked}/{path}", **options)

    assert (linked / "outside" / "f").read_text() == "kept"
    assert not (linked / "d" / "link").is_symlink()


def test_a_directory_is_refused_and_the_files_beside_it_are_removed(local, linked):
    (linked / "f").write_text("f")
    with pytest.raises(IsADirectoryError, match=r"/d is a directory; pass recursive=True"):
        local.rm([f"{linked}/d", f"{linked}/f"])

    assert (linked / "d" / "sub" / "g").read_text() == "g"
    assert not (linked / "f").exists()


@pytest.mark.parametrize(
    ("source", "target", "options"),
    [
        ("{}/d", "{}/e", {"maxdepth": 3}),
        (["{}/d"], "{}/e", {}),
        ("{}/d/*", "{}/e/", {}),
    ],
    ids=["levels", "list", "pattern"],
)
def test_a_link_is_not_moved_with_others(local, linked, source, target, options):
    in_place = source.format(linked) if isinstance(source, str) else [source[0].format(linked)]
    with pytest.raises(FailedPreconditionError, match="link to a directory"):
        local.mv(in_place, target.format(linked), recursive=True, **options)

    assert (linked / "d" / "link" / "f").read_text() == "kept"
    assert (linked / "d" / "sub" / "g").read_text() == "g"


def test_a_walk_ends_where_a_link_leads_back(local, tmp_path):
    loop = tmp_path / "loop"
    (loop / "sub").mkdir(parents=True)
    (loop / "sub" / "f").write_text("hello\n")
    (loop / "one").symlink_to(".")
    (loop / "sub" / "two").symlink_to("..")

    assert local.glob(f"{loop}/**/f") == [f"{loop}/sub/f"]
    assert [path for path, _, _ in local.walk(str(loop))] == [str(loop), f"{loop}/sub"]


# ---- names of directories; `tests.trees` has all ways and spellings ----


@pytest.fixture
def tree(ram, ram_path):
    """The path of a directory d with a file in it, and one below it."""
    ram.makedirs(f"{ram_path}/d/sub")
    ram.pipe({f"{ram_path}/d/f": b"kept", f"{ram_path}/d/sub/g": b"kept too"})
    return f"{ram_path}/d"


def test_the_root_is_not_moved_into_itself(ram, tree):
    with pytest.raises(ValueError, match="lies within it"):
        ram.mv("ram://", f"ram://{tree}/new", recursive=True)


@pytest.mark.parametrize("makes_directories", [False, True])
def test_a_target_with_a_slash_at_its_end_is_a_directory(service, tree, makes_directories):
    ram = ModularFileSystem("ram", service=service, auto_mkdir=makes_directories)
    with nullcontext() if makes_directories else pytest.raises(FileNotFoundError):
        ram.mv(f"{tree}/f", f"{tree}/new/")

    place = f"{tree}/new/f" if makes_directories else f"{tree}/f"
    assert sorted(ram.find(tree)) == sorted([place, f"{tree}/sub/g"])
