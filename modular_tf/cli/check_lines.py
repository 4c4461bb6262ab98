"""The lines of a report on checks: coloured, and broken at words, where that is wanted."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from modular_tf.cli.text import has_colour, printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.cli.printer import Printer

_RED, _GREEN, _YELLOW, _CYAN = "1;31", "32", "33", "36"
_STYLES = (
    (re.compile(r"^(?:CRASHED|EXITED|FAILED|HUNG|worse)\b"), _RED),
    (re.compile(r"^(?:WARNED|blocked)\b"), _YELLOW),
    (re.compile(r"^(?:better|passed)\b"), _GREEN),
    (re.compile(r"^    [a-z ]{4,8}:(?= )"), _CYAN),
    (re.compile(r"(?<=: )conforms(?=; )"), _GREEN),
    (re.compile(r"(?<=: )does not conform(?=[;,] )"), _RED),
    (re.compile(r"(?<=: )is not known to conform(?=[;,] )"), _YELLOW),
)
_LABEL = re.compile(r"^ {4}[a-z ]{4,8}: +")
_COMMAND = "    again:"  # stays in one line, so that it can be copied
_CELLS = re.compile(r"\S {3,}\S")
_LEAST_COLUMNS = 40
_FURTHER_IN = 4


class CheckLines:
    """Writes the lines of a report to standard output, as whoever reads it there wants them.

    A terminal gets lines that break at words, and colours unless it has none or the user wants
    none (`has_colour`). Pipes and files get the lines as they are.
    """

    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._coloured = has_colour(os.environ, terminal=printer.terminal)
        self._columns = _columns() if printer.terminal else None

    def write(self, lines: Iterable[str]) -> None:
        """Write lines as whoever reads them wants them."""
        for line in lines:
            if self._coloured or self._columns is not None:
                self._write(printable(line))
            else:
                self._printer.line(line)

    def _write(self, line: str) -> None:
        shown = broken_at_words(line, self._columns) if self._columns is not None else [line]
        if self._coloured and shown:
            shown[0] = coloured(shown[0])
        sys.stdout.write("".join(f"{each}\n" for each in shown or [""]))


def _columns() -> int:
    from shutil import get_terminal_size  # noqa: PLC0415  (for terminals only)

    return max(get_terminal_size().columns, _LEAST_COLUMNS)


def coloured(line: str) -> str:
    """Return a line whose verdict or label has its colour."""
    for pattern, style in _STYLES:
        if pattern.search(line):
            return pattern.sub(lambda found: f"\x1b[{style}m{found[0]}\x1b[0m", line, count=1)  # noqa: B023
    return line


def broken_at_words(line: str, columns: int) -> list[str]:
    """Return a line as lines that fit, which begin below its text.

    A word that does not fit stays whole, and so do commands and rows of tables: what is copied
    from the terminal is what was written.
    """
    label = _LABEL.match(line)
    begin = len(line) - len(line.lstrip()) if label is None else label.end()
    is_row = _CELLS.search(line, begin) is not None
    if len(line) <= columns or line.startswith(_COMMAND) or is_row:
        return [line]
    from textwrap import wrap  # noqa: PLC0415  (for terminals only)

    return wrap(
        line[begin:],
        columns,
        initial_indent=line[:begin],
        subsequent_indent=" " * (begin or _FURTHER_IN),
        break_long_words=False,
        break_on_hyphens=False,
    )
