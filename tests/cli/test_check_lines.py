"""The text of `modular-tf check`: colours and line breaks for terminals, plain lines for pipes."""

import re
from dataclasses import replace

import pytest

from modular_tf.cli import check
from modular_tf.cli.output import Printer, has_colour
from tests.check.report.outcomes import CRASH, CRASHED, FAILED, report
from tests.cli.test_printer import on_terminal

_COLUMNS = 60
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FAILED = "\x1b[1;31mFAILED\x1b[0m FS-156"
NO_FILES = dict.fromkeys(("junit", "write_json", "html", "badge"))


@pytest.fixture
def environment(monkeypatch):
    """Set variables, and no other of those that decide on colours and widths."""

    def set_variables(**variables):
        for name in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {"COLUMNS": str(_COLUMNS), **variables}.items():
            monkeypatch.setenv(name, value)

    return set_variables


def write(printer, outcomes=(FAILED,), annotations=None):
    check.write(report(*outcomes), NO_FILES, printer, None, verbose=False, annotations=annotations)


@pytest.fixture
def in_pipe(environment, capfd):
    """Return the lines of a report on standard output that is no terminal."""

    def lines(*, json=False, **variables):
        environment(**variables)
        write(Printer(json=json))
        return capfd.readouterr().out.splitlines()

    return lines


def test_a_terminal_gets_colours_and_lines_that_break_at_words(environment, in_pipe):
    environment(TERM="xterm")
    lines = on_terminal(write).splitlines()
    plain = [_COLOUR.sub("", line) for line in lines]

    assert _FAILED in "\n".join(lines)
    assert any("\x1b[1;31mdoes not conform\x1b[0m" in line for line in lines)
    long = [line for line in plain if len(line) > _COLUMNS]
    assert any(line.startswith("    again: ") for line in long)  # to be copied whole
    assert all(line.startswith("    again: ") or " " not in line.strip() for line in long)
    broken = re.search(r"^    required: +\S.*\n( +)\S", "\n".join(plain), re.MULTILINE)
    assert len(broken[1]) == len("    required: ")  # below the text, not its label
    assert " ".join(plain).split() == " ".join(in_pipe(TERM="xterm")).split()


def test_a_pipe_gets_colours_only_where_they_are_asked_for_and_no_breaks(in_pipe):
    plain, coloured = in_pipe(TERM="xterm"), in_pipe(FORCE_COLOR="1")
    (as_json,) = in_pipe(json=True, FORCE_COLOR="1")

    assert not any("\x1b" in line for line in plain)
    assert any(len(line) > _COLUMNS and "required:" in line for line in plain)
    assert any(line.startswith(_FAILED) for line in coloured)
    assert [_COLOUR.sub("", line) for line in coloured] == plain
    assert "\x1b" not in as_json


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


def test_a_line_that_a_plugin_wrote_is_no_command_of_the_ci_service(capfd):
    words = replace(CRASH, last_output="about to fall\n::add-mask::mine\n")

    def written():
        write(Printer(json=False), [replace(CRASHED, incident=words)], "github")
        return [line.strip() for line in capfd.readouterr().out.splitlines()]

    lines = written()
    stop = re.fullmatch("::stop-commands::([0-9a-f]{32})", lines[0])
    begun_again = lines.index(f"::{stop[1]}::")
    assert 0 < lines.index("::add-mask::mine") < begun_again
    assert lines[begun_again + 1].startswith("::error title=")
    assert written()[0] != lines[0]  # nobody could have known what begins commands again
