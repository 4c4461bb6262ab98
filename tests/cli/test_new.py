"""`modular-tf new`: a project in one command, and mistakes that leave nothing behind."""

import pytest

from modular_tf.cli.process import Exit


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_is_written_where_and_under_the_names_that_are_wanted(mtf, somewhere):
    ended = mtf("new", "filesystem", "My-Store")
    assert (ended.code, ended.err) == (Exit.DONE, "")
    assert [path.name for path in somewhere.iterdir()] == ["My-Store"]
    assert str(somewhere / "My-Store" / "src" / "plugin.cc") in ended.lines

    source, there = "git+https://host.example/modular_tf@main", somewhere / "here"
    words = ("--type", "NPU", "--directory", "here", "--install-from", source, "--json")
    ended = mtf("new", "device", "npu2", *words)
    assert ended.code == Exit.DONE
    files = [path for path in there.rglob("*") if path.is_file()]
    assert ended.object.pop("files") == sorted(str(path.relative_to(there)) for path in files)
    made = [ended.object[name] for name in ("directory", "kind", "library", "registered")]
    assert made == [str(there), "device", "npu2", "NPU"]
    assert source in (there / ".github/workflows/ci.yml").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("filesystem", "2fast"), "'2fast' cannot be the name of a project"),
        (("kernel", "mine"), "'kernel' is not one of"),
        (("device",), "Missing argument 'NAME'"),
        (("device", "chip", "--install-from", "/x"), "path of this machine"),
    ],
)
def test_a_mistake_is_explained(mtf, somewhere, words, said):
    ended = mtf("new", *words)

    assert ended.code == Exit.USAGE
    assert said in ended.err
    assert list(somewhere.iterdir()) == []


def test_what_is_there_is_not_written_over_and_a_missing_parent_is_named(mtf, somewhere):
    (somewhere / "store").mkdir()
    there = mtf("new", "filesystem", "store")
    missing = mtf("new", "filesystem", "store", "--directory", "a/b")

    assert (there.code, missing.code) == (Exit.NO, Exit.NO)
    assert f"{somewhere / 'store'}: it exists already" in there.err
    assert list((somewhere / "store").iterdir()) == []
    assert str(somewhere / "a") in missing.err
