"""The examples that the help of every command ends with."""

import shlex

import pytest

from modular_tf.cli.frame import GlobalOptions, examples
from modular_tf.cli.main import PROGRAM_COMMAND, VERBS, run

COMMANDS = [
    " ".join([name, *inner])
    for name, verb in VERBS.items()
    for inner in ([[one] for one in verb.commands] if verb.commands else [[]])
]
EXAMPLES = examples()
EXAMPLES_OF_FILES = [
    words for command, found in EXAMPLES.items() if command.startswith("fs ") for words in found
]
BUCKET = "s3://bucket"


def words_of(example):
    """Return the words of a command line, without what a shell does with its output."""
    words = shlex.split(example)
    end = next((i for i, word in enumerate(words) if word in {">", ">>", "|"}), len(words))
    return words[:end]


def test_all_commands_have_examples():
    assert set(EXAMPLES) == set(COMMANDS)
    assert {c: len(e) for c, e in EXAMPLES.items() if not 2 <= len(e) <= 4} == {}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_shows_them_in_80_columns(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*command.split(), "--help"]) == 0
    text = capsys.readouterr().out

    assert f"modular-tf {command}" in text
    assert "--plugin PATH" in text
    for words, purpose in EXAMPLES[command].items():
        assert f"  modular-tf {words}\n      {purpose}\n" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_they_are_command_lines(command):
    for example in EXAMPLES[command]:
        parser, context = PROGRAM_COMMAND, None
        name, words, options = "modular-tf", words_of(example), GlobalOptions()
        for expected in [*command.split(), None]:
            context = parser.make_context(name, words, parent=context, obj=options)
            if expected is not None:
                rest = [*context._protected_args, *context.args]
                name, parser, words = parser.resolve_command(context, rest)
                assert name == expected


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory to work in, with what the examples name, and `bucket` for the bucket."""
    for name in ("bucket/data/1.csv", "bucket/data/2.csv", "bucket/logs/day.log", "report.csv",
                 "data/1.csv"):  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"some,text\n" * (200_000 if name == "bucket/data/1.csv" else 2_000))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("example", EXAMPLES_OF_FILES)
def test_those_of_files_work(example, here, mtf):
    words = [word.replace(BUCKET, f"file://{here}/bucket") for word in words_of(example)]

    ended = mtf(*words)

    assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("words", "said"), [([], "commands:\n  list "), (["fs"], "Work with files of any scheme.")]
)
def test_help_says_what_is_there(capsys, words, said):
    assert run([*words, "--help"]) == 0

    assert said in capsys.readouterr().out
