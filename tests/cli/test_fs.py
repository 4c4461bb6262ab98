"""`fs ls`, `cat`, `stat`, `mkdir`, `rm`, `glob`, `find` and `du`, on local files by the plugin."""

import os
import warnings

import pytest
from fsspec.implementations.memory import MemoryFileSystem

CONTENT = bytes(range(256)) * 40_000  # 10 MB: more than one piece of a stream


@pytest.fixture
def tree(tmp_path):
    """A directory with files at three levels, and an empty directory."""
    base = tmp_path / "tree"
    (base / "sub" / "deep").mkdir(parents=True)
    (base / "empty").mkdir()
    (base / "a.txt").write_bytes(b"text")
    (base / "b.bin").write_bytes(CONTENT)
    (base / "sub" / "c.txt").write_bytes(b"22")
    (base / "sub" / "deep" / "large.bin").write_bytes(bytes(2**20))
    os.utime(base / "a.txt", (1_600_000_000, 1_600_000_000))
    return base


TOP = ["a.txt", "b.bin", "empty", "sub"]


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("ls {tree}", TOP),
        ("ls file://{tree}", TOP),
        ("ls {tree}/a.txt", ["{tree}/a.txt"]),
        ("ls {tree}/sub {tree}/empty", ["{tree}/sub:", "c.txt", "deep", "{tree}/empty:"]),
        ("ls {tree}/[as]*", ["{tree}/a.txt", "{tree}/sub:", "c.txt", "deep"]),  # files first
        ("ls -R {tree}", ["{tree}:", *TOP, "{tree}/empty:", "{tree}/sub:", "c.txt", "deep",
                          "{tree}/sub/deep:", "large.bin"]),
        ("glob {tree}/*.txt file://{tree}/*/*.txt", ["{tree}/a.txt", "file://{tree}/sub/c.txt"]),
        ("find {tree}/sub", ["{tree}/sub", "{tree}/sub/c.txt", "{tree}/sub/deep",
                             "{tree}/sub/deep/large.bin"]),
        ("find {tree} --name *.txt", ["{tree}/a.txt", "{tree}/sub/c.txt"]),
        ("find {tree} --min-size 1K", ["{tree}/b.bin", "{tree}/sub/deep/large.bin"]),
        ("find {tree} --max-size 3", ["{tree}/sub/c.txt"]),
        ("find {tree} --min-size 4 --max-size 4", ["{tree}/a.txt"]),
        ("find {tree} --type f --max-depth 1", ["{tree}/a.txt", "{tree}/b.bin"]),
        ("du {tree}/sub", ["1048576\t{tree}/sub/deep", "1048578\t{tree}/sub"]),
        ("du -s -h {tree}/sub {tree}/a.txt", ["1.0 MiB\t{tree}/sub", "4 B\t{tree}/a.txt"]),
        ("du --max-depth 1 {tree}", ["0\t{tree}/empty", "1048578\t{tree}/sub",
                                     "11288582\t{tree}"]),
    ],
)  # fmt: skip
def test_what_is_there_is_listed(mtf, tree, words, lines):
    ended = mtf("fs", *(word.format(tree=tree) for word in words.split()))

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines == [line.format(tree=tree) for line in lines]


def test_listings_are_there_for_programs(mtf, tree):
    listing, *more = mtf("fs", "ls", "-R", "--json", tree).object["listings"]

    assert [listing["uri"], *(one["uri"] for one in more)] == [
        str(tree), f"{tree}/empty", f"{tree}/sub", f"{tree}/sub/deep",
    ]  # fmt: skip
    assert listing["entries"][0] == {
        "uri": f"{tree}/a.txt",
        "name": "a.txt",
        "type": "file",
        "size": 4,
        "mtime_ns": 1_600_000_000 * 10**9,
    }
    assert [entry["size"] for entry in listing["entries"]] == [4, len(CONTENT), None, None]
    assert listing["entries"][2]["type"] == "directory"
    assert mtf("fs", "glob", "--json", f"{tree}/b*").object["matches"] == [f"{tree}/b.bin"]
    assert mtf("fs", "find", tree / "sub", "--type", "d", "--json").object["found"] == [
        {"uri": f"{tree}/sub", "type": "directory"},
        {"uri": f"{tree}/sub/deep", "type": "directory"},
    ]
    assert mtf("fs", "du", "-s", "--json", tree / "sub").object["usages"] == [
        {"uri": f"{tree}/sub", "size": 1048578, "files": 2}
    ]
    facts = mtf("fs", "stat", "--json", tree, f"file://{tree}/a.txt").object["files"]
    assert [(f["type"], f["size"]) for f in facts] == [("directory", None), ("file", 4)]


def test_long_ls_shows_kind_size_and_time(mtf, tree):
    (tree / "empty" / "nothing").touch()
    rows = [line.split("\t") for line in mtf("fs", "ls", "-l", tree).lines]
    for_people = [
        line.split("\t") for line in mtf("fs", "ls", "-lh", tree / "empty", tree / "sub").lines
    ]

    assert [(row[0], row[1], row[3]) for row in rows] == [
        ("file", "4", "a.txt"),
        ("file", str(len(CONTENT)), "b.bin"),
        ("directory", "", "empty"),
        ("directory", "", "sub"),
    ]
    assert rows[0][2].startswith("2020-09-1")
    assert mtf("fs", "stat", tree / "a.txt").lines[0].split("\t")[::3] == [
        "file", f"{tree}/a.txt",
    ]  # fmt: skip
    sizes = {row[3]: row[1] for row in for_people if len(row) > 1}
    assert sizes == {"nothing": "0 B", "c.txt": "2 B", "deep": ""}


def test_find_knows_what_is_newer(mtf, tree):
    for path in (*tree.rglob("*"), tree):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    os.utime(tree / "sub" / "c.txt", (1_700_000_000, 1_700_000_000))
    os.utime(tree / "b.bin", (1_650_000_000, 1_650_000_000))

    assert mtf("fs", "find", tree, "--newer", tree / "b.bin").lines == [f"{tree}/sub/c.txt"]
    assert mtf("fs", "find", tree, "--newer", tree / "none").code == 1


def test_cat_writes_the_very_bytes_and_goes_on_after_a_missing_file(mtf, tree):
    whole = mtf("fs", "cat", tree / "b.bin", tree / "a.txt")
    ended = mtf("fs", "cat", tree / "a.txt", tree / "no", tree / "sub" / "c.txt")

    assert (whole.code, whole.out) == (0, CONTENT + b"text")
    assert (ended.code, ended.out) == (1, b"text22")
    assert ended.err.startswith(f"modular-tf: {tree}/no: No such file or directory")
    assert ended.err.count("\n") == 1
    as_json = mtf("fs", "cat", "--json", tree / "a.txt")
    assert (as_json.code, as_json.out) == (2, b"")


def test_names_that_are_not_text_pass_unharmed(mtf, tree):
    strange = tree / "empty" / os.fsdecode(b"\xff\n")
    strange.write_bytes(b"odd")

    assert mtf("fs", "ls", tree / "empty").out == b"\xff\\n\n"
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
    assert sorted(child.name for child in tree.iterdir()) == ["b.bin", "empty"]


def test_a_dangling_link_is_listed_and_can_be_removed(mtf, tree):
    (tree / "empty" / "link").symlink_to("nowhere")

    assert mtf("fs", "ls", "-l", tree / "empty").lines == ["other\t\t-\tlink"]
    (shown,) = mtf("fs", "ls", tree / "empty", "--json").object["listings"][0]["entries"]
    assert (shown["size"], shown["mtime_ns"]) == (None, None)
    assert mtf("fs", "rm", tree / "empty" / "link").code == 0
    assert not (tree / "empty" / "link").is_symlink()


@pytest.mark.parametrize(
    ("name", "named"), [*((it, it) for it in ("a*", "a[1].txt", "a?.txt", "a\\*")), ("a*", "a\\*")]
)
def test_a_name_that_exists_is_no_pattern_and_a_backslash_escapes(mtf, tree, name, named):
    (tree / name).write_bytes(b"literal")

    assert mtf("fs", "cat", f"{tree}/{named}").out == b"literal"


class Remarking(MemoryFileSystem):
    """A client that warns of something else."""

    def ls(self, path, *arguments, **options):
        warnings.warn("a remark", FutureWarning, stacklevel=2)
        return super().ls(path, *arguments, **options)


def test_a_warning_of_a_client_is_no_failure_and_is_not_lost(object_store):
    client = Remarking(global_store=False, skip_instance_cache=True)
    client.pipe_file("/d/a.txt", b"x")
    object_store.service.register_filesystem("remarking", client)
    work = object_store.work()
    with pytest.warns(FutureWarning, match="a remark"):
        found = work.expand("remarking:///d/*.txt")

    assert [location.uri for location in found] == ["remarking:///d/a.txt"]
    assert work.failures == []


def test_a_scheme_that_nobody_serves_is_explained(mtf):
    ended = mtf("fs", "ls", "s3://bucket/x")

    assert ended.code == 1
    assert ended.err.startswith("modular-tf: s3://bucket/x: ")
    assert "modular-tf why s3" in ended.err


VERBS = ["ls", "du", "find", "stat", "cat", "head", "tail", "rm", "cp", "mv"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("name", "said"),
    [("none", "No such file or directory"), ("*.none", "nothing matches this pattern")],
)
def test_what_is_missing_is_one_line_with_its_uri(mtf, tree, verb, name, said):
    target = tree / "a.txt"
    ended = mtf("fs", verb, tree / name, *[target] * (verb in {"cp", "mv"}))

    assert (ended.code, ended.out) == (1, b"")
    assert ended.err.startswith(f"modular-tf: {tree}/{name}: {said}")
    assert ended.err.count("\n") == 1
    assert target.read_bytes() == b"text"


@pytest.mark.parametrize("words", [["glob", "{tree}/*.none"], ["find", "{tree}", "--name", "none"]])
def test_a_search_that_finds_nothing_is_3(mtf, tree, words):
    ended = mtf("fs", *(word.format(tree=tree) for word in words))

    assert (ended.code, ended.out, ended.err) == (3, b"", "")
