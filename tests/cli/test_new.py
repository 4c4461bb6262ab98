"""`modular-tf new`: a project in one command, and mistakes that leave nothing behind."""

import pytest

from modular_tf.cli.process import Exit


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_is_written_where_one_is(mtf, somewhere):
    ended = mtf("new", "filesystem", "My-Store")

    assert (ended.code, ended.err) == (Exit.DONE, "")
    assert [path.name for path in somewhere.iterdir()] == ["My-Store"]
    assert str(somewhere / "My-Store" / "src" / "plugin.cc") in ended.lines
    assert 'strdup("mystore")' in (somewhere / "My-Store" / "src" / "plugin.cc").read_text()


def test_or_where_it_is_wanted_under_the_names_that_are_wanted(mtf, somewhere):
    ended = mtf("new", "device", "npu2", "--type", "NPU", "--directory", "here", "--json")

    assert ended.code == Exit.DONE
    assert ended.object.pop("files") == sorted(
        str(path.relative_to(somewhere / "here"))
        for path in (somewhere / "here").rglob("*")
        if path.is_file()
    )
    made = [ended.object[name] for name in ("directory", "kind", "library", "registered")]
    assert made == [str(somewhere / "here"), "device", "npu2", "NPU"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("filesystem", "2fast"), "'2fast' cannot be the name of a project"),
        (("kernel", "mine"), "'kernel' is not one of"),
        (("device",), "Missing argument 'NAME'"),
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


def test_its_workflow_installs_modular_tf_from_where_it_is_wanted(mtf, somewhere):
    source = "git+https://host.example/modular_tf@main"
    ended = mtf("new", "device", "chip", "--directory", "made", "--install-from", source)
    refused = mtf("new", "device", "chip", "--directory", "refused", "--install-from", "/x")

    assert ended.code == Exit.DONE
    assert source in (somewhere / "made" / ".github/workflows/ci.yml").read_text()
    assert refused.code == Exit.USAGE
    assert "path of this machine" in refused.err
    assert not (somewhere / "refused").exists()
