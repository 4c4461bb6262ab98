"""The text of `modular-tf check`: colours and line breaks for terminals, plain lines for pipes."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from modular_tf.cli.check import broken_at_words
from modular_tf.cli.output import has_colour
from modular_tf.cli.process import Exit
from tests.check.building import DEFECT_VARIABLE, defective_plugin

_COLUMNS = 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SPOILT = "FS-157"
_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS")


@pytest.fixture(scope="module")
def words():
    library = str(defective_plugin("filesystem"))
    return [sys.executable, "-m", "modular_tf", "check", library, "--only", _SPOILT, "--seed", "7"]


def _environment(**changes):
    usual = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    return {**usual, DEFECT_VARIABLE: _SPOILT, **changes}


def _on_terminal(words, **changes):
    """Run a command whose standard output alone is a terminal; return its lines and its status."""
    master, slave = pty.openpty()
    environment = _environment(**{"TERM": "xterm", "COLUMNS": str(_COLUMNS), **changes})
    child = subprocess.Popen(words, stdout=slave, stderr=subprocess.DEVNULL, env=environment)
    os.close(slave)
    seen = b""
    while piece := _read(master):
        seen += piece
    os.close(master)
    return seen.decode().splitlines(), child.wait()


def _read(master):
    try:
        return os.read(master, 2**16)
    except OSError:  # how a terminal says that nobody is left on the other side
        return b""


def _in_pipe(words, **changes):
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=_environment(**changes)
    )
    return done.stdout.splitlines(), done.returncode


def test_a_terminal_gets_colours_and_lines_that_break_at_words(words):
    lines, status = _on_terminal(words)
    plain = [_COLOUR.sub("", line) for line in lines]

    assert status == Exit.NO
    assert f"\x1b[1;31mFAILED\x1b[0m {_SPOILT}" in "\n".join(lines)
    assert any("\x1b[1;31mdoes not conform\x1b[0m" in line for line in lines)
    long = [line for line in plain if len(line) > _COLUMNS]
    assert all(line.startswith("    again: ") or " " not in line.strip() for line in long)
    told, _ = _in_pipe(words)
    assert _joined(plain) == _joined(told)


def _joined(lines):
    """All words; how long the run took is another each time."""
    return re.sub(r"\([0-9.]+ s\)", "", " ".join(" ".join(lines).split()))


def test_a_pipe_gets_neither(words):
    lines, status = _in_pipe(words, TERM="xterm", COLUMNS=str(_COLUMNS))

    assert status == Exit.NO
    assert not any("\x1b" in line for line in lines)
    assert any(len(line) > _COLUMNS and line.startswith("    required: ") for line in lines)


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "dumb"])
def test_a_terminal_without_colours_gets_lines_that_break_all_the_same(words, changes):
    lines, _ = _on_terminal(words, **changes)

    assert not any("\x1b" in line for line in lines)
    assert any(line.startswith(" " * 14) for line in lines)


def test_a_pipe_gets_colours_where_they_are_asked_for(words):
    lines, _ = _in_pipe(words, FORCE_COLOR="1")

    assert any(line.startswith(f"\x1b[1;31mFAILED\x1b[0m {_SPOILT}") for line in lines)
    assert any(len(line) > _COLUMNS for line in lines)


def test_json_has_no_colours_whatever_is_asked_for(words):
    lines, _ = _in_pipe([*words, "--json"], FORCE_COLOR="1")

    assert len(lines) == 1
    assert "\x1b" not in lines[0]


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({"TERM": "xterm"}, True, True),
        ({"TERM": "xterm"}, False, False),
        ({"TERM": "dumb"}, True, False),
        ({}, True, False),
        ({"TERM": "xterm", "NO_COLOR": "1"}, True, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": ""}, False, False),
        ({"FORCE_COLOR": "0", "TERM": "xterm"}, True, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True, True),
    ],
)
def test_who_gets_colours(environment, terminal, expected):
    assert has_colour(environment, terminal=terminal) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("short", ["short"]),
        (
            "    remedy:   one two three",
            ["    remedy:   one", " " * 14 + "two", " " * 14 + "three"],
        ),
        ("              one two", ["              one", "              two"]),
        ("FAILED FS-1 (a, level 3) b", ["FAILED FS-1 (a,", "    level 3) b"]),
        ("    one/very/long/word/stays", ["    one/very/long/word/stays"]),
        ("    again:    modular-tf check --only X", ["    again:    modular-tf check --only X"]),
        ("1 loads          1        2", ["1 loads          1        2"]),
        ("", [""]),
    ],
)
def test_lines_break_below_their_text(line, expected):
    assert broken_at_words(line, 20) == expected
