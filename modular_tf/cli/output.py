"""What a command writes: results on standard output, failures on standard error.

Results are a table for people, tabs for pipes, one JSON object for programs. Text that came from
plugins and stores is made fit for a terminal.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from modular_tf.cli.process import PROGRAM, give_up
from modular_tf.errors import ModularTFError
from modular_tf.redaction import redacted
from modular_tf.rules import written_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.rules import Violation

    Column = str | tuple[str, str | Callable[[Any], object]]

SCHEMA_VERSION = 1

EXPECTED = (ModularTFError, OSError)
"""The errors that an operation can fail with; any other is an internal error."""

_BYTES = {code: f"\\x{code - 0xDC00:02x}" for code in range(0xDC80, 0xDD00)}  # surrogateescape
_WITHOUT_COLOUR = ("dumb", "unknown")
_STYLES = {
    "loaded": "green",
    "works": "green",
    "rejected": "red",
    "failed": "red",
    "quarantined": "red",
    "disabled": "yellow",
    "shadowed": "yellow",
    "not tried": "yellow",
}


# -- text -----------------------------------------------------------------------------------------


def printable(text: str) -> str:
    """Return `text` with control characters and broken bytes written out.

    A file name may hold escape sequences; a terminal must not obey them.
    """
    return text if text.isprintable() else written_out(text).translate(_BYTES)


@cache
def _controls() -> dict[int, str]:
    """Return how control characters are written out, by their codes."""
    # Those that end a field or line, or that a terminal obeys; URIs of oss:// have the first ones.
    codes = (0, *range(0x07, 0x20), *range(0x7F, 0xA0))
    return {code: chr(code).encode("unicode_escape").decode("ascii") for code in codes}


def without_controls(text: str) -> str:
    """Return `text` with control characters written out, so that a name stays one field.

    Bytes that are no text stay: programs find the file by them.
    """
    return text.translate(_controls())


def raw(text: str) -> bytes:
    """Return the bytes of a name; text for which file names have no bytes is written out."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError:
        return printable(text).encode(sys.getfilesystemencoding(), "backslashreplace")


def when(time_ns: float, unknown: str = "-") -> str:
    """Return a time in local time; `unknown` for none, and for one that no calendar has."""
    from datetime import datetime  # noqa: PLC0415  (for few commands)

    try:
        local = datetime.fromtimestamp(time_ns / 1e9).astimezone()
    except (ValueError, OverflowError, OSError):
        return unknown
    return local.isoformat(" ", "seconds") if time_ns > 0 else unknown


def size(n_bytes: float) -> str:
    """Return a number of bytes in a unit that is easy to read."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:  # noqa: PLR2004
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"


def counted(count: int, what: str) -> str:
    """Return a number of things, as "1 kernel" or "2 kernels"."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def has_colour(environment: Mapping[str, str], *, terminal: bool) -> bool:
    """Return whether to write colours.

    NO_COLOR refuses them, FORCE_COLOR demands them (in a pipe too), and TERM may name a terminal
    that has none; NO_COLOR counts most, TERM least.
    """
    if environment.get("NO_COLOR"):
        return False
    if forced := environment.get("FORCE_COLOR"):
        return forced != "0"
    return terminal and environment.get("TERM", "dumb") not in _WITHOUT_COLOUR


# -- results --------------------------------------------------------------------------------------


class Printer:
    """Writes the results of one command.

    With `json`, as one JSON object; with `terminal`, for a person who watches standard output.
    """

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.terminal = sys.stdout.isatty() and not json

    def json_object(self, **values: Any) -> None:
        """Write the one JSON object of the command: in lines for people, in one for programs."""
        self._write_json(values, indent=2 if sys.stdout.isatty() else None)

    def json_line(self, **values: Any) -> None:
        """Write one of several JSON objects, each on a line of its own."""
        self._write_json(values, indent=None)

    @staticmethod
    def _write_json(values: Mapping[str, Any], indent: int | None) -> None:
        from json import dumps  # noqa: PLC0415  (most commands need no JSON)

        text = dumps({"schema_version": SCHEMA_VERSION, **values}, indent=indent)
        sys.stdout.write(text + "\n")

    def show_object(self, values: Mapping[str, Any], show: Callable[[], object]) -> None:
        """Write values as the one JSON object, or else have `show` write them as text."""
        if self.json:
            self.json_object(**values)
        else:
            show()

    def show(
        self, name: str, records: Sequence[Any], columns: Iterable[Column], **more: Any
    ) -> None:
        """Write records, as a list in the one JSON object or as a table.

        `name` and `more` are the name of the list and further values of the JSON object; the
        records are objects as JSON has them. `columns` are headings of the table, each with the
        field that it shows, or the function that returns a record's cell; a heading alone is the
        name of a field.
        """
        if self.json:
            self.json_object(**{name: records}, **more)
            return
        named = [(column, column) if isinstance(column, str) else column for column in columns]
        cells = [
            (heading, itemgetter(field.replace(" ", "_")) if isinstance(field, str) else field)
            for heading, field in named
        ]
        rows = [[find(record) for _, find in cells] for record in records]
        self.table([heading for heading, _ in cells], rows)

    def show_each(
        self, name: str, records: Iterable[Any], cells: Callable[[Any], Sequence[str]], **more: Any
    ) -> int:
        """Write records, as `show` does, each as soon as it is known; return how many there were.

        `cells` returns those of a record's row.
        """
        if self.json:
            found = list(records)
            self.json_object(**more, **{name: found})
            return len(found)
        count = 0
        for record in records:
            self.row(cells(record))
            count += 1
        return count

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write rows: aligned under headers for a person, separated by tabs for a pipe."""
        cells = [[_text(cell) for cell in row] for row in rows]
        if not self.terminal:
            for row in cells:
                self.row(row)
        elif cells:
            _show(headers, [[printable(cell) for cell in row] for row in cells])

    def facts(self, facts: Mapping[str, object]) -> None:
        """Write names and values, one a line."""
        rows = [(name, _text(value)) for name, value in facts.items()]
        rows = [(name, value) for name, value in rows if value]
        if not self.terminal:
            self.table(("", ""), rows)
            return
        width = max((len(name) for name, _ in rows), default=0)
        for name, value in rows:
            self.line(f"{name:{width}}  {value}")

    def row(self, cells: Sequence[str]) -> None:
        """Write cells in one line: separated by tabs for a pipe, by spaces for a person."""
        if self.terminal:
            self.line("  ".join(filter(None, cells)))
        else:
            self._write_line("\t".join(map(without_controls, cells)))

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines, as `line` does."""
        for text in lines:
            self.line(text)

    def line(self, text: str = "") -> None:
        """Write a line: control characters written out; bytes that are no text as they are."""
        if self.terminal:
            sys.stdout.write(printable(text) + "\n")
        else:
            self._write_line(without_controls(text))

    @staticmethod
    def _write_line(text: str) -> None:
        sys.stdout.flush()
        sys.stdout.buffer.write(raw(text) + b"\n")


def _text(cell: object) -> str:
    if isinstance(cell, list | tuple):
        return ", ".join(map(str, cell))
    return "" if cell is None else str(cell)


def _show(headers: Sequence[str], rows: list[list[str]]) -> None:
    """Write a table to a terminal: by rich, which folds long cells and colours states."""
    try:
        from rich.console import Console  # noqa: PLC0415  (an extra, and slow to load)
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415
    except ImportError:
        sys.stdout.write("".join(f"{line}\n" for line in aligned(headers, rows)))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header.upper(), overflow="fold")
    for row in rows:
        # Text, not str: a plugin's name is not markup.
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(table)


def aligned(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table; the last column is not padded."""
    table = [[header.upper() for header in headers], *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


# -- failures -------------------------------------------------------------------------------------


def report_error(message: str, subject: str | None = None) -> None:
    """Write `modular-tf: subject: message`, if standard error can be written to."""
    with suppress(OSError):  # the end of the command reports it
        sys.stdout.flush()
    about = "" if subject is None else f"{subject}: "
    try:
        sys.stderr.write(printable(redacted(f"{PROGRAM}: {about}{message}")) + "\n")
    except OSError:
        give_up(sys.stderr)


def message_of(error: BaseException, subject: str | None = None) -> str:
    """Return an error's message without the subject that it begins with."""
    of_system = error.strerror if isinstance(error, OSError) else None
    text = (of_system or str(error)).strip() or type(error).__name__
    if subject is None:
        return text
    # Messages name operation and path themselves; a line that begins with the path need not.
    operation = error.operation if isinstance(error, ModularTFError) else None
    for repeated in (f"{operation} {subject!r}: ", f"{subject}; ", f"{subject}: "):
        text = text.removeprefix(repeated)
    return text


def report_problems(problems: Iterable[Violation]) -> None:
    """Write one line for each problem: what, by which rule, and what to do."""
    for problem in problems:
        report_error(" ".join(f"{problem.message} [{problem.rule}] {problem.remedy}".split()))
