"""`mv` and `rm` of lists, patterns and levels: exactly what was meant, and nothing behind links."""

from __future__ import annotations

import pytest

from modular_tf.errors import FailedPreconditionError
from modular_tf.fsspec import ModularFileSystem


@pytest.fixture
def local(service):
    return ModularFileSystem("file", service=service)


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
    "call",
    [
        lambda fs, top: fs.mv(f"{top}/d", f"{top}/e", recursive=True, maxdepth=3),
        lambda fs, top: fs.mv([f"{top}/d"], f"{top}/e", recursive=True),
        lambda fs, top: fs.mv(f"{top}/d/*", f"{top}/e/", recursive=True),
    ],
    ids=["levels", "list", "pattern"],
)
def test_a_link_is_not_moved_with_others(local, linked, call):
    with pytest.raises(FailedPreconditionError, match="link to a directory"):
        call(local, linked)

    assert (linked / "d" / "link" / "f").read_text() == "kept"
    assert (linked / "d" / "sub" / "g").read_text() == "g"


@pytest.fixture
def loop(tmp_path):
    (tmp_path / "loop" / "sub").mkdir(parents=True)
    (tmp_path / "loop" / "sub" / "f").write_text("hello\n")
    (tmp_path / "loop" / "one").symlink_to(".")
    (tmp_path / "loop" / "sub" / "two").symlink_to("..")
    return tmp_path / "loop"


def test_a_walk_ends_where_a_link_leads_back(local, loop):
    assert local.find(str(loop)) == [f"{loop}/sub/f"]
    assert local.du(str(loop)) == 6
    assert local.glob(f"{loop}/**/f") == [f"{loop}/sub/f"]
    assert [path for path, _, _ in local.walk(str(loop))] == [str(loop), f"{loop}/sub"]
