"""`mv` and `rm` of lists, patterns and levels: exactly what was meant, and nothing behind links."""

from __future__ import annotations

import pytest

from modular_tf.errors import FailedPreconditionError, InvalidArgumentError
from modular_tf.fsspec import ModularFileSystem


@pytest.fixture
def local(service):
    return ModularFileSystem("file", service=service)


@pytest.fixture(params=["ram", "file"])
def place(request, service, tmp_path):
    """A filesystem and an empty directory of it."""
    fs = ModularFileSystem(request.param, service=service)
    top = str(tmp_path) if request.param == "file" else f"moves{tmp_path}"
    fs.makedirs(top, exist_ok=True)
    yield fs, top
    fs.rm(top, recursive=True)


def contents(fs, top):
    return {path.removeprefix(f"{top}/"): fs.cat_file(path) for path in fs.find(top)}


@pytest.mark.parametrize(
    ("source", "target", "recursive"),
    [
        ("d/*.txt", "d/", False),
        ("d/*", "d", False),
        (["d/x.txt", "d/y.txt"], "d/", False),
        (["d/x.txt"], ["d/x.txt"], False),
        (["d/x.txt"], ["d//x.txt"], False),
        (["d"], ["d"], True),
        ("d/x.txt", "d/", False),
        ("d", "d", True),
    ],
)
def test_what_is_moved_to_where_it_is_stays(place, source, target, recursive):
    fs, top = place
    fs.mkdir(f"{top}/d")
    fs.pipe({f"{top}/d/x.txt": b"precious", f"{top}/d/y.txt": b"too"})

    def full(path):
        return [f"{top}/{one}" for one in path] if isinstance(path, list) else f"{top}/{path}"

    fs.mv(full(source), full(target), recursive=recursive)
    assert contents(fs, top) == {"d/x.txt": b"precious", "d/y.txt": b"too"}


def test_a_list_is_moved_whole(place):
    fs, top = place
    fs.makedirs(f"{top}/d/sub")
    fs.mkdir(f"{top}/e")
    fs.pipe({f"{top}/d/x": b"x", f"{top}/d/sub/y": b"y", f"{top}/d/stays": b"s"})
    fs.mv([f"{top}/d/x", f"{top}/d/sub"], f"{top}/e/", recursive=True)

    assert b"".join(sorted(contents(fs, f"{top}/e").values())) == b"xy"
    assert contents(fs, f"{top}/d") == {"stays": b"s"}
    assert not fs.exists(f"{top}/d/sub")


@pytest.mark.parametrize(
    ("sources", "targets"),
    [
        (["a/f", "b/f"], ["c", "c"]),
        (["a/f", "b/f"], ["b/f", "c"]),
    ],
    ids=["two to one place", "to where another is moved from"],
)
def test_a_move_that_would_lose_a_file_does_nothing(place, sources, targets):
    fs, top = place
    for name in ("a", "b"):
        fs.mkdir(f"{top}/{name}")
        fs.pipe_file(f"{top}/{name}/f", name.encode())
    before = contents(fs, top)
    with pytest.raises(InvalidArgumentError, match="moved"):
        fs.mv([f"{top}/{one}" for one in sources], [f"{top}/{one}" for one in targets])

    assert contents(fs, top) == before


@pytest.mark.parametrize("paths", ["t/**", ["t", "t/u"], ["t/u/v", "t", "t/w/z"]])
def test_a_tree_and_what_is_in_it_are_removed_once(place, paths):
    fs, top = place
    fs.makedirs(f"{top}/t/u/v")
    fs.makedirs(f"{top}/t/w")
    fs.pipe({f"{top}/t/u/v/y": b"1", f"{top}/t/u/x": b"1", f"{top}/t/w/z": b"1"})
    fs.rm([f"{top}/{one}" for one in paths] if isinstance(paths, list) else f"{top}/{paths}", True)

    assert fs.find(top) == []


# ---- links ----


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
        ("d", {"recursive": True}),
        ("d", {"recursive": True, "maxdepth": 3}),
        ("d/**", {"recursive": True}),
        ("d/*", {"recursive": True, "maxdepth": 2}),
        ("d/link", {"recursive": True}),
        ("d/link", {"recursive": True, "maxdepth": 3}),
        ("d/link", {}),
        ("d/li*", {}),
    ],
)
def test_of_a_link_the_link_is_removed(local, linked, path, options):
    local.rm(f"{linked}/{path}", **options)

    assert (linked / "outside" / "f").read_text() == "kept"
    assert not (linked / "d" / "link").is_symlink()


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


def test_a_link_is_moved_by_itself(local, linked):
    local.mv(f"{linked}/d/link", f"{linked}/moved", recursive=True)

    assert (linked / "moved").is_symlink()
    assert (linked / "outside" / "f").read_text() == "kept"


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


@pytest.mark.parametrize("verb", ["get", "copy"])
def test_a_tree_without_end_is_not_copied(local, loop, tmp_path, verb):
    with pytest.raises(FailedPreconditionError, match="leads back to a directory above"):
        getattr(local, verb)(str(loop), str(tmp_path / "copy"), recursive=True)

    assert not (tmp_path / "copy").exists()


@pytest.mark.parametrize("source", ["link/sub/g", "hard", "d/sub/g"])
@pytest.mark.parametrize("verb", ["get_file", "put_file", "cp_file", "get", "put", "copy", "mv"])
def test_a_file_that_is_its_own_target_stays(local, tmp_path, verb, source):
    (tmp_path / "d" / "sub").mkdir(parents=True)
    (tmp_path / "d" / "sub" / "g").write_text("kept")
    (tmp_path / "link").symlink_to("d")
    (tmp_path / "hard").hardlink_to(tmp_path / "d" / "sub" / "g")
    getattr(local, verb)(f"{tmp_path}/{source}", f"{tmp_path}/d/sub/g")

    assert (tmp_path / "d" / "sub" / "g").read_text() == "kept"
