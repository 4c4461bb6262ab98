"""Results on standard output: a table for people, tabs for pipes, one object for programs."""

from __future__ import annotations

import sys
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from modular_tf.cli.text import printable, raw, without_controls

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Column = str | tuple[str, Callable[[Any], object]]

SCHEMA_VERSION = 1

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


class Printer:
    """Writes the results of one command.

    Attributes:
        json: One JSON object is wanted.
        terminal: A person is watching standard output.
    """

    def __init__(self, *, json: bool) -> None:
        self.json = json
        self.terminal = sys.stdout.isatty() and not json

    def json_object(self, **values: Any) -> None:
        """Write the one JSON object of the command: in lines for people, in one for programs."""
        from json import dumps  # noqa: PLC0415  (most commands need no JSON)

        indent = 2 if sys.stdout.isatty() else None
        text = dumps({"schema_version": SCHEMA_VERSION, **values}, indent=indent)
        sys.stdout.write(text + "\n")

    def json_line(self, **values: Any) -> None:
        """Write one of several JSON objects, each on a line of its own."""
        from json import dumps  # noqa: PLC0415  (most commands need no JSON)

        sys.stdout.write(dumps({"schema_version": SCHEMA_VERSION, **values}) + "\n")

    def show(
        self, name: str, records: Sequence[Any], columns: Iterable[Column], **more: Any
    ) -> None:
        """Write records, as a list in the one JSON object or as a table.

        Args:
            name: The name of the list in the JSON object.
            records: Objects as JSON has them.
            columns: Headings of the table, with the function that returns a record's cell; a
                heading alone is the name of a field.
            more: Further values of the JSON object.
        """
        if self.json:
            self.json_object(**{name: records}, **more)
            return
        cells = [
            (column, itemgetter(column.replace(" ", "_"))) if isinstance(column, str) else column
            for column in columns
        ]
        rows = [[find(record) for _, find in cells] for record in records]
        self.table([heading for heading, _ in cells], rows)

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
