"""`fs ls`, `cat`, `stat`, `mkdir`, `rm`, `glob` and `find`, on local files by the POSIX plugin."""

from __future__ import annotations

import os

import pytest

CONTENT = bytes(range(256)) * 40_000  # 10 MB: more than one piece of a stream


@pytest.fixture
def tree(tmp_path):
    """A directory with `a.txt`, `b.bin` and `sub/c.txt`."""
    base = tmp_path / "tree"
    (base / "sub").mkdir(parents=True)
    (base / "a.txt").write_bytes(b"text")
    (base / "b.bin").write_bytes(CONTENT)
    (base / "sub" / "c.txt").write_bytes(b"deep")
    return base


def test_ls_lists_names(mtf, tree):
    assert mtf("fs", "ls", tree).lines == ["a.txt", "b.bin", "sub"]
    assert mtf("fs", "ls", f"file://{tree}").lines == ["a.txt", "b.bin", "sub"]


def test_ls_of_a_file_is_the_file(mtf, tree):
    assert mtf("fs", "ls", tree / "a.txt").lines == [str(tree / "a.txt")]


def test_ls_of_several_directories_has_headings(mtf, tree):
    assert mtf("fs", "ls", tree, tree / "sub").lines == [
        f"{tree}:", "a.txt", "b.bin", "sub", f"{tree}/sub:", "c.txt",
    ]  # fmt: skip


def test_long_ls_shows_sizes_for_people(mtf, tree):
    (tree / "big").write_bytes(bytes(1536))

    rows = {line.split("\t")[3]: line.split("\t")[1] for line in mtf("fs", "ls", "-lh", tree).lines}

    assert (rows["big"], rows["sub"]) == ("1.5 KiB", "")


def test_long_ls_tells_kind_size_and_time(mtf, tree):
    os.utime(tree / "a.txt", (1_600_000_000, 1_600_000_000))
    rows = [line.split("\t") for line in mtf("fs", "ls", "-l", tree).lines]

    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("file", "4", "a.txt"),
        ("file", str(len(CONTENT)), "b.bin"),
        ("directory", "", "sub"),
    ]
    assert rows[0][2].startswith("2020-09-1")


def test_ls_as_json_tells_all_of_that(mtf, tree):
    os.utime(tree / "a.txt", (1_600_000_000, 1_600_000_000))
    listing = mtf("fs", "ls", "--json", tree).object["listings"][0]

    assert listing["uri"] == str(tree)
    assert listing["entries"][0] == {
        "uri": f"{tree}/a.txt",
        "name": "a.txt",
        "type": "file",
        "size": 4,
        "mtime_ns": 1_600_000_000 * 10**9,
    }
    assert listing["entries"][2]["type"] == "directory"


def test_cat_writes_the_very_bytes(mtf, tree):
    assert mtf("fs", "cat", tree / "b.bin", tree / "a.txt").out == CONTENT + b"text"


def test_cat_goes_on_after_a_missing_file(mtf, tree):
    ended = mtf("fs", "cat", tree / "a.txt", tree / "no", tree / "sub" / "c.txt")

    assert (ended.code, ended.out) == (1, b"textdeep")
    assert ended.err.startswith(f"modular-tf: {tree}/no: No such file or directory")
    assert ended.err.count("\n") == 1


def test_cat_has_no_json(mtf, tree):
    ended = mtf("fs", "cat", "--json", tree / "a.txt")

    assert (ended.code, ended.out) == (2, b"")


def test_stat_tells_what_is_there(mtf, tree):
    assert mtf("fs", "stat", tree / "a.txt").lines[0].split("\t")[::3] == [
        "file",
        f"{tree}/a.txt",
    ]
    facts = mtf("fs", "stat", "--json", tree, f"file://{tree}/a.txt").object["files"]
    assert [(f["type"], f["size"]) for f in facts] == [("directory", None), ("file", 4)]


def test_names_that_are_not_text_pass_unharmed(mtf, tree):
    strange = tree / "sub" / os.fsdecode(b"\xff\n")
    strange.write_bytes(b"odd")

    assert mtf("fs", "ls", tree / "sub").out == b"c.txt\n\xff\\n\n"
    assert mtf("fs", "cat", strange).out == b"odd"


def test_mkdir_makes_one_or_with_p_all(mtf, tree):
    assert mtf("fs", "mkdir", tree / "new").code == 0
    assert mtf("fs", "mkdir", tree / "new").code == 1
    assert mtf("fs", "mkdir", tree / "x" / "y").code == 1
    ended = mtf("fs", "mkdir", "-p", tree / "x" / "y", tree / "new", "--json")

    assert ended.object == {
        "schema_version": 1,
        "made": [str(tree / "x" / "y"), str(tree / "new")],
    }
    assert (tree / "x" / "y").is_dir()


def test_rm_removes_files_and_with_r_trees(mtf, tree):
    refused = mtf("fs", "rm", tree / "a.txt", tree / "sub", tree / "no")

    assert refused.code == 1
    assert not (tree / "a.txt").exists()
    assert (tree / "sub" / "c.txt").exists()
    assert f"{tree}/sub: is a directory; remove it with -r" in refused.err
    assert f"{tree}/no: No such file" in refused.err
    assert mtf("fs", "rm", "-r", tree / "sub", "--json").object["removed"] == [f"{tree}/sub"]
    assert [child.name for child in tree.iterdir()] == ["b.bin"]


def test_glob_lists_whole_uris(mtf, tree):
    assert mtf("fs", "glob", f"{tree}/*.txt", f"file://{tree}/*/*.txt").lines == [
        f"{tree}/a.txt",
        f"file://{tree}/sub/c.txt",
    ]
    assert mtf("fs", "glob", "--json", f"{tree}/b*").object["matches"] == [f"{tree}/b.bin"]


def test_a_glob_that_matches_nothing_is_3(mtf, tree):
    ended = mtf("fs", "glob", f"{tree}/*.none")

    assert (ended.code, ended.out, ended.err) == (3, b"", "")


def test_find_lists_whole_trees(mtf, tree):
    assert mtf("fs", "find", tree).lines == [
        str(tree), f"{tree}/a.txt", f"{tree}/b.bin", f"{tree}/sub", f"{tree}/sub/c.txt",
    ]  # fmt: skip
    assert mtf("fs", "find", tree, "--name", "*.txt").lines == [
        f"{tree}/a.txt",
        f"{tree}/sub/c.txt",
    ]
    assert mtf("fs", "find", tree, "--type", "d", "--json").object["found"] == [
        {"uri": str(tree), "type": "directory"},
        {"uri": f"{tree}/sub", "type": "directory"},
    ]
    assert mtf("fs", "find", tree, "--name", "none").code == 3
    assert mtf("fs", "find", tree / "none").code == 1


def test_a_dangling_link_is_listed_and_can_be_removed(mtf, tree):
    link = tree / "sub" / "link"
    link.symlink_to("nowhere")

    assert [line.split("\t")[0] for line in mtf("fs", "ls", "-l", tree / "sub").lines] == [
        "file",
        "other",
    ]
    shown = mtf("fs", "ls", tree / "sub", "--json").object["listings"][0]["entries"][-1]
    assert (shown["size"], shown["mtime_ns"]) == (None, None)
    assert mtf("fs", "find", tree / "sub").lines[-1] == str(link)
    assert mtf("fs", "rm", link).code == 0
    assert not link.is_symlink()


def test_a_scheme_that_nobody_serves_is_explained(mtf):
    ended = mtf("fs", "ls", "s3://bucket/x")

    assert ended.code == 1
    assert ended.err.startswith("modular-tf: s3://bucket/x: ")
    assert "modular-tf why s3" in ended.err


@pytest.mark.parametrize("verb", ["ls", "cat", "stat", "rm", "find"])
def test_what_is_missing_is_one_line_with_its_uri(mtf, tree, verb):
    ended = mtf("fs", verb, tree / "none")

    assert (ended.code, ended.out) == (1, b"")
    assert ended.err.startswith(f"modular-tf: {tree}/none: No such file or directory")
    assert ended.err.count("\n") == 1
