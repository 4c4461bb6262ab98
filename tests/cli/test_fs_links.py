"""Links on the command line: no copy without end, and nothing lost that lies behind one."""

from __future__ import annotations

import pytest

SCHEMES = pytest.mark.parametrize("scheme", ["", "file://"])


def below(folder):
    """Return the files below a directory that are no links, by name."""
    found = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in found
        if path.is_file() and not path.is_symlink()
    }


@pytest.fixture
def world(tmp_path):
    """A directory real/ with src/ in it, and a link to real."""
    (tmp_path / "real" / "src").mkdir(parents=True)
    (tmp_path / "real" / "f").write_text("precious")
    (tmp_path / "real" / "src" / "s").write_text("s")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "hard").hardlink_to(tmp_path / "real" / "f")
    return tmp_path


@SCHEMES
@pytest.mark.parametrize(
    "words",
    [
        ("sync", "--delete", "link/src", "real"),
        ("sync", "--delete", "-n", "link/src", "real"),
        ("sync", "link", "real/src"),
        ("cp", "-r", "real", "link/src"),
        ("cp", "-r", "real", "link/src/new"),
        ("cp", "link/f", "real/f"),
        ("cp", "hard", "real/f"),
        ("mv", "link/f", "real/f"),
        ("mv", "real", "link/src"),
        ("mv", "--include", "*", "link/src", "real"),
        ("mv", "--include", "*", "real", "link/src/new"),
    ],
    ids=" ".join,
)
def test_what_would_destroy_its_source_is_refused(mtf, world, scheme, words):
    before = below(world)
    flags = [word for word in words[1:] if word.startswith(("-", "*"))]
    source, target = words[-2:]
    ended = mtf("fs", words[0], *flags, world / source, f"{scheme}{world}/{target}")

    assert ended.code == 1
    assert ended.err
    assert below(world) == before


def test_of_two_hard_links_one_is_moved(mtf, world):
    ended = mtf("fs", "mv", world / "hard", world / "real" / "f")

    assert ended.code == 0
    assert not (world / "hard").exists()
    assert (world / "real" / "f").read_text() == "precious"


def test_a_link_is_not_moved_onto_its_file(mtf, world):
    (world / "to_f").symlink_to("real/f")
    ended = mtf("fs", "mv", world / "to_f", world / "real" / "f")

    assert ended.code == 1
    assert (world / "real" / "f").read_text() == "precious"


# ---- loops ----


@pytest.fixture
def loop(tmp_path):
    """A directory with one file of 6 bytes and two links to itself."""
    folder = tmp_path / "loop"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "f").write_text("hello\n")
    (folder / "one").symlink_to(".")
    (folder / "sub" / "two").symlink_to("..")
    return folder


@SCHEMES
@pytest.mark.parametrize("verb", [("du", "-s"), ("find",), ("ls", "-R")], ids=" ".join)
def test_a_walk_ends_where_a_link_leads_back(mtf, loop, scheme, verb):
    ended = mtf("fs", *verb, f"{scheme}{loop}")

    assert ended.code == 1
    for link in ("one", "sub/two"):
        assert f"{loop}/{link}: leads back to a directory above it" in ended.err
    assert ended.err.count("leads back") == 2
    if verb[0] == "du":
        assert ended.lines == [f"6\t{scheme}{loop}"]


@pytest.mark.parametrize("target", ["", "file://", "ram://"])
@pytest.mark.parametrize("verb", [("cp", "-r"), ("sync",), ("cp", "-rn")], ids=" ".join)
def test_a_copy_ends_where_a_link_leads_back(mtf, loop, tmp_path, verb, target):
    ended = mtf("fs", *verb, loop, f"{target}{tmp_path}/copy")

    assert ended.code == 1
    assert ended.err.count("leads back") == 2
    if target != "ram://" and "-rn" not in verb:
        assert below(tmp_path / "copy") == {"sub/f": "hello\n"}


def test_a_copy_leaves_out_the_place_where_it_arrives(mtf, tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f").write_text("f")
    (tmp_path / "t").mkdir()
    (tmp_path / "a" / "to_t").symlink_to(tmp_path / "t")
    ended = mtf("fs", "cp", "-r", tmp_path / "a", tmp_path / "t" / "x")

    assert ended.code == 1
    assert "is where the copy arrives" in ended.err
    assert below(tmp_path / "t") == {"x/f": "f"}


def test_a_copy_writes_nothing_into_its_source_by_a_link_of_the_target(mtf, tmp_path):
    for name in ("a/x/f", "a/y/f", "b/other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "b" / "x").symlink_to(tmp_path / "a" / "y")
    for words in (("cp", "-r"), ("sync", "--delete")):
        ended = mtf("fs", *words, f"{tmp_path}/a" + "/." * (words[0] == "cp"), tmp_path / "b")
        assert ended.code == 1
        assert "leads back to the source" in ended.err
    assert below(tmp_path / "a") == {"x/f": "a/x/f", "y/f": "a/y/f"}


# ---- removals and moves ----


def test_sync_deletes_nothing_behind_a_link_of_the_target(mtf, tmp_path):
    for name in ("a/x/f", "outside/f", "outside/only", "b/surplus"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("same")
    (tmp_path / "b" / "x").symlink_to(tmp_path / "outside")
    ended = mtf("fs", "sync", "--delete", tmp_path / "a", tmp_path / "b")

    assert ended.code == 1
    assert "nothing in it was deleted" in ended.err
    assert (tmp_path / "outside" / "only").read_text() == "same"


@pytest.mark.parametrize("filters", [(), ("--include", "*")], ids=["whole", "filtered"])
def test_a_move_to_another_store_leaves_links_to_directories(mtf, tmp_path, filters):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "g").write_text("g")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("kept")
    (tmp_path / "d" / "link").symlink_to(tmp_path / "outside")
    ended = mtf("fs", "mv", *filters, tmp_path / "d", f"ram://{tmp_path}/e")

    assert ended.code == 1
    assert "is a link to a directory" in ended.err
    assert (tmp_path / "d" / "link" / "f").read_text() == "kept"


# ---- where a copy arrives ----


@pytest.mark.parametrize("source", [".", "..", "../", "sub/..", "sub/."])
def test_what_is_in_a_dotted_source_arrives_in_the_target(mtf, tmp_path, monkeypatch, source):
    for name in ("src/at/sub/b.txt", "src/at/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "src" / "at")
    before = below(tmp_path / "src")
    ended = mtf("fs", "cp", "-r", source, tmp_path / "out")

    expected = before if source.startswith("..") else below(tmp_path / "src" / "at" / source)
    assert ended.code == 0
    assert below(tmp_path / "out") == expected
    assert below(tmp_path / "src") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "src"]
