"""A table for a terminal by rich, which folds long cells and colours states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def show(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Write rows under their headers to standard output."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        table.add_column(header.upper(), overflow="fold")
    for row in rows:
        # Text, not str: a plugin's name is not markup.
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(table)
