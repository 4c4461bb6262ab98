"""Which command and which options a command line means, and what wrong usage says."""

import pytest

from modular_tf.cli import plugins
from modular_tf.cli.main import run


@pytest.fixture
def options_of(monkeypatch):
    """Run a command line of `schemes`, and return the global options that the command gets."""
    seen = []

    def note(call):
        seen.append(call.options)
        return 0

    monkeypatch.setattr(plugins.schemes, "callback", note)

    def options(words):
        assert run(words) == 0
        return seen.pop()

    return options


@pytest.mark.parametrize(
    "words",
    [
        ["--json", "--plugin", "a", "--plugin", "b", "-v", "--no-bundled", "schemes"],
        ["schemes", "--json", "--plugin", "a", "--plugin", "b", "-v", "--no-bundled"],
        ["--plugin", "a", "--json", "schemes", "--plugin", "b", "--no-bundled", "-v"],
    ],
    ids=["before", "after", "both"],
)
def test_global_options_stand_on_either_side_of_the_verb(words, options_of):
    options = options_of(words)

    assert options.plugin == ["a", "b"]
    assert options.json
    assert options.verbose == 1
    assert not options.bundled


def test_global_options_stand_between_the_words_of_a_family_too(mtf, tmp_path):
    (tmp_path / "file").touch()
    ended = mtf("-v", "fs", "--json", "ls", "-v", tmp_path)

    assert ended.object["listings"][0]["uri"] == str(tmp_path)
    assert "plugin.probe" in ended.err or "debug" in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "commands:\n  list "),
        (["lst"], "did you mean 'list'?"),
        (["zzz"], "there are: list, devices"),
        (["fs"], "commands:\n  ls "),
        (["fs", "gob"], "did you mean 'glob'?"),
        (["list", "--load"], "No such option"),
        (["fs", "cp", "a"], "Missing argument"),
        (["--plugin"], "Option '--plugin' requires an argument"),
        (["list", "--log", "x"], "(see `modular-tf list --help`)"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(words, message, capsys):
    assert run(words) == 2

    ended = capsys.readouterr()
    assert ended.out == ""
    assert message in ended.err


def test_the_version_is_the_packages(capsys):
    from modular_tf import __version__

    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"modular-tf {__version__}\n"
