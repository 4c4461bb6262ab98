"""`fs cp` and `fs mv`, within a filesystem and between two."""

import os
import tracemalloc

import pytest

from modular_tf.errors import FailedPreconditionError
from modular_tf.filesystem.copying import COPY_BLOCK, CopyWatch
from modular_tf.filesystem.location import Location
from modular_tf.filesystem.trees import Copying, Item, move_file
from tests.filesystem.careless import careless_service

CONTENT = os.urandom(9 * 2**20 + 5)


@pytest.fixture
def tree(tmp_path):
    """A directory with `a.bin` and `sub/deep/c`, and an empty one beside it called `other`."""
    base = tmp_path / "tree"
    (base / "sub" / "deep").mkdir(parents=True)
    (base / "sub" / "empty").mkdir()
    (base / "a.bin").write_bytes(CONTENT)
    (base / "sub" / "deep" / "c").write_bytes(b"deep")
    (tmp_path / "other").mkdir()
    return base


def names_in(directory):
    return sorted(child.name for child in directory.iterdir())


@pytest.fixture
def other(tree):
    return tree.parent / "other"


WITHIN_AND_BETWEEN = pytest.mark.parametrize(
    "target_scheme", ["", "file://"], ids=["within", "between"]
)


@WITHIN_AND_BETWEEN
def test_cp_is_exact_and_enters_directories(mtf, tree, other, target_scheme):
    (tree / "a.bin").chmod(0o600)
    ended = mtf("fs", "cp", tree / "a.bin", f"{target_scheme}{other}/b")
    into = mtf("fs", "cp", tree / "a.bin", tree / "sub/deep/c", f"{target_scheme}{other}", "--json")

    assert (ended.code, ended.out, ended.err) == (0, b"", "")
    assert (other / "b").read_bytes() == CONTENT
    assert (other / "b").stat().st_mode & 0o777 == 0o600  # a private file stays private
    assert into.object["copied"] == [
        {"from": f"{tree}/a.bin", "to": f"{target_scheme}{other}/a.bin"},
        {"from": f"{tree}/sub/deep/c", "to": f"{target_scheme}{other}/c"},
    ]
    assert (other / "c").read_bytes() == b"deep"
    assert mtf("fs", "cp", "-r", tree, f"{target_scheme}{other}").code == 0
    assert mtf("fs", "cp", "-r", tree / "sub", f"{target_scheme}{other}/new").code == 0
    assert (other / "tree" / "a.bin").read_bytes() == CONTENT
    assert (other / "tree" / "sub" / "empty").is_dir()
    assert (other / "new" / "deep" / "c").read_bytes() == b"deep"


def test_cp_needs_r_for_directories_and_several_sources_a_directory(mtf, tree, other):
    several = mtf("fs", "cp", tree / "a.bin", tree / "sub/deep/c", other / "file")
    assert (several.code, names_in(other)) == (1, [])
    assert several.err.startswith(f"modular-tf: {other}/file: is not a directory")

    ended = mtf("fs", "cp", tree, tree / "a.bin", other)
    assert (ended.code, names_in(other)) == (1, ["a.bin"])
    assert ended.err.startswith(f"modular-tf: {tree}: is a directory; copy it with -r\n")


@WITHIN_AND_BETWEEN
def test_mv_moves_files_and_directories(mtf, tree, other, target_scheme):
    (tree / "a.bin").chmod(0o600)
    file = mtf("fs", "mv", tree / "a.bin", f"{target_scheme}{other}/b", "--json")
    directory = mtf("fs", "mv", tree / "sub", f"{target_scheme}{other}")

    assert file.object["moved"] == [{"from": f"{tree}/a.bin", "to": f"{target_scheme}{other}/b"}]
    assert directory.code == 0
    assert (other / "b").read_bytes() == CONTENT
    assert (other / "b").stat().st_mode & 0o777 == 0o600
    assert (other / "sub" / "deep" / "c").read_bytes() == b"deep"
    assert names_in(tree) == []


def test_a_move_removes_nothing_that_may_be_the_only_copy(tmp_path):
    (tmp_path / "file").write_bytes(b"kept")
    (tmp_path / "link").symlink_to("file")
    with careless_service("WITH_STATE") as service:  # which cannot tell that both are one store
        source, link, new = (
            Location(service.filesystem(scheme), f"{scheme}://{tmp_path}/{name}")
            for scheme, name in (("care", "file"), ("less", "link"), ("less", "new"))
        )
        with pytest.raises(FailedPreconditionError, match="may be the same file"):
            move_file(source, link, CopyWatch())
        assert (tmp_path / "link").read_bytes() == b"kept"
        move_file(source, new, CopyWatch())

    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["new"]


def test_mv_does_not_merge_directories(mtf, tree, other):
    (other / "sub").mkdir()
    for scheme in ("", "file://"):
        ended = mtf("fs", "mv", tree / "sub", f"{scheme}{other}")
        assert ended.code == 1
        assert f"{scheme}{other}/sub exists already" in ended.err

    assert names_in(other / "sub") == []
    assert names_in(tree / "sub") == ["deep", "empty"]


def test_a_copy_holds_one_piece_in_memory_at_a_time(object_store, tree):
    item = Item(object_store.location(tree / "a.bin"), object_store.location("ram://b"))
    work = object_store.work()
    tracemalloc.start()
    try:
        Copying(work, print).run([item])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert work.failures == []
    assert COPY_BLOCK <= peak < 1.5 * COPY_BLOCK
    assert len(CONTENT) > 2 * COPY_BLOCK


@pytest.mark.parametrize("verb", ["cp", "mv"])
def test_two_sources_do_not_become_one_target(mtf, tmp_path, verb):
    for name in ("x", "y", "target"):
        (tmp_path / name).mkdir()
    (tmp_path / "x" / "f").write_text("x")
    (tmp_path / "y" / "f").write_text("y")
    ended = mtf("fs", verb, tmp_path / "x" / "f", tmp_path / "y" / "f", tmp_path / "target")

    assert ended.code == 1
    assert "would both become" in ended.err
    assert names_in(tmp_path / "target") == []
    assert (tmp_path / "x" / "f").read_text() == "x"
    assert mtf("fs", verb, *[tmp_path / "x" / "f"] * 2, tmp_path / "target").code == 0
    assert (tmp_path / "target" / "f").read_text() == "x"


def test_what_is_in_a_dotted_source_arrives_in_the_target(mtf, tree, other, monkeypatch):
    monkeypatch.chdir(tree / "sub")
    for source, arrived in ((".", ["deep", "empty"]), ("..", ["a.bin", "sub"]), ("deep/.", ["c"])):
        into = other / arrived[0]
        into.mkdir()
        assert mtf("fs", "cp", "-r", source, into).code == 0
        assert names_in(into) == arrived

    assert names_in(tree) == ["a.bin", "sub"]
    assert names_in(tree.parent) == ["other", "tree"]
