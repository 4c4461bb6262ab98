"""Results on standard output: for people, for pipes, for programs."""

import io
import sys
from contextlib import redirect_stdout

import pytest

from modular_tf.cli.output import Printer


class Terminal(io.TextIOWrapper):
    """Standard output that says that a person is watching."""

    def isatty(self):
        return True


def on_terminal(action):
    """Let a printer do `action` on a terminal and return what appears there."""
    stream = Terminal(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(stream):
        action(Printer(json=False))
    return stream.buffer.getvalue().decode()


@pytest.fixture
def without_rich(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    for name in [name for name in sys.modules if name.startswith("rich.")]:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_pipe_gets_tabs_and_one_line_for_each_row_whatever_is_in_it(capfdbinary):
    printer = Printer(json=False)

    printer.table(("name", "state"), [("a\x1b[31m\tb\nc\x9b\udcff", "loaded"), ("bb", None)])
    printer.row(("a\tb", "c"))
    printer.line("a\r\nb")
    printer.line("a\udcffb")  # a name that is not text
    printer.line("a\ud800b")  # as a hook of an installed package may return it

    assert capfdbinary.readouterr().out.splitlines() == [
        b"a\\x1b[31m\\tb\\nc\\x9b\xff\tloaded",
        b"bb\t",
        b"a\\tb\tc",
        b"a\\r\\nb",
        b"a\xffb",
        b"a\\ud800b",
    ]


def test_a_terminal_gets_headers_and_columns_without_rich(without_rich):
    def print_rows(printer):
        printer.table(("name", "state"), [("a", ""), ("long", "loaded")])
        printer.row(("a", "", "b"))

    assert on_terminal(print_rows).splitlines() == ["NAME  STATE", "a", "long  loaded", "a  b"]


@pytest.mark.parametrize("extra", ["rich", "plain"])
def test_a_terminal_is_never_sent_control_characters(extra, request):
    if extra == "plain":
        request.getfixturevalue("without_rich")

    def print_hostile_names(printer):
        printer.table(("name",), [("a\x1b]0;title\x07b",), ("[red]a[/]",)])
        printer.facts({"name": "a\x1b]0;title\x07b"})
        printer.line("x\x1b[2Jy\u202e\n")

    seen = on_terminal(print_hostile_names)

    assert "NAME" in seen
    assert "[red]a[/]" in seen  # a name is not markup
    assert "\x1b]0" not in seen
    assert "\x1b[2J" not in seen
    assert seen.count("a\\x1b]0;title\\x07b") == 2
    assert "x\\x1b[2Jy\\u202e\\n" in seen


def test_a_terminal_is_not_one_when_json_is_wanted():
    with redirect_stdout(Terminal(io.BytesIO())):
        assert not Printer(json=True).terminal
        assert Printer(json=False).terminal
