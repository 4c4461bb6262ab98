"""Which verb and which options a command line means, and what wrong usage says."""

from __future__ import annotations

import pytest

from modular_tf.cli.arguments import parse
from modular_tf.cli.verbs import VERBS


@pytest.mark.parametrize(
    "words",
    [
        ["--json", "--plugin", "a", "--plugin", "b", "-v", "--no-bundled", "schemes"],
        ["schemes", "--json", "--plugin", "a", "--plugin", "b", "-v", "--no-bundled"],
        ["--plugin", "a", "--json", "schemes", "--plugin", "b", "--no-bundled", "-v"],
    ],
    ids=["before", "after", "both"],
)
def test_global_options_stand_on_either_side_of_the_verb(words):
    options = parse(words).options

    assert options.plugin == ["a", "b"]
    assert options.json
    assert options.verbose == 1
    assert not options.bundled


def test_global_options_stand_between_the_words_of_a_family_too():
    options = parse(["-v", "fs", "--json", "ls", "-v", "/tmp"]).options

    assert options.verbose == 2
    assert options.json
    assert options.uris == ["/tmp"]


def test_nothing_given_means_the_defaults():
    options = parse(["list"]).options

    assert (options.plugin, options.plugin_dir, options.bundled) == ([], [], True)
    assert (options.json, options.verbose, options.load) == (False, 0, True)


ALL_VERBS = [
    [name, *inner]
    for name, verb in VERBS.items()
    for inner in ([[one] for one in verb.family] if verb.family else [[]])
]


@pytest.mark.parametrize("words", ALL_VERBS, ids=" ".join)
def test_every_verb_has_help(words, capsys):
    with pytest.raises(SystemExit) as leaving:
        parse([*words, "--help"])

    assert leaving.value.code == 0
    text = capsys.readouterr().out
    assert f"modular-tf {' '.join(words)}" in text
    assert "--plugin PATH" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "commands:\n  list "),
        (["lst"], "did you mean 'list'?"),
        (["zzz"], "there are: list, devices"),
        (["fs"], "commands:\n  ls "),
        (["fs", "gob"], "did you mean 'glob'?"),
        (["list", "--load"], "unrecognized arguments: --load"),
        (["fs", "cp", "a"], "required: TARGET"),
        (["--plugin"], "expected one argument"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(words, said, capsys):
    with pytest.raises(SystemExit) as leaving:
        parse(words)

    assert leaving.value.code == 2
    assert said in capsys.readouterr().err


def test_the_version_is_the_packages(capsys):
    from modular_tf import __version__

    with pytest.raises(SystemExit):
        parse(["--version"])

    assert capsys.readouterr().out == f"modular-tf {__version__}\n"
