"""`fs sync`: what differs is copied, and nothing is deleted by mistake."""

import os

import pytest


@pytest.fixture
def source(tmp_path):
    base = tmp_path / "source"
    (base / "sub").mkdir(parents=True)
    (base / "empty").mkdir()
    for name in ("a", "b", "sub/c"):
        (base / name).write_text(name)
        os.utime(base / name, (1_000_000, 1_000_000))
    return base


@pytest.fixture
def target(tmp_path):
    return tmp_path / "target"


def names_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


def copied(ended):
    return sorted(one["to"].partition("target/")[2] for one in ended.object["copied"])


def test_a_missing_target_becomes_a_copy_and_what_differs_is_copied_again(mtf, source, target):
    assert mtf("fs", "sync", source, target).code == 0
    assert names_below(target) == names_below(source)
    assert copied(mtf("fs", "sync", source, target, "--json")) == []

    (source / "a").write_text("other length")
    (source / "b").write_text("B")  # same size, newer
    os.utime(target / "b", (2_000_000, 2_000_000))
    os.utime(source / "b", (2_000_002, 2_000_002))
    os.utime(source / "sub" / "c", (0, 0))  # older
    (source / "new").write_text("new")
    assert copied(mtf("fs", "sync", source, target, "--size-only", "-n", "--json")) == ["a", "new"]
    assert copied(mtf("fs", "sync", source, target, "--json")) == ["a", "b", "new"]
    assert (target / "b").read_text() == "B"


def test_only_delete_deletes(mtf, source, target):
    mtf("fs", "sync", source, target)
    (target / "more").mkdir()
    (target / "more" / "x").write_text("x")
    (target / "sub" / "y").write_text("y")
    mtf("fs", "sync", source, target)
    assert (target / "sub" / "y").exists()

    rehearsed = mtf("fs", "sync", source, target, "--delete", "--dry-run")
    assert sorted(rehearsed.lines) == [f"delete\t{target}/more/x", f"delete\t{target}/sub/y"]
    assert (target / "sub" / "y").exists()

    ended = mtf("fs", "sync", source, target, "--delete", "--json")
    assert sorted(ended.object["deleted"]) == [f"{target}/more", f"{target}/sub/y"]
    assert names_below(target) == names_below(source)


def test_what_filters_leave_out_is_neither_copied_nor_deleted(mtf, source, target):
    target.mkdir()
    (target / "keep.log").write_text("kept")
    (target / "gone").write_text("gone")
    (source / "no.log").write_text("not copied")
    ended = mtf("fs", "sync", source, target, "--delete", "--exclude", "*.log")

    assert ended.code == 0
    assert (target / "keep.log").exists()
    assert not (target / "gone").exists()
    assert not (target / "no.log").exists()


@pytest.mark.parametrize("kind", ["missing", "empty", "a file"])
def test_a_source_that_is_wrong_deletes_nothing(mtf, source, target, kind, tmp_path):
    mtf("fs", "sync", source, target)
    wrong = tmp_path / "wrong"
    if kind == "empty":
        wrong.mkdir()
    elif kind == "a file":
        wrong.write_text("x")
    ended = mtf("fs", "sync", wrong, target, "--delete")

    assert ended.code == 1
    assert names_below(target) == names_below(source)
    assert str(wrong) in ended.err
